//! Replicas that have started and do not run now, and those that cannot start because their node cannot
//! be reached: which, since when, and why.
//!
//! Owns the list of them in the status and the condition `Restarting` that goes with it. Both follow
//! from what is there, whoever saw first that something was missing. Must not restart anything.

use std::{collections::BTreeMap, fmt::Write as _};

use jiff::Timestamp;
use trainyard_api::{
    ConditionType, Failure, JobStatus, ReplicaId, ReplicaType, TfJobSpec, UnavailableReplica,
};

use super::{
    conditions,
    counts::started,
    draft::Draft,
    end::WHOSE,
    failure::sentence,
    restart::Lost,
    roster::{Roster, Slot, Standing},
};
use crate::{
    phase::Phase,
    plan::Event,
    pod_state::CRASH_LOOP,
    view::{Deletion, PodView},
};

/// Most replicas that the status lists one by one.
const LISTED: usize = 20;
/// Most replicas that a message names.
const NAMED: usize = 5;
/// Reason of a replica whose node cannot be reached.
const UNREACHABLE: &str = "NodeUnreachable";

/// Why a replica does not run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Why {
    reason: String,
    message: String,
    /// Since when, where that is known.
    since: Option<Timestamp>,
}

impl Why {
    fn new(reason: &str, message: String, since: Option<Timestamp>) -> Self {
        Self { reason: reason.to_owned(), message, since }
    }
}

/// Why replicas do not run.
pub(super) type Causes = BTreeMap<ReplicaId, Why>;

/// Returns why replicas that had started do not run, and why others cannot start, before anything is
/// decided about them.
#[must_use]
pub(super) fn causes(spec: &TfJobSpec, roster: &Roster<'_>, status: &JobStatus) -> Causes {
    let mut causes = Causes::new();
    for kind in spec.replicas.keys() {
        let started = started(status, *kind, spec.count(*kind));
        for slot in roster.of(*kind) {
            let has_started = started.contains(&slot.id.index);
            let why = if has_started { cause(slot, status) } else { slot.pod.and_then(lost) };
            causes.extend(why.map(|why| (slot.id, why)));
        }
    }
    causes
}

/// Adds the replicas whose ends have just been judged.
pub(super) fn add_restarts(causes: &mut Causes, restarted: &[Lost]) {
    for lost in restarted {
        let reason = match lost.failure.reason.as_str() {
            "" => "Failed",
            reason => reason,
        };
        // The last words are in the condition.
        let message = sentence(&Failure { message: String::new(), ..lost.failure.clone() });
        causes.insert(lost.id, Why::new(reason, message, None));
    }
}

fn cause(slot: &Slot<'_>, status: &JobStatus) -> Option<Why> {
    match (&slot.standing, slot.pod) {
        (Standing::Leaving, Some(pod)) => {
            Some(leaving(pod, pod.deletion.as_ref().and_then(Deletion::asked_at)))
        }
        (Standing::Missing, _) if is_news(status, slot.id) => {
            Some(Why::new("Deleted", "its pod has been deleted.".to_owned(), None))
        }
        (Standing::Live | Standing::Ending(_), Some(pod)) => unknown(pod).or_else(|| {
            let is_new = pod.phase == Phase::Pending && is_news(status, slot.id);
            let message = || format!("pod {} has been made anew and has not started.", pod.name);
            is_new.then(|| Why::new("Deleted", message(), None))
        }),
        _ => None,
    }
}

/// Returns true if nothing is known yet that would explain why the pod which had started is not there.
/// That a node could not be reached says nothing any more when another pod is due.
fn is_news(status: &JobStatus, id: ReplicaId) -> bool {
    find(status, id).is_none_or(|known| known.reason == UNREACHABLE)
}

fn leaving(pod: &PodView, since: Option<Timestamp>) -> Why {
    // Still true when the pod has gone and its successor waits.
    match &*pod.disruption {
        "" => Why::new("Deleted", format!("pod {} has been deleted.", pod.name), since),
        who => {
            let message = format!("the cluster has deleted pod {} ({who}).", pod.name);
            Why::new(who, message, since)
        }
    }
}

/// Why nobody knows whether a pod runs, or its kubelet does not run it at present.
fn unknown(pod: &PodView) -> Option<Why> {
    lost(pod).or_else(|| {
        let message = || format!("pod {} ends again and again; its kubelet waits.", pod.name);
        pod.is_in_crash_loop(WHOSE).then(|| Why::new(CRASH_LOOP, message(), None))
    })
}

/// Why nobody knows what becomes of a pod, if its node cannot be reached.
fn lost(pod: &PodView) -> Option<Why> {
    let unreachable = pod.unreachable?;
    let message = format!("the node of pod {} cannot be reached.", pod.name);
    Some(Why::new(UNREACHABLE, message, unreachable.since))
}

fn find(status: &JobStatus, id: ReplicaId) -> Option<&UnavailableReplica> {
    let replica = id.to_string();
    status.unavailable_replicas.iter().find(|one| one.replica == replica)
}

/// Brings the list and the condition up to date; `is_set` says that the condition has just been set for
/// these very causes. Returns true if a replica is unavailable.
pub(super) fn update(
    draft: &mut Draft<'_>,
    spec: &TfJobSpec,
    roster: &Roster<'_>,
    causes: &Causes,
    is_set: bool,
) -> bool {
    let mut list = list(&draft.status, spec, roster, causes, draft.second());
    let number = list.len();
    list.truncate(LISTED);
    let before = std::mem::replace(&mut draft.status.unavailable_replicas, list);
    if number == 0 && was_only_unreachable(&draft.status, &before) {
        conditions::remove(&mut draft.status, ConditionType::Restarting);
    }
    let now = &draft.status.unavailable_replicas;
    if number == 0 || is_set || (*now == before && draft.status.is(ConditionType::Restarting)) {
        return number > 0;
    }
    // Of a list that was full nobody knows who is new.
    let known = |one: &UnavailableReplica| {
        before.iter().any(|old| old.replica == one.replica && old.reason == one.reason)
    };
    let is_new = before.len() < LISTED && !now.iter().all(known);
    let message = message(&draft.meta().name, now, number);
    draft.update(ConditionType::Restarting, "TFJobRestarting", message.clone());
    if is_new {
        draft.warn_with_status(Event::warning("TFJobRestarting", message));
    }
    true
}

/// Returns true if a job that has never run was held up by lost nodes alone: when they are back, it
/// starts as before.
fn was_only_unreachable(status: &JobStatus, before: &[UnavailableReplica]) -> bool {
    let has_begun = status.running_time.is_some() || status.attempt > 0;
    !has_begun && !before.is_empty() && before.iter().all(|one| one.reason == UNREACHABLE)
}

fn list(
    status: &JobStatus,
    spec: &TfJobSpec,
    roster: &Roster<'_>,
    causes: &Causes,
    now: Timestamp,
) -> Vec<UnavailableReplica> {
    let has_started =
        |id: ReplicaId| started(status, id.kind, spec.count(id.kind)).contains(&id.index);
    let entry = |slot: &Slot<'_>| {
        let (known, why) = (find(status, slot.id), causes.get(&slot.id));
        match (known, why) {
            (None, None) => None,
            // It never ran, and its node is back or it has another pod: it starts like any other.
            (Some(known), None) if known.reason == UNREACHABLE && !has_started(slot.id) => None,
            (Some(known), Some(why)) if known.reason != why.reason => Some(UnavailableReplica {
                reason: why.reason.clone(),
                message: why.message.clone(),
                ..known.clone()
            }),
            (Some(known), _) => Some(known.clone()),
            (None, Some(why)) => Some(UnavailableReplica {
                replica: slot.id.to_string(),
                since: why.since.unwrap_or(now),
                reason: why.reason.clone(),
                message: why.message.clone(),
            }),
        }
    };
    let waived = waived(spec, roster);
    let slots = roster.slots.iter().filter(|slot| Some(slot.id.kind) != waived);
    let away = slots.filter(|slot| {
        !slot.runs() && !matches!(slot.standing, Standing::Completed | Standing::Failed(_))
    });
    away.filter_map(entry).collect()
}

/// The type whose replicas may come and go without the job being any worse for it.
fn waived(spec: &TfJobSpec, roster: &Roster<'_>) -> Option<ReplicaType> {
    let worker = ReplicaType::Worker;
    let decides = spec.deciding_type() == Some(worker);
    let is_waived = spec.dynamic_workers && (!decides || roster.of(worker).any(Slot::runs));
    is_waived.then_some(worker)
}

fn message(job: &str, list: &[UnavailableReplica], number: usize) -> String {
    let Some(first) = list.first() else {
        return String::new();
    };
    let mut text = format!(
        "job {job} is restarting because {} does not run since {}: {}",
        first.replica, first.since, first.message
    );
    if number > 1 {
        let named: Vec<&str> =
            list.iter().skip(1).take(NAMED).map(|one| one.replica.as_str()).collect();
        let more = if number - 1 > named.len() { " …" } else { "" };
        let _ = write!(text, " Nor do {} others: {}{more}.", number - 1, named.join(", "));
    }
    text
}
