//! When a job runs, and what a pod that does not run waits for.
//!
//! A job runs when all its pods have started; with dynamic workers as soon as the deciding type
//! does. TensorBoard does not count. Must not decide how long waiting is allowed.

use trainyard_api::TfJobSpec;

use super::roster::{Roster, Slot, Standing};
use crate::{
    phase::Phase,
    plan::Event,
    view::{ContainerState, ContainerView, PodView},
};

/// Most warnings about pods that are told at a time; a large job in trouble has one for each pod.
const TOLD: usize = 100;

/// Whether the job runs.
#[must_use]
pub(super) fn runs(spec: &TfJobSpec, roster: &Roster<'_>) -> bool {
    if spec.dynamic_workers
        && let Some(kind) = spec.deciding_type()
    {
        return roster.of(kind).any(Slot::runs);
    }
    let started = |slot: &Slot<'_>| slot.runs() || slot.standing == Standing::Completed;
    roster.slots.iter().all(started) && roster.slots.iter().any(Slot::runs)
}

/// The first replica that does not run, and why, in words; `held` says why the gang has no nodes.
#[must_use]
pub(super) fn first_waiting(
    roster: &Roster<'_>,
    job: &str,
    held: Option<&str>,
) -> Option<(String, String)> {
    let slot =
        roster.slots.iter().find(|slot| !slot.runs() && slot.standing != Standing::Completed)?;
    let name = trainyard_api::names::replica_name(job, slot.id.kind.lower(), slot.id.index);
    let why = match slot.pod.map(|pod| (pod, trouble(pod))) {
        Some((pod, _)) if pod.unreachable.is_some() => {
            "waits: NodeUnreachable: its node cannot be reached".to_owned()
        }
        None => match held {
            Some(why) => format!("has not been created: {why}"),
            None => "has not been created".to_owned(),
        },
        Some((_, Some((reason, "")))) => format!("waits: {reason}"),
        Some((_, Some((reason, message)))) => format!("waits: {reason}: {message}"),
        Some((pod, None)) => match held.filter(|_| pod.phase == Phase::Pending) {
            Some(why) => format!("waits: {why}"),
            None => format!("is {:?}", pod.phase),
        },
    };
    Some((name, why))
}

/// What keeps a pod from running: reason and message.
pub(crate) fn trouble(pod: &PodView) -> Option<(&str, &str)> {
    let waiting =
        |container: &ContainerView| matches!(container.state, ContainerState::Waiting { .. });
    let all = || pod.init_containers.iter().chain(&pod.containers);
    let told = |container: &&ContainerView| matches!(&container.state, ContainerState::Waiting { message, .. } if !message.is_empty());
    if let Some(container) = all().find(told).or_else(|| all().find(|c| waiting(c)))
        && let ContainerState::Waiting { reason, message } = &container.state
        && !reason.is_empty()
    {
        return Some((reason, message));
    }
    pod.unscheduled.as_ref().map(|(reason, message)| (&**reason, &**message))
}

/// Warnings about the first pods that are in trouble; `is_said`: why those of a gang have no nodes is said of
/// their group.
#[must_use]
pub(super) fn warnings(roster: &Roster<'_>, is_said: bool) -> Vec<Event> {
    let live = roster.slots.iter().filter(|slot| slot.standing == Standing::Live);
    let pods = live.filter_map(|slot| slot.pod);
    let all = pods.flat_map(|pod| pod_warnings(pod, is_said && pod.is_gang_member));
    all.take(TOLD).collect()
}

fn pod_warnings(pod: &PodView, is_said: bool) -> Vec<Event> {
    let of = |containers: &[ContainerView]| -> Vec<Event> {
        containers.iter().filter_map(|container| container_warning(pod, container)).collect()
    };
    let told = of(&pod.containers);
    let told = if told.is_empty() { of(&pod.init_containers) } else { told };
    match (pod.unscheduled.as_ref().filter(|_| !is_said), pod.phase) {
        (Some((reason, message)), Phase::Pending) if told.is_empty() && !message.is_empty() => {
            vec![Event::warning(
                reason.to_string(),
                format!("Error pod {} condition message: {message}", pod.name),
            )]
        }
        _ => told,
    }
}

fn container_warning(pod: &PodView, container: &ContainerView) -> Option<Event> {
    let (reason, text) = match &container.state {
        ContainerState::Terminated { exit_code, reason, message, .. } if *exit_code != 0 => {
            (reason, format!("exitCode: {exit_code} terminated message: {message}"))
        }
        ContainerState::Waiting { reason, message } if !message.is_empty() => {
            (reason, format!("waiting message: {message}"))
        }
        _ => return None,
    };
    let message = format!("Error pod {} container {} {text}", pod.name, container.name);
    Some(Event::warning(reason.to_string(), message))
}
