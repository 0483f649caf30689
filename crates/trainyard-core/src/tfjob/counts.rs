//! Counts per replica type, and the completed indices.
//!
//! Must not decide anything from them.

use trainyard_api::{JobStatus, ReplicaStatus, TfJobSpec};

use super::{
    indexes,
    objects::selector,
    roster::{Roster, Standing, completed},
};

/// Writes the counts of this pass into the status. Types that are no longer asked for go; a
/// completed index stays completed, whatever becomes of its pod.
pub(super) fn update(status: &mut JobStatus, job: &str, spec: &TfJobSpec, roster: &Roster<'_>) {
    let counts = spec.replicas.keys().map(|kind| {
        let mut done = completed(status, *kind);
        let mut counts =
            ReplicaStatus { selector: selector(job, *kind), ..ReplicaStatus::default() };
        for slot in roster.of(*kind) {
            match slot.standing {
                Standing::Completed => {
                    done.insert(slot.id.index);
                    counts.succeeded += 1;
                }
                Standing::Failed(_) => counts.failed += 1,
                _ if slot.runs() => counts.active += 1,
                _ => {}
            }
        }
        counts.completed_indexes = indexes::format(&done);
        (*kind, counts)
    });
    status.replica_statuses = counts.collect::<Vec<_>>().into_iter().collect();
}

/// Nothing runs any more.
pub(super) fn stop(status: &mut JobStatus) {
    for counts in status.replica_statuses.values_mut() {
        counts.active = 0;
    }
}
