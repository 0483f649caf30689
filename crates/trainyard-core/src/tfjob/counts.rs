//! Counts per replica type, and the indices that have started and completed.
//!
//! Must not decide anything from them.

use std::collections::BTreeSet;

use trainyard_api::{ConditionType, JobStatus, ReplicaStatus, ReplicaType, TfJobSpec};

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
        let mut begun = started(status, *kind, spec.count(*kind));
        let mut counts =
            ReplicaStatus { selector: selector(job, *kind), ..ReplicaStatus::default() };
        for slot in roster.of(*kind) {
            let has_ended = matches!(slot.standing, Standing::Completed | Standing::Failed(_));
            if slot.has_started() || has_ended {
                begun.insert(slot.id.index);
            }
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
        counts.started_indexes = indexes::format(&begun);
        (*kind, counts)
    });
    status.replica_statuses = counts.collect::<Vec<_>>().into_iter().collect();
}

/// The indices of a type that have started, as recorded. A job that runs under an operator that
/// recorded none has all of them.
#[must_use]
pub(super) fn started(status: &JobStatus, kind: ReplicaType, count: u32) -> BTreeSet<u32> {
    let Some(counts) = status.replica_statuses.get(&kind) else {
        return BTreeSet::new();
    };
    let all = counts.active + counts.succeeded >= i64::from(count);
    if counts.started_indexes.is_empty()
        && all
        && status.attempt == 0
        && status.is(ConditionType::Running)
    {
        return (0..count).collect();
    }
    let mut started = indexes::parse(&counts.started_indexes);
    started.retain(|index| *index < count);
    started
}

/// Nothing has started yet, as far as what follows is concerned.
pub(super) fn forget_starts(status: &mut JobStatus) {
    for counts in status.replica_statuses.values_mut() {
        counts.started_indexes.clear();
    }
    status.unavailable_replicas.clear();
}

/// Nothing runs any more.
pub(super) fn stop(status: &mut JobStatus) {
    for counts in status.replica_statuses.values_mut() {
        counts.active = 0;
    }
}
