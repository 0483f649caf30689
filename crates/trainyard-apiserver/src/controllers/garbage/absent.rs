//! UIDs that are known not to exist. They never come back, so that one look is enough for all
//! dependents of a gone owner. Bounded: the oldest are forgotten first.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use super::graph::Uid;

const LIMIT: usize = 4096;

/// The known absent.
#[derive(Debug, Default)]
pub(super) struct Absent {
    inner: Mutex<(BTreeSet<Uid>, VecDeque<Uid>)>,
}

impl Absent {
    pub(super) fn add(&self, uid: Uid) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, order) = &mut *inner;
        if known.insert(Uid::clone(&uid)) {
            order.push_back(uid);
            if order.len() > LIMIT
                && let Some(oldest) = order.pop_front()
            {
                known.remove(&oldest);
            }
        }
    }

    pub(super) fn contains(&self, uid: &str) -> bool {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).0.contains(uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_first() {
        let absent = Absent::default();
        for number in 0..=LIMIT {
            absent.add(number.to_string().into());
            absent.add(number.to_string().into());
        }
        assert!(!absent.contains("0"));
        assert!(absent.contains("1") && absent.contains(&LIMIT.to_string()));
    }
}
