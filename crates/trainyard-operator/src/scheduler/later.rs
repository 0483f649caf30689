//! What the state is told only after a while: something failed, and trying again at once would fail
//! again. Longer each time, for each object by itself.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use trainyard_sched::Delta;

use crate::backoff::pause;

const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
/// Failures of so many objects are remembered.
const REMEMBERED: usize = 20_000;

/// Told later, in order.
#[derive(Debug, Default)]
pub(super) struct Later {
    waiting: BTreeMap<(Instant, u64), Delta>,
    number: u64,
    failures: BTreeMap<String, u32>,
}

impl Later {
    /// Something failed for the object of that identity.
    pub(super) fn failed(&mut self, uid: &str, delta: Delta, least: Duration, now: Instant) {
        if self.failures.len() >= REMEMBERED {
            self.failures.clear();
        }
        let failures = self.failures.entry(uid.to_owned()).or_default();
        *failures = failures.saturating_add(1);
        let due = now + pause(FIRST, LONGEST, *failures).max(least);
        self.number += 1;
        self.waiting.insert((due, self.number), delta);
    }

    pub(super) fn succeeded(&mut self, uid: &str) {
        self.failures.remove(uid);
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((due, _), _)| *due)
    }

    /// The next one whose time has come.
    pub(super) fn take(&mut self, now: Instant) -> Option<Delta> {
        let entry = self.waiting.first_entry()?;
        (entry.key().0 <= now).then(|| entry.remove())
    }
}
