//! Sets of completion indexes, and the text that the status keeps of them: `0,2,4-7`. Pure.

use std::fmt;

/// A set of indexes, as runs that neither touch nor overlap, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Indexes {
    runs: Vec<(u32, u32)>,
}

impl Indexes {
    /// Reads the text. Indexes that the job no longer has are left out; so is what nobody can read.
    pub(super) fn parse(text: &str, completions: u32) -> Self {
        let mut runs: Vec<(u32, u32)> = text
            .split(',')
            .filter_map(|part| {
                let (first, last) = part.split_once('-').unwrap_or((part, part));
                let (first, last) = (first.parse().ok()?, last.parse::<u32>().ok()?);
                (first < completions && first <= last).then(|| (first, last.min(completions - 1)))
            })
            .collect();
        runs.sort_unstable();
        Self { runs: joined(runs) }
    }

    /// These and some more.
    pub(super) fn with(&self, more: impl IntoIterator<Item = u32>) -> Self {
        let mut runs = self.runs.clone();
        runs.extend(more.into_iter().map(|index| (index, index)));
        runs.sort_unstable();
        Self { runs: joined(runs) }
    }

    pub(super) fn has(&self, index: u32) -> bool {
        let at = self.runs.partition_point(|(_, last)| *last < index);
        self.runs.get(at).is_some_and(|(first, _)| *first <= index)
    }

    /// How many there are.
    pub(super) fn total(&self) -> u32 {
        let one = |(first, last): &(u32, u32)| last.saturating_sub(*first).saturating_add(1);
        self.runs.iter().map(one).fold(0, u32::saturating_add)
    }

    /// The first few below `completions` that are not among these.
    pub(super) fn first_missing(&self, count: usize, completions: u32) -> Vec<u32> {
        let mut found = Vec::new();
        let mut next = 0;
        for (first, last) in &self.runs {
            let free = (next..(*first).min(completions)).take(count - found.len());
            found.extend(free);
            next = next.max(last.saturating_add(1));
        }
        found.extend((next..completions).take(count - found.len()));
        found
    }
}

/// Runs in order, those that touch made one.
fn joined(sorted: Vec<(u32, u32)>) -> Vec<(u32, u32)> {
    let mut runs: Vec<(u32, u32)> = Vec::with_capacity(sorted.len());
    for (first, last) in sorted {
        match runs.last_mut() {
            Some(run) if first <= run.1.saturating_add(1) => run.1 = run.1.max(last),
            _ => runs.push((first, last)),
        }
    }
    runs
}

impl fmt::Display for Indexes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.runs.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            // Two are written as two; a run of more by its ends.
            match last - first {
                0 => write!(formatter, "{comma}{first}")?,
                1 => write!(formatter, "{comma}{first},{last}")?,
                _ => write!(formatter, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn runs_are_written_by_their_ends() {
        let all = Indexes::default().with([4, 0, 2, 5, 6, 7, 9, 10]);
        assert_eq!(all.to_string(), "0,2,4-7,9,10");
        assert_eq!(all.total(), 8);
        assert!(all.has(5) && all.has(10) && !all.has(3) && !all.has(11));
        assert_eq!(Indexes::default().to_string(), "");
    }

    #[test]
    fn a_smaller_job_has_fewer_indexes() {
        assert_eq!(Indexes::parse("0,2,4-7,9,10", 6).to_string(), "0,2,4,5");
        assert_eq!(Indexes::parse("1-5", 0), Indexes::default());
        assert_eq!(Indexes::parse("x,3,9-2,-1,4294967296", 100).to_string(), "3");
        assert_eq!(Indexes::parse("0-4294967295", u32::MAX).total(), u32::MAX);
    }

    #[test]
    fn the_lowest_come_first() {
        let done = Indexes::parse("1,3-5", 10);
        assert_eq!(done.first_missing(3, 10), [0, 2, 6]);
        assert_eq!(done.first_missing(9, 7), [0, 2, 6]);
        assert_eq!(done.first_missing(0, 7), [0_u32; 0]);
        assert_eq!(Indexes::parse("0-9", 10).first_missing(3, 10), [0_u32; 0]);
    }

    proptest! {
        #[test]
        fn the_text_says_it_all(indexes in proptest::collection::btree_set(0_u32..60, 0..40)) {
            let set = Indexes::default().with(indexes.iter().copied());
            prop_assert_eq!(set.total() as usize, indexes.len());
            prop_assert_eq!(&Indexes::parse(&set.to_string(), 60), &set);
            for index in 0..60 {
                prop_assert_eq!(set.has(index), indexes.contains(&index));
            }
            let missing: Vec<u32> = (0..60).filter(|index| !indexes.contains(index)).collect();
            prop_assert_eq!(set.first_missing(60, 60), missing);
        }

        #[test]
        fn any_text_can_be_read(text in "[-0-9,x ]{0,20}", completions in 0_u32..50) {
            let set = Indexes::parse(&text, completions);
            prop_assert!(set.total() <= completions);
        }
    }
}
