//! How long pods waited and how long gangs stood there in part, by the server's own record. A watch would
//! not do: the server ends the watch of a reader that falls behind, and it reads of everything late.
//!
//! Pure: must not know where the record comes from.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::gangs::gang_of;
use crate::bench::{
    audit::Binding,
    sample::{Sample, round},
};

/// A gang from whose first binding to its last it took longer is torn.
const TORN: SignedDuration = SignedDuration::from_secs(2);

/// Seconds from the first request of a load until the last pod was there, and until the last was bound.
pub(super) fn seconds(all: &[Binding], begin: Timestamp) -> (f64, f64) {
    let since = |end: Option<Timestamp>| {
        end.map_or(f64::NAN, |end| end.duration_since(begin).as_secs_f64())
    };
    (since(all.iter().map(|one| one.made).max()), since(all.iter().map(|one| one.bound).max()))
}

/// What is told of them.
pub(super) fn shown(all: &[Binding]) -> Map<String, Value> {
    let (mut waited, mut spans) = (Sample::default(), Sample::default());
    let mut gangs: BTreeMap<&str, (Timestamp, Timestamp)> = BTreeMap::new();
    for one in all {
        waited.add(one.bound.duration_since(one.made).as_secs_f64() * 1000.0);
        let span = gangs.entry(gang_of(&one.pod)).or_insert((one.bound, one.bound));
        *span = (span.0.min(one.bound), span.1.max(one.bound));
    }
    let spans_of_gangs = gangs.values().map(|(first, last)| last.duration_since(*first));
    let torn = spans_of_gangs.clone().filter(|span| *span > TORN).count();
    for span in spans_of_gangs {
        spans.add(span.as_secs_f64() * 1000.0);
    }
    let ms = |sample: &Sample| {
        let at = |share| round(sample.at(share));
        json!({"p50": at(0.5), "p99": at(0.99), "most": at(1.0)})
    };
    let mut result = Map::new();
    result.insert("created_to_bound_ms".to_owned(), ms(&waited));
    result.insert("gang_first_to_last_binding_ms".to_owned(), ms(&spans));
    result.insert("gangs_torn".to_owned(), json!(torn));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(pod: &str, made: i64, bound: i64) -> Binding {
        let at = |second| Timestamp::from_second(second).unwrap();
        Binding { pod: pod.to_owned(), made: at(made), bound: at(bound) }
    }

    #[test]
    fn a_gang_is_torn_when_its_bindings_lie_apart() {
        let all = [
            bound("gang-0001-0", 0, 5),
            bound("gang-0001-1", 1, 7),
            bound("gang-0002-worker-0", 0, 1),
            bound("gang-0002-worker-1", 0, 4),
        ];
        let told = shown(&all);
        assert_eq!(told["gangs_torn"], 1);
        assert_eq!(told["created_to_bound_ms"]["most"], 6000.0);
        assert_eq!(told["gang_first_to_last_binding_ms"]["most"], 3000.0);
        assert_eq!(seconds(&all, Timestamp::UNIX_EPOCH), (1.0, 7.0));
    }
}
