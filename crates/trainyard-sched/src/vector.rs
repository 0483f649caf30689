//! Amounts as numbers in a row, for sums and comparisons in great number.
//!
//! Resources get an index when they are first heard of. The index depends on history, so nothing
//! may be ordered by it.

use std::collections::BTreeMap;

use crate::Amounts;

/// The resource that counts pods; every pod asks for one.
pub(crate) const PODS: &str = "pods";
/// Stands for "as many as you like".
pub(crate) const ENDLESS: i64 = i64::MAX / 4;

/// More resources are not told apart, unless a node has them: names are never forgotten, and whoever may
/// make pods could have the scheduler remember any number.
const NAMES_MAX: usize = 2_000;
/// Stands for those; nothing has such a name.
const OTHERS: &str = "(one of too many resources)";

/// The resources that were ever heard of.
#[derive(Debug, Clone, Default)]
pub(crate) struct Resources {
    names: Vec<String>,
    indices: BTreeMap<String, usize>,
}

impl Resources {
    pub(crate) fn index(&mut self, name: &str) -> usize {
        if let Some(index) = self.indices.get(name) {
            return *index;
        }
        let index = self.names.len();
        self.names.push(name.to_owned());
        self.indices.insert(name.to_owned(), index);
        index
    }

    pub(crate) fn known(&self, name: &str) -> Option<usize> {
        self.indices.get(name).copied()
    }

    pub(crate) fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("", String::as_str)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    pub(crate) fn is_pods(&self, index: usize) -> bool {
        self.name(index) == PODS
    }

    /// What somebody asks for. Where more resources were asked for than any cluster has, all others that no
    /// node has are one: there is nothing of it, so whoever asks for one waits.
    pub(crate) fn ask(&mut self, amounts: &Amounts) -> Ask {
        let mut ask: Vec<(usize, i64)> = Vec::new();
        for (name, amount) in amounts.iter() {
            let is_one_more = self.len() >= NAMES_MAX && self.known(name).is_none();
            let index = self.index(if is_one_more { OTHERS } else { name });
            match ask.iter_mut().find(|(other, _)| is_one_more && *other == index) {
                Some((_, sum)) => *sum = sum.saturating_add(amount),
                None => ask.push((index, amount)),
            }
        }
        Ask(ask)
    }

    /// Back to amounts by name; what is not above zero is left out.
    pub(crate) fn amounts(&self, vector: &Vector) -> Amounts {
        let all = vector.0.iter().enumerate();
        let some = all.filter(|(_, amount)| **amount > 0);
        some.map(|(index, amount)| (self.name(index), *amount)).collect()
    }
}

/// What somebody asks for: index and amount, only what is above zero.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ask(pub(crate) Vec<(usize, i64)>);

impl Ask {
    pub(crate) fn of(&self, resource: usize) -> i64 {
        self.0.iter().find(|(index, _)| *index == resource).map_or(0, |(_, amount)| *amount)
    }
}

/// An amount of every resource; what is not there is zero.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vector(pub(crate) Vec<i64>);

impl Vector {
    pub(crate) fn get(&self, resource: usize) -> i64 {
        self.0.get(resource).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, resource: usize, amount: i64) {
        if self.0.len() <= resource {
            self.0.resize(resource + 1, 0);
        }
        if let Some(place) = self.0.get_mut(resource) {
            *place = amount;
        }
    }

    /// Adds `times` the ask. Sums wrap: what was added can always be taken away again.
    pub(crate) fn add(&mut self, ask: &Ask, times: i64) {
        for (resource, amount) in &ask.0 {
            let sum = self.get(*resource).wrapping_add(amount.wrapping_mul(times));
            self.set(*resource, sum);
        }
    }

    pub(crate) fn plus(&mut self, other: &Self, times: i64) {
        for (resource, amount) in other.0.iter().enumerate() {
            let sum = self.get(resource).wrapping_add(amount.wrapping_mul(times));
            self.set(resource, sum);
        }
    }

    pub(crate) fn covers(&self, ask: &Ask) -> bool {
        ask.0.iter().all(|(resource, amount)| self.get(*resource) >= *amount)
    }

    /// The resources with an amount above zero.
    pub(crate) fn positive(&self) -> impl Iterator<Item = (usize, i64)> + '_ {
        self.0.iter().copied().enumerate().filter(|(_, amount)| *amount > 0)
    }
}

impl PartialEq for Vector {
    fn eq(&self, other: &Self) -> bool {
        (0..self.0.len().max(other.0.len())).all(|index| self.get(index) == other.get(index))
    }
}

impl Eq for Vector {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Before there was a bound every name that was ever asked for stayed, and every sum had a place
    /// for it.
    #[test]
    fn resources_that_no_node_has_are_told_apart_up_to_a_number() {
        let mut resources = Resources::default();
        for n in 0..3 * NAMES_MAX {
            let _ =
                resources.ask(&[(format!("example.com/{n}").as_str(), 1)].into_iter().collect());
        }
        assert_eq!(resources.len(), NAMES_MAX + 1);
        let ask = resources.ask(&Amounts::from([("a", 1), ("b", 2), ("example.com/1", 4)]));
        let amounts: Vec<_> = ask.0.iter().map(|(at, some)| (resources.name(*at), *some)).collect();
        assert_eq!(amounts, [(OTHERS, 3), ("example.com/1", 4)]);
        let gpus = resources.index("nvidia.com/gpu");
        assert_eq!(resources.ask(&Amounts::from([("nvidia.com/gpu", 1)])).of(gpus), 1);
    }

    #[test]
    fn what_is_added_can_be_taken_away() {
        let mut resources = Resources::default();
        let ask = resources.ask(&Amounts::from([("cpu", 3), ("memory", 7)]));
        let mut vector = Vector::default();
        vector.add(&ask, 2);
        assert!(vector.covers(&ask));
        assert_eq!(resources.amounts(&vector), Amounts::from([("cpu", 6), ("memory", 14)]));
        vector.add(&ask, -2);
        assert_eq!(vector, Vector::default());
        assert!(!vector.covers(&ask));
    }
}
