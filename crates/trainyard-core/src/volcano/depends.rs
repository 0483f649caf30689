//! Tasks that wait for others: which may start.
//!
//! Must not know how pods are made.

use std::collections::BTreeSet;

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
    let ready = ready(draft, spec);
    let has_pods: BTreeSet<&str> = members(draft)
        .filter(|(pod, _)| !is_condemned(draft, pod))
        .map(|(_, view)| &*view.name)
        .chain(counts::succeeded(draft, spec).into_keys())
        .collect();
    let is_met = |task: &TaskSpec| {
        let mut all = task.depends_on.iter().map(|name| ready.contains(name.as_str()));
        if task.depends_on_any { all.any(|ready| ready) } else { all.all(|ready| ready) }
    };
    let has_started = |task: &&TaskSpec| is_met(task) || has_pods.contains(task.name.as_str());
    spec.tasks.iter().filter(has_started).collect()
}

/// The tasks of which enough pods are ready, or have done their work. Many may wait for one, so each is
/// looked at once.
fn ready<'s>(draft: &Draft<'_>, spec: &'s JobSpec) -> BTreeSet<&'s str> {
    let mut counts = counts::succeeded(draft, spec);
    let running = members(draft).filter(|(pod, view)| {
        pod.phase == Phase::Running
            && view.is_ready
            && pod.deletion.is_none()
            && !is_condemned(draft, pod)
    });
    for (_, view) in running {
        *counts.entry(&*view.name).or_default() += 1;
    }
    let count = |task: &TaskSpec| counts.get(task.name.as_str()).copied().unwrap_or(0);
    let ready = spec.tasks.iter().filter(|task| count(task) >= task.min_available);
    ready.map(|task| task.name.as_str()).collect()
}
