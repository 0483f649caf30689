//! What the status of queues is to say, summed up on demand.

use std::collections::BTreeMap;

use crate::queue::{QueueStatus, ROOT};
use crate::{GroupPhase, Queue, State};

/// A queue, and what its status is to say.
#[derive(Debug, Clone)]
pub struct Ledger<'s> {
    /// The queue.
    pub queue: &'s Queue,
    /// What its status is to say. A state that is being closed is closed when nothing is left.
    pub status: QueueStatus,
}

impl State {
    /// All queues that there are, by name.
    #[must_use]
    pub fn ledgers(&self) -> Vec<Ledger<'_>> {
        let mut sums: BTreeMap<&str, QueueStatus> = BTreeMap::new();
        for (_, _, group) in self.facts.groups.iter() {
            let Some(object) = &group.object else { continue };
            let known = group.reported.as_ref().map_or(object.phase, |report| report.phase);
            let sum = sums.entry(&object.queue).or_default();
            let count = match known {
                GroupPhase::Pending => &mut sum.pending,
                GroupPhase::Inqueue => &mut sum.inqueue,
                GroupPhase::Running => &mut sum.running,
                GroupPhase::Unknown => &mut sum.unknown,
                GroupPhase::Completed => &mut sum.completed,
            };
            *count += 1;
        }
        let mut all = crate::Amounts::default();
        for name in self.facts.accounts.keys() {
            all.add(&self.allocated(name));
        }
        let queues = self.facts.accounts.values().filter_map(|account| account.object.as_ref());
        let ledgers = queues.map(|queue| {
            let mut status = sums.remove(queue.name.as_str()).unwrap_or_default();
            let groups = status.pending + status.inqueue + status.running + status.unknown;
            let is_empty = groups + status.completed == 0;
            status.state = match queue.written.state.as_str() {
                "" => "Open".to_owned(),
                "Closing" if is_empty => "Closed".to_owned(),
                other => other.to_owned(),
            };
            status.allocated =
                if queue.name == ROOT { all.clone() } else { self.allocated(&queue.name) };
            Ledger { queue, status }
        });
        ledgers.collect()
    }
}
