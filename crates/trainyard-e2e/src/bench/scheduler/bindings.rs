//! Which pods have been made and bound since when, and how whole their gangs were meanwhile. Pure:
//! must not know who tells it.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use crate::bench::sample::Sample;

/// A gang of which some pods are bound and no further one for longer than this is torn.
const TORN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
struct Member {
    made: Instant,
    is_bound: bool,
}

#[derive(Debug, Clone, Copy)]
struct Gang {
    bound: usize,
    last: Instant,
    was_torn: bool,
}

/// What is known of pods and gangs.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    gang_size: usize,
    members: BTreeMap<String, Member>,
    gangs: BTreeMap<String, Gang>,
    waited: Sample,
    bound: usize,
    partial: usize,
    partial_most: usize,
    last_made: Option<Instant>,
    last_bound: Option<Instant>,
}

impl Bindings {
    pub(super) fn new(gang_size: usize) -> Self {
        Self { gang_size, ..Self::default() }
    }

    /// A pod is there, alone or as one of a gang; whether that is its first binding.
    pub(super) fn see(
        &mut self,
        pod: &str,
        gang: Option<&str>,
        is_bound: bool,
        now: Instant,
    ) -> bool {
        if !self.members.contains_key(pod) {
            self.members.insert(pod.to_owned(), Member { made: now, is_bound: false });
            self.last_made = Some(now);
        }
        let Some(member) = self.members.get_mut(pod) else { return false };
        if member.is_bound || !is_bound {
            return false;
        }
        member.is_bound = true;
        self.waited.add_ms(now.duration_since(member.made));
        self.bound += 1;
        self.last_bound = Some(now);
        if let Some(gang) = gang {
            self.bind_one_of(gang, now);
        }
        true
    }

    fn bind_one_of(&mut self, gang: &str, now: Instant) {
        let new = Gang { bound: 0, last: now, was_torn: false };
        let gang = self.gangs.entry(gang.to_owned()).or_insert(new);
        gang.was_torn |= now.duration_since(gang.last) > TORN;
        gang.last = now;
        gang.bound += 1;
        // A gang of one is whole at once.
        self.partial += usize::from(gang.bound == 1);
        self.partial -= usize::from(gang.bound == self.gang_size);
        self.partial_most = self.partial_most.max(self.partial);
    }

    pub(super) const fn bound(&self) -> usize {
        self.bound
    }

    /// Gangs that are bound in part.
    pub(super) const fn partial(&self) -> usize {
        self.partial
    }

    /// The most that ever were at the same time.
    pub(super) const fn partial_most(&self) -> usize {
        self.partial_most
    }

    /// Gangs of which all are bound.
    pub(super) fn whole(&self) -> usize {
        self.gangs.values().filter(|gang| gang.bound >= self.gang_size).count()
    }

    /// Gangs that stood there in part for a while, as far as is known by now.
    pub(super) fn torn(&self, now: Instant) -> usize {
        let is_torn = |gang: &&Gang| {
            let is_partial = gang.bound < self.gang_size;
            gang.was_torn || (is_partial && now.duration_since(gang.last) > TORN)
        };
        self.gangs.values().filter(is_torn).count()
    }

    /// Milliseconds from the moment a pod was there until it was bound.
    pub(super) const fn waited_ms(&self) -> &Sample {
        &self.waited
    }

    /// When the last pod was made.
    pub(super) const fn last_made(&self) -> Option<Instant> {
        self.last_made
    }

    /// When the last pod was bound.
    pub(super) const fn last_bound(&self) -> Option<Instant> {
        self.last_bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn pods_count_once_and_wait_from_when_they_were_first_seen() {
        let (mut book, begin) = (Bindings::new(2), Instant::now());
        assert!(!book.see("a", None, false, begin));
        assert!(!book.see("a", None, false, begin + SECOND));
        assert!(book.see("a", None, true, begin + SECOND * 3));
        assert!(!book.see("a", None, true, begin + SECOND * 4));
        assert_eq!((book.bound(), book.whole(), book.partial()), (1, 0, 0));
        assert!((book.waited_ms().median() - 3000.0).abs() < f64::EPSILON);
        assert_eq!(book.last_made(), Some(begin));
        assert_eq!(book.last_bound(), Some(begin + SECOND * 3));
    }

    #[test]
    fn gangs_are_partial_until_all_are_bound_and_torn_after_a_pause() {
        let (mut book, begin) = (Bindings::new(2), Instant::now());
        for (pod, gang) in [("a-0", "a"), ("b-0", "b")] {
            book.see(pod, Some(gang), true, begin);
        }
        assert_eq!((book.partial(), book.partial_most(), book.whole()), (2, 2, 0));
        book.see("a-1", Some("a"), true, begin + SECOND);
        assert_eq!((book.partial(), book.whole()), (1, 1));
        assert_eq!(book.torn(begin + SECOND * 2), 0);
        assert_eq!(book.torn(begin + SECOND * 3), 1);
        book.see("b-1", Some("b"), true, begin + SECOND * 3);
        // Whole in the end, and torn before.
        assert_eq!((book.partial(), book.partial_most(), book.whole()), (0, 2, 2));
        assert_eq!(book.torn(begin + SECOND * 9), 1);
    }
}
