//! Sets of indices as text: `0-3,5`.
//!
//! A job of a thousand workers keeps its completed indices in a few bytes of status. Must not know
//! what the indices stand for.

use std::{collections::BTreeSet, fmt::Write as _};

/// Reads a set; what cannot be read is left out.
#[must_use]
pub(super) fn parse(text: &str) -> BTreeSet<u32> {
    let mut set = BTreeSet::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.trim().parse::<u32>(), last.trim().parse::<u32>()) {
            // A hand-written range must not fill the memory.
            set.extend(first..=last.min(first.saturating_add(1_000_000)));
        }
    }
    set
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
