//! What each queue may use: its fair share of the cluster by weight, within its limits.
//!
//! The weighted max-min share of Volcano's `proportion`, a share said in so many words taking
//! precedence. Owns the arithmetic only; what follows for pods is the cycle's.

use crate::vector::{ENDLESS, Resources, Vector};
use crate::{Amounts, Queue};

/// Shares are computed in thousandths of a unit, so that devices can be divided.
const PARTS: i128 = 1000;
/// Every round meets a queue or changes nothing; this is for arithmetic nobody thought of.
const ROUNDS: usize = 1_000;

/// A queue as far as sharing goes.
#[derive(Debug)]
pub(crate) struct Sharer<'q> {
    pub(crate) queue: &'q Queue,
    /// What its pods have and ask for.
    pub(crate) request: Vector,
}

/// What a queue may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Share {
    /// Its fair share, in thousandths.
    deserved: Vec<i128>,
    /// What it may never exceed, in units.
    pub(crate) limit: Vector,
    /// What may not be taken from it, in units.
    pub(crate) guarantee: Vector,
}

impl Share {
    /// Whether so much of a resource is within the share.
    pub(crate) fn allows(&self, resource: usize, amount: i64) -> bool {
        i128::from(amount) * PARTS <= self.parts(resource)
    }

    fn parts(&self, resource: usize) -> i128 {
        self.deserved.get(resource).copied().unwrap_or(0)
    }

    /// The share of one resource in units, rounded down.
    pub(crate) fn deserved(&self, resource: usize) -> i64 {
        i64::try_from(self.parts(resource) / PARTS).unwrap_or(i64::MAX)
    }

    /// How much of its share a queue uses, in millionths: the most of all resources.
    pub(crate) fn used(&self, used: &Vector, resources: &Resources) -> i64 {
        const WHOLE: i128 = 1_000_000;
        let counted = used.positive().filter(|(resource, _)| !resources.is_pods(*resource));
        let parts = counted.map(|(resource, amount)| {
            let deserved = self.parts(resource);
            let used = i128::from(amount) * PARTS;
            let part = if deserved <= 0 { WHOLE } else { used * WHOLE / deserved };
            i64::try_from(part).unwrap_or(i64::MAX)
        });
        parts.max().unwrap_or(0)
    }
}

/// The shares of all queues, in their order.
pub(crate) fn shares(
    total: &Vector,
    root: &Amounts,
    sharers: &[Sharer<'_>],
    resources: &Resources,
) -> Vec<Share> {
    let mut found: Vec<Share> = sharers.iter().map(|_| Share::default()).collect();
    for resource in 0..resources.len() {
        let name = resources.name(resource);
        let total =
            root.named(name).map_or(total.get(resource), |cap| cap.min(total.get(resource)));
        let rows: Vec<Row> =
            sharers.iter().map(|sharer| Row::new(sharer, resource, name, total, sharers)).collect();
        let deserved = divide(i128::from(total) * PARTS, &rows);
        for ((share, row), deserved) in found.iter_mut().zip(&rows).zip(deserved) {
            share.deserved.resize(resource + 1, 0);
            if let Some(place) = share.deserved.get_mut(resource) {
                *place = deserved;
            }
            share.limit.set(resource, row.limit);
            share.guarantee.set(resource, row.guarantee);
        }
    }
    found
}

/// One queue and one resource.
struct Row {
    weight: i128,
    request: i64,
    limit: i64,
    guarantee: i64,
    /// A share said in so many words.
    said: Option<i64>,
}

impl Row {
    fn new(
        sharer: &Sharer<'_>,
        resource: usize,
        name: &str,
        total: i64,
        sharers: &[Sharer<'_>],
    ) -> Self {
        let guarantee = sharer.queue.guarantee.get(name);
        let kept: i64 = sharers.iter().map(|other| other.queue.guarantee.get(name)).sum();
        // What is kept for others is out of reach. Beyond that the cluster's size is no limit of
        // the queue's.
        let is_open = kept == guarantee || total >= ENDLESS;
        let open = if is_open { ENDLESS } else { (total - kept).max(0) + guarantee };
        let capability = sharer.queue.capability.named(name).unwrap_or(ENDLESS);
        Self {
            weight: i128::from(sharer.queue.weight),
            request: sharer.request.get(resource),
            limit: open.min(capability),
            guarantee,
            said: sharer.queue.deserved.named(name),
        }
    }

    fn limit(&self) -> i128 {
        i128::from(self.limit) * PARTS
    }

    fn guarantee(&self) -> i128 {
        i128::from(self.guarantee) * PARTS
    }

    fn request(&self) -> i128 {
        i128::from(self.request) * PARTS
    }
}

/// Divides one resource among the queues.
fn divide(total: i128, rows: &[Row]) -> Vec<i128> {
    let mut deserved: Vec<i128> = rows.iter().map(|_| 0).collect();
    let mut met: Vec<bool> = rows.iter().map(|row| row.said.is_some()).collect();
    let mut remaining = total;
    for (row, place) in rows.iter().zip(&mut deserved) {
        if let Some(said) = row.said {
            *place = (i128::from(said) * PARTS).min(row.limit()).max(row.guarantee());
            // What it does not ask for is lent to the others.
            remaining -= (*place).min(row.request()).max(row.guarantee());
        }
    }
    for _ in 0..ROUNDS {
        let weights: i128 =
            rows.iter().zip(&met).filter(|(_, met)| !**met).map(|(row, _)| row.weight).sum();
        if weights == 0 || remaining <= 0 {
            break;
        }
        let mut given = 0;
        for ((row, place), met) in rows.iter().zip(&mut deserved).zip(&mut met) {
            if *met {
                continue;
            }
            let before = *place;
            let more = before + remaining * row.weight / weights;
            *place = more.min(row.limit()).min(row.request()).max(row.guarantee());
            *met = row.request() <= *place || *place == before;
            given += *place - before;
        }
        remaining -= given;
        if given == 0 {
            break;
        }
    }
    deserved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(weight: i128, request: i64, limit: i64, guarantee: i64) -> Row {
        Row { weight, request, limit, guarantee, said: None }
    }

    fn whole(total: i128, rows: &[Row]) -> Vec<i128> {
        divide(total * PARTS, rows).into_iter().map(|parts| parts / PARTS).collect()
    }

    #[test]
    fn shares_follow_weights_and_what_is_left_goes_round() {
        assert_eq!(whole(8, &[row(1, 9, 99, 0), row(3, 9, 99, 0)]), [2, 6]);
        assert_eq!(whole(8, &[row(1, 9, 99, 0), row(3, 1, 99, 0)]), [7, 1]);
        assert_eq!(whole(8, &[row(1, 2, 99, 0), row(1, 2, 99, 0)]), [2, 2]);
    }

    #[test]
    fn limits_cut_and_guarantees_lift() {
        assert_eq!(whole(8, &[row(1, 9, 1, 0), row(1, 9, 99, 0)]), [1, 7]);
        assert_eq!(whole(8, &[row(1, 0, 99, 2), row(1, 9, 99, 0)]), [2, 6]);
    }

    #[test]
    fn a_share_that_is_said_goes_first_and_is_lent_while_unused() {
        let said = |request| Row { said: Some(6), ..row(1, request, 99, 0) };
        assert_eq!(whole(8, &[said(9), row(1, 9, 99, 0)]), [6, 2]);
        assert_eq!(whole(8, &[said(1), row(1, 9, 99, 0)]), [6, 7]);
    }

    #[test]
    fn devices_can_be_divided() {
        let rows: Vec<Row> = (0..3).map(|_| row(1, 9, 99, 0)).collect();
        assert!(divide(8 * PARTS, &rows).into_iter().all(|parts| parts == 2666));
        let many: Vec<Row> = (0..1_000).map(|_| row(1, 9, 99, 0)).collect();
        assert!(divide(8 * PARTS, &many).into_iter().sum::<i128>() <= 8 * PARTS);
    }
}
