//! Why a job waits, in its state: a claim that is not there, an object that the API server refuses, the PodGroup's
//! obstacle, or what the first pod in trouble waits for.
//!
//! Phases that an action leads to carry their reason already. Must not decide anything.

use trainyard_api::volcano::{JobPhase, JobSpec, TaskSpec};

use super::{
    depends,
    draft::Draft,
    events::{is_condemned, members},
    group, volumes,
};
use crate::{phase::Phase, plan::Event, tfjob::running::trouble};

/// Updates reason and message of a job that waits.
pub(super) fn update(draft: &mut Draft<'_>, spec: &JobSpec) {
    if draft.phase() != JobPhase::Pending {
        return;
    }
    let claim = volumes::problem(draft.seen, spec).map(|problem| ("PVCError".to_owned(), problem));
    let refused =
        draft.seen.create_failure.map(|words| ("FailedCreate".to_owned(), words.to_owned()));
    let (reason, message) = claim
        .or(refused)
        .or_else(|| obstacle(draft))
        .or_else(|| waiting_pod(draft))
        .or_else(|| waiting_group(draft, spec))
        .or_else(|| waiting_task(draft, spec))
        .unwrap_or_default();
    draft.status.state.reason = reason;
    draft.status.state.message = message;
}

/// What is told of a PodGroup that cannot be placed, as long as it lasts.
pub(super) fn notice(draft: &Draft<'_>) -> Option<Event> {
    let condition = group::current(draft)?.facts.status.obstacle()?;
    let meta = draft.meta();
    let message = format!(
        "PodGroup {}:{} {}, reason: {}",
        meta.namespace,
        meta.name,
        condition.r#type.to_lowercase(),
        condition.message
    );
    Some(Event::warning("PodGroupPending", message))
}

fn obstacle(draft: &Draft<'_>) -> Option<(String, String)> {
    let condition = group::current(draft)?.facts.status.obstacle()?;
    let reason = if condition.reason.is_empty() { &condition.r#type } else { &condition.reason };
    Some((reason.clone(), condition.message.clone()))
}

fn waiting_pod(draft: &Draft<'_>) -> Option<(String, String)> {
    members(draft).find_map(|(pod, _)| {
        let waits = pod.phase == Phase::Pending && !is_condemned(draft, pod);
        let (reason, message) = trouble(pod).filter(|(_, message)| waits && !message.is_empty())?;
        Some((reason.to_owned(), format!("Pod {} waits: {message}", pod.name)))
    })
}

/// Nobody has let the group start yet.
fn waiting_group(draft: &Draft<'_>, spec: &JobSpec) -> Option<(String, String)> {
    if group::may_run(draft) {
        return None;
    }
    let message = format!(
        "Its pods are made when the scheduler admits its PodGroup to queue {}.",
        spec.queue
    );
    Some(("PodGroupPending".to_owned(), message))
}

/// A task is not allowed to start yet.
fn waiting_task(draft: &Draft<'_>, spec: &JobSpec) -> Option<(String, String)> {
    let started = depends::started(draft, spec);
    let waits = |task: &&TaskSpec| !started.iter().any(|other| other.name == task.name);
    let task = spec.tasks.iter().find(waits)?;
    let word = if task.depends_on_any { " or " } else { " and " };
    let message =
        format!("Task {} waits until {} is ready.", task.name, task.depends_on.join(word));
    Some(("DependencyNotReady".to_owned(), message))
}
