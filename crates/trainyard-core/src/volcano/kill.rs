//! Ending pods: who is to go, and the writes that make them go.
//!
//! Who is to go is recorded by UID before anything is deleted: a pass that is repeated ends the same
//! pods, and the end of such a pod is no eviction. That is why pods are not marked by an annotation
//! of their own, as the reference does. Must not decide when.

use trainyard_api::volcano::{JobPhase, JobSpec};

use super::{
    draft::Draft,
    events::{self, SUCCEEDED, condemn, ended, is_condemned, members, place},
    state::Retain,
};
use crate::{
    plan::{Plan, Write},
    removal::pod_removal,
};

/// The whole job: a new version begins, in a new PodGroup, and nothing that waited for its time or
/// was dealt with counts any more. The last attempt's ended pods stay, for their logs.
pub(super) fn all(draft: &mut Draft<'_>, spec: &JobSpec, retain: Retain) {
    let is_last = draft.status.retry_count >= spec.max_retry - 1;
    let keeps = |pod| (retain == Retain::Ended || is_last) && ended(pod);
    for (pod, _) in members(draft) {
        if pod.deletion.is_some() || !keeps(pod) {
            condemn(draft, pod);
        }
    }
    if retain == Retain::Nothing {
        forget_done(draft, |_| true);
    }
    events::forget_failed(draft);
    draft.status.version += 1;
    draft.status.timers.clear();
    draft.status.acted_on.clear();
    if let Some(group) = super::group::current(draft) {
        draft.status.retired_group = group.uid.to_string();
    }
}

/// All pods of a task.
pub(super) fn task(draft: &mut Draft<'_>, spec: &JobSpec, task: &str) {
    for (pod, _) in members(draft).filter(|(_, view)| *view.name == *task) {
        condemn(draft, pod);
    }
    let names: Vec<String> = draft
        .status
        .pods
        .keys()
        .filter(|name| place(draft, spec, name).is_some_and(|(of, _)| of.name == task))
        .cloned()
        .collect();
    forget_done(draft, |name| names.iter().any(|other| other == name));
}

/// One pod.
pub(super) fn pod(draft: &mut Draft<'_>, name: &str) {
    for (pod, _) in members(draft).filter(|(pod, _)| *pod.name == *name) {
        condemn(draft, pod);
    }
    forget_done(draft, |other| other == name);
}

/// Forgets that work was done by pods that are not there any more: it is to be done again.
fn forget_done(draft: &mut Draft<'_>, is_meant: impl Fn(&str) -> bool) {
    let crew = draft.crew;
    draft.status.pods.retain(|name, record| {
        crew.has_uid(name, &record.uid) || record.phase != SUCCEEDED || !is_meant(name)
    });
}

/// Deletions of all pods that are to go. In a phase that ends the job these are all that have not
/// ended; elsewhere those that are recorded.
pub(super) fn removals(draft: &Draft<'_>, plan: &mut Plan) -> Vec<Write> {
    let is_ending =
        !matches!(draft.phase(), JobPhase::Pending | JobPhase::Running | JobPhase::Restarting);
    let mut writes = Vec::new();
    for (pod, _) in members(draft) {
        let goes = if is_ending { !ended(pod) } else { is_condemned(draft, pod) };
        if goes || pod.deletion.is_some() {
            writes.extend(pod_removal(pod, draft.now, draft.config, plan));
        }
    }
    writes
}
