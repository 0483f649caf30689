//! Tasks that wait for others: which may start.
//!
//! Must not know how pods are made.

use trainyard_api::volcano::{JobSpec, TaskSpec};

use super::{
    counts,
    draft::Draft,
    events::{is_condemned, members},
};
use crate::phase::Phase;

/// The tasks that may start, in the order of the specification. One that has started stays so, also
/// when what it waited for has to start again.
#[must_use]
pub(super) fn started<'s>(draft: &Draft<'_>, spec: &'s JobSpec) -> Vec<&'s TaskSpec> {
    let has_pods = |task: &TaskSpec| {
        let mut pods = members(draft);
        pods.any(|(pod, view)| *view.name == *task.name && !is_condemned(draft, pod))
            || counts::succeeded(draft, spec, &task.name) > 0
    };
    let is_met = |task: &TaskSpec| {
        let mut ready = task.depends_on.iter().map(|name| is_ready(draft, spec, name));
        if task.depends_on_any { ready.any(|ready| ready) } else { ready.all(|ready| ready) }
    };
    spec.tasks.iter().filter(|task| is_met(task) || has_pods(task)).collect()
}

/// Whether enough pods of a task are ready, or have done their work.
fn is_ready(draft: &Draft<'_>, spec: &JobSpec, name: &str) -> bool {
    let Some(task) = spec.task(name) else {
        return false;
    };
    let running = members(draft).filter(|(pod, view)| {
        *view.name == *name
            && pod.phase == Phase::Running
            && view.is_ready
            && pod.deletion.is_none()
            && !is_condemned(draft, pod)
    });
    let running = i64::try_from(running.count()).unwrap_or(i64::MAX);
    running + counts::succeeded(draft, spec, name) >= task.min_available
}
