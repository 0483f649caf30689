//! When a job has succeeded.
//!
//! Chief or master decides; without one, worker 0, or all workers under `AllWorkers`. A job that
//! has neither succeeds when every replica has. Must not look at failures.

use trainyard_api::{ReplicaType, SuccessPolicy, TfJobSpec};

use super::roster::{Roster, Slot, Standing};

/// Whether the job has succeeded.
#[must_use]
pub(super) fn succeeded(spec: &TfJobSpec, roster: &Roster<'_>) -> bool {
    let done = |slot: &Slot<'_>| slot.standing == Standing::Completed;
    match spec.deciding_type() {
        Some(ReplicaType::Worker) => {
            let first = roster.of(ReplicaType::Worker).next().is_some_and(done);
            let all = roster.of(ReplicaType::Worker).all(done);
            all || (first && spec.success_policy == SuccessPolicy::Default)
        }
        Some(kind) => roster.of(kind).all(done),
        None => !roster.slots.is_empty() && roster.slots.iter().all(done),
    }
}

/// Whether no worker is left that could still bring success, although failures of single workers
/// are tolerated.
#[must_use]
pub(super) fn out_of_workers(spec: &TfJobSpec, roster: &Roster<'_>) -> bool {
    spec.dynamic_workers
        && spec.deciding_type() == Some(ReplicaType::Worker)
        && roster
            .of(ReplicaType::Worker)
            .all(|slot| matches!(slot.standing, Standing::Completed | Standing::Failed(_)))
}
