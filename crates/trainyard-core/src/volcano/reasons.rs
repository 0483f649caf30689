//! Why a job waits, or runs without some of its pods, in its state: a claim that is not there, an object that the
//! API server refuses, a node that cannot be reached, the PodGroup's obstacle, or what the first pod in trouble waits for.
//!
//! Phases that an action leads to carry their reason already. Must not decide anything.

use std::fmt::Write as _;

use trainyard_api::volcano::{JobPhase, JobSpec, TaskSpec};

use super::{
    depends,
    draft::Draft,
    events::{is_condemned, members},
    group, volumes,
};
use crate::{phase::Phase, plan::Event, tfjob::running::trouble};

/// Reason of a pod whose node cannot be reached, in states and events.
const UNREACHABLE: &str = "NodeUnreachable";
/// Most pods that a message names.
const NAMED: usize = 5;

/// Updates reason and message of a job that waits or runs. `is_short` tells that something is to be created: what
/// could not be created before says nothing of a job that has all it asks for.
pub(super) fn update(draft: &mut Draft<'_>, spec: &JobSpec, is_short: bool) {
    let refused = || {
        let words = draft.seen.create_failure.filter(|_| is_short)?;
        Some(("FailedCreate".to_owned(), words.to_owned()))
    };
    let unreachable = || lost_nodes(draft).map(|message| (UNREACHABLE.to_owned(), message));
    let why = match draft.phase() {
        JobPhase::Pending => volumes::problem(draft.seen, spec)
            .map(|problem| ("PVCError".to_owned(), problem))
            .or_else(refused)
            .or_else(unreachable)
            .or_else(|| obstacle(draft))
            .or_else(|| waiting_pod(draft))
            .or_else(|| waiting_group(draft, spec))
            .or_else(|| waiting_task(draft, spec)),
        JobPhase::Running => refused().or_else(unreachable).or_else(|| waiting_pod(draft)),
        _ => return,
    };
    (draft.status.state.reason, draft.status.state.message) = why.unwrap_or_default();
}

/// What is told of pods whose nodes cannot be reached, as long as that lasts. A phase that ends or restarts the job
/// waits for them, too.
pub(super) fn lost(draft: &Draft<'_>) -> Option<Event> {
    lost_nodes(draft).map(|message| Event::warning(UNREACHABLE, message))
}

fn lost_nodes(draft: &Draft<'_>) -> Option<String> {
    let mut lost = members(draft).filter_map(|(pod, _)| Some((pod, pod.unreachable?)));
    let (first, how) = lost.next()?;
    let mut text = format!("The node of pod {} cannot be reached", first.name);
    if let Some(since) = how.since {
        let _ = write!(text, " since {since}");
    }
    let others: Vec<&str> = lost.map(|(pod, _)| &*pod.name).collect();
    if !others.is_empty() {
        let more = if others.len() > NAMED { " …" } else { "" };
        let named = others.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        let _ = write!(text, ", nor those of {} others: {named}{more}", others.len());
    }
    Some(text + ".")
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
