//! Sets of indices as text: `0-3,5`.
//!
//! A job of a thousand workers keeps its completed indices in a few bytes of status. Must not know
//! what the indices stand for.

use std::{collections::BTreeSet, fmt::Write as _};

use trainyard_api::limits::PODS_MAX;

/// Reads a set; what cannot be read is left out, and so are indices that no job has and what comes after as
/// many as a job can have: a text written by hand must fill neither the memory nor the time.
#[must_use]
pub(super) fn parse(text: &str) -> BTreeSet<u32> {
    let ranges = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        Some(first..=last.min(PODS_MAX - 1))
    });
    ranges.flatten().take(PODS_MAX as usize).collect()
}

/// Writes a set.
#[must_use]
pub(super) fn format(set: &BTreeSet<u32>) -> String {
    let mut text = String::new();
    let mut numbers = set.iter().copied().peekable();
    while let Some(first) = numbers.next() {
        let mut last = first;
        while let Some(next) = numbers.next_if(|next| Some(*next) == last.checked_add(1)) {
            last = next;
        }
        let comma = if text.is_empty() { "" } else { "," };
        let _ = if first == last {
            write!(text, "{comma}{first}")
        } else {
            write!(text, "{comma}{first}-{last}")
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_folded() {
        assert_eq!(format(&BTreeSet::from([0, 1, 2, 3, 5])), "0-3,5");
        assert_eq!(format(&BTreeSet::new()), "");
        assert_eq!(parse("0-3,5"), BTreeSet::from([0, 1, 2, 3, 5]));
        assert_eq!(parse(""), BTreeSet::new());
        assert_eq!(parse("x,7,-,9-8"), BTreeSet::from([7]));
    }

    /// Seen before there was a bound: forty such ranges, 784 bytes of a status, took 508 MB and three seconds,
    /// and a status has room for a hundred thousand of them.
    #[test]
    fn a_hostile_text_gives_no_more_than_a_job_can_have() {
        assert_eq!(parse("0-4294967295").len(), PODS_MAX as usize);
        let ranges: Vec<_> = (0..100_000).map(|n| format!("{n}-4294967295")).collect();
        assert_eq!(parse(&ranges.join(",")).len(), PODS_MAX as usize);
        assert_eq!(parse("9999,10000,4294967295"), BTreeSet::from([9_999]));
    }

    proptest! {
        #[test]
        fn reads_what_it_wrote(set in prop::collection::btree_set(0u32..5000, 0..80)) {
            prop_assert_eq!(parse(&format(&set)), set);
        }

        #[test]
        fn never_panics(text in ".{0,40}") {
            let _ = parse(&text);
        }
    }
}
