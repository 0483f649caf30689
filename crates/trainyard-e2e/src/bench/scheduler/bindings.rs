//! Which pods have been made and bound, and how whole their gangs were meanwhile. Pure:
//! must not know who tells it.

use std::collections::BTreeMap;

/// What is known of pods and gangs.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    gang_size: usize,
    /// Whether they are bound.
    members: BTreeMap<String, bool>,
    /// How many are bound of each.
    gangs: BTreeMap<String, usize>,
    bound: usize,
    partial: usize,
    partial_most: usize,
}

impl Bindings {
    pub(super) fn new(gang_size: usize) -> Self {
        Self { gang_size, ..Self::default() }
    }

    /// A pod is there, alone or as one of a gang; whether that is its first binding.
    pub(super) fn see(&mut self, pod: &str, gang: Option<&str>, is_bound: bool) -> bool {
        if !self.members.contains_key(pod) {
            self.members.insert(pod.to_owned(), false);
        }
        let Some(was_bound) = self.members.get_mut(pod) else { return false };
        if *was_bound || !is_bound {
            return false;
        }
        *was_bound = true;
        self.bound += 1;
        if let Some(gang) = gang {
            self.bind_one_of(gang);
        }
        true
    }

    fn bind_one_of(&mut self, gang: &str) {
        let bound = self.gangs.entry(gang.to_owned()).or_default();
        *bound += 1;
        // A gang of one is whole at once.
        self.partial += usize::from(*bound == 1);
        self.partial -= usize::from(*bound == self.gang_size);
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
        self.gangs.values().filter(|bound| **bound >= self.gang_size).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_count_once() {
        let mut book = Bindings::new(2);
        assert!(!book.see("a", None, false));
        assert!(!book.see("a", None, false));
        assert!(book.see("a", None, true));
        assert!(!book.see("a", None, true));
        assert_eq!((book.bound(), book.whole(), book.partial()), (1, 0, 0));
    }

    #[test]
    fn gangs_are_partial_until_all_are_bound() {
        let mut book = Bindings::new(2);
        for (pod, gang) in [("a-0", "a"), ("b-0", "b")] {
            book.see(pod, Some(gang), true);
        }
        assert_eq!((book.partial(), book.partial_most(), book.whole()), (2, 2, 0));
        book.see("a-1", Some("a"), true);
        assert_eq!((book.partial(), book.whole()), (1, 1));
        book.see("b-1", Some("b"), true);
        assert_eq!((book.partial(), book.partial_most(), book.whole()), (0, 2, 2));
    }
}
