//! Counts of pods. A pod that is being deleted, or is about to be, counts as such and nothing else;
//! one that stays after a kill goes on counting.
//!
//! Must not decide anything from them.

use std::collections::BTreeMap;

use trainyard_api::volcano::{JobPhase, JobSpec, TaskCount};

use super::{
    draft::Draft,
    events::{self, SUCCEEDED, ended, is_condemned, members, place},
};
use crate::{phase::Phase, view::PodView};

/// Writes the counts of this pass into the status.
pub(super) fn update(draft: &mut Draft<'_>, spec: &JobSpec) {
    let mut phases: BTreeMap<&str, i64> = BTreeMap::new();
    let mut tasks: BTreeMap<String, TaskCount> = BTreeMap::new();
    let mut add = |task: &str, phase: &'static str| {
        *phases.entry(phase).or_default() += 1;
        let task = tasks.entry(task.to_owned()).or_default();
        *task.phase.entry(phase.to_owned()).or_default() += 1;
    };
    let mut terminating = 0;
    for (pod, task) in members(draft) {
        if is_going(draft, pod) {
            terminating += 1;
        } else {
            add(&task.name, word(events::phase(draft, pod)));
        }
    }
    for task in done_and_gone(draft, spec) {
        add(task, SUCCEEDED);
    }
    let of = |phase| phases.get(phase).copied().unwrap_or(0);
    let status = &mut draft.status;
    status.pending = of("Pending");
    status.running = of("Running");
    status.succeeded = of(SUCCEEDED);
    status.failed = of("Failed");
    status.unknown = of("Unknown");
    status.terminating = terminating;
    status.task_status_count = tasks;
}

/// In an ended job what has ended keeps its number, whatever becomes of its pods; all others are
/// on their way out.
pub(super) fn freeze(draft: &mut Draft<'_>) {
    let left = members(draft).filter(|(pod, _)| pod.deletion.is_some() || !ended(pod));
    draft.status.terminating = i64::try_from(left.count()).unwrap_or(i64::MAX);
    let status = &mut draft.status;
    status.pending = 0;
    status.running = 0;
    status.unknown = 0;
    for task in status.task_status_count.values_mut() {
        task.phase.retain(|phase, _| matches!(phase.as_str(), SUCCEEDED | "Failed"));
    }
    status.task_status_count.retain(|_, task| !task.phase.is_empty());
}

/// How many pods of each task have succeeded; of a task that is not named, none has.
pub(super) fn succeeded<'d>(draft: &Draft<'d>, spec: &'d JobSpec) -> BTreeMap<&'d str, i64> {
    let there = members(draft)
        .filter(|(pod, _)| pod.phase == Phase::Succeeded && !is_going(draft, pod))
        .map(|(_, view)| &*view.name);
    let mut counts = BTreeMap::new();
    for task in there.chain(done_and_gone(draft, spec)) {
        *counts.entry(task).or_default() += 1;
    }
    counts
}

/// The tasks of pods that have done their work and are not there any more, one for each.
fn done_and_gone<'s>(draft: &Draft<'_>, spec: &'s JobSpec) -> Vec<&'s str> {
    let records = draft.status.pods.iter();
    records
        .filter(|(name, record)| record.phase == SUCCEEDED && !draft.crew.has(name))
        .filter_map(|(name, _)| place(draft, spec, name).map(|(task, _)| task.name.as_str()))
        .collect()
}

/// In a phase that ends the job all go that have not ended; elsewhere those that are recorded.
fn is_going(draft: &Draft<'_>, pod: &PodView) -> bool {
    let goes = match draft.phase() {
        JobPhase::Pending | JobPhase::Running | JobPhase::Restarting => is_condemned(draft, pod),
        _ => !ended(pod),
    };
    goes || pod.deletion.is_some()
}

const fn word(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Running => "Running",
        Phase::Succeeded => SUCCEEDED,
        Phase::Failed => "Failed",
        Phase::Unknown => "Unknown",
    }
}
