//! What a job's status says after a pass, and which pods have thereby been counted. Pure.
//!
//! A pod that has ended is first noted in the status, then let go, then counted: whoever begins again
//! at any point in between counts it once.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::decide::{Tally, condition, is_complete, number};
use super::indexes::Indexes;
use super::view::{Condition, Job, Pod, Status};
use crate::controllers::clock::seconds;

/// No more pods are noted at once: the status stays small.
const NOTED_MAX: usize = 500;

/// The numbers of pods after the pass's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct After {
    pub(super) active: u32,
    pub(super) terminating: u32,
    pub(super) ready: u32,
    /// Whether pods were seen to, so that the job is in the state that its spec asks for.
    pub(super) managed: bool,
}

/// What there is to write, in this order: the status, the pods, the status.
#[derive(Debug)]
pub(super) struct Settled<'a> {
    pub(super) status: Status,
    /// Pods that may go once the status is written.
    pub(super) let_go: Vec<&'a Pod>,
    /// How the job ends when nothing is left.
    pub(super) end: Option<Condition>,
    /// A word to say, with its reason.
    pub(super) said: Option<(&'static str, &'static str)>,
}

/// Settles a pass. `ends` is why the job ends, when it was found to and all its pods were stopped.
pub(super) fn settle<'a>(
    job: &Job,
    pods: &'a [Pod],
    tally: &Tally<'_>,
    after: After,
    ends: Option<Condition>,
    now: Timestamp,
) -> Settled<'a> {
    let mut status = job.status.clone();
    let mut said = None;
    let mut ends = ends;
    if ends.is_none() && is_complete(job, tally.succeeded, after.active) {
        let words = "Reached expected number of succeeded pods";
        ends = Some(condition("SuccessCriteriaMet", "CompletionsReached", words, now));
    } else if ends.is_none() && after.managed {
        said = suspension(job, &mut status, now);
    }
    status.active = after.active;
    status.ready = Some(after.ready);
    status.terminating = Some(after.terminating);
    let tracked: BTreeSet<&str> =
        pods.iter().filter(|pod| pod.is_tracked()).map(Pod::uid).collect();
    status.uncounted_terminated_pods.get_or_insert_default();
    count(&mut status, &tracked);
    let (let_go, whole) = note(job, pods, tally, ends.as_ref(), &mut status);
    let end = ends.map(|ends| announce(&mut status, ends, now)).filter(|_| whole);
    Settled { status, let_go, end, said }
}

/// Says that a job is suspended, or is so no more.
fn suspension(
    job: &Job,
    status: &mut Status,
    now: Timestamp,
) -> Option<(&'static str, &'static str)> {
    let (holds, reason, event, words) = if job.is_suspended() {
        ("True", "JobSuspended", "Suspended", "Job suspended")
    } else {
        ("False", "JobResumed", "Resumed", "Job resumed")
    };
    let mut said = condition("Suspended", reason, words, now);
    holds.clone_into(&mut said.status);
    let there = status.conditions.iter_mut().find(|one| one.r#type == "Suspended");
    match there {
        Some(there) => {
            let same = |one: &Condition| (one.status.clone(), one.reason.clone());
            if same(there) == same(&said) && there.message == said.message {
                return None;
            }
            *there = said;
        }
        None if job.is_suspended() => status.conditions.push(said),
        // What never was cannot end.
        None => return None,
    }
    // The time that a job may take counts from when it last began.
    status.start_time = (!job.is_suspended()).then(|| seconds(now));
    Some((event, words))
}

/// Notes the pods that have ended; whether there was room for all.
fn note<'a>(
    job: &Job,
    pods: &'a [Pod],
    tally: &Tally<'_>,
    ends: Option<&Condition>,
    status: &mut Status,
) -> (Vec<&'a Pod>, bool) {
    let before = job.status.uncounted_terminated_pods.clone().unwrap_or_default();
    let noted = |list: &[String], pod: &Pod| list.iter().any(|uid| uid == pod.uid());
    let completions = job.spec.completions.unwrap_or(0);
    let valid = |index: &u32| *index < completions;
    let fails = ends.is_some_and(|ends| ends.r#type != "SuccessCriteriaMet");
    let mut uncounted = status.uncounted_terminated_pods.take().unwrap_or_default();
    let (mut let_go, mut new) = (Vec::new(), BTreeSet::new());
    let mut whole = true;
    let mut ordered: Vec<&Pod> = pods.iter().filter(|pod| pod.is_tracked()).collect();
    if job.is_indexed() {
        ordered.sort_by_key(|pod| pod.index());
    }
    for pod in ordered {
        let over = job.metadata.is_deleting() || ends.is_some();
        if !(over || pod.has_succeeded() || pod.has_failed()) {
            continue;
        }
        let_go.push(pod);
        let index = pod.index().filter(valid);
        if pod.has_succeeded() && !noted(&before.failed, pod) {
            if job.is_indexed() {
                new.extend(index.filter(|index| !tally.known.has(*index)));
            } else if !noted(&before.succeeded, pod) {
                uncounted.succeeded.push(pod.uid().to_owned());
            }
        } else if (pod.has_failed() || fails)
            && !noted(&before.failed, pod)
            && (!job.is_indexed() || index.is_some())
        {
            uncounted.failed.push(pod.uid().to_owned());
        }
        if new.len() + uncounted.len() >= NOTED_MAX {
            whole = false;
            break;
        }
    }
    status.uncounted_terminated_pods = Some(uncounted);
    if job.is_indexed() {
        let done: Indexes = tally.done.with(new);
        status.succeeded = done.total();
        status.completed_indexes = done.to_string();
    }
    (let_go, whole)
}

/// Says in the status that a job will end; answers the condition that it will end with.
fn announce(status: &mut Status, ends: Condition, now: Timestamp) -> Condition {
    let end = match &*ends.r#type {
        "FailureTarget" => "Failed",
        "SuccessCriteriaMet" => "Complete",
        _ => return ends,
    };
    let end = condition(end, &ends.reason, &ends.message, now);
    if status.condition(&ends.r#type).is_none() {
        status.conditions.push(ends);
    }
    end
}

/// Counts the noted pods that are no longer tracked.
pub(super) fn count(status: &mut Status, tracked: &BTreeSet<&str>) {
    let Some(uncounted) = &mut status.uncounted_terminated_pods else { return };
    let before = (uncounted.succeeded.len(), uncounted.failed.len());
    uncounted.succeeded.retain(|uid| tracked.contains(&**uid));
    uncounted.failed.retain(|uid| tracked.contains(&**uid));
    let less = |before: usize, now: usize| number(before.saturating_sub(now));
    let (succeeded, failed) =
        (less(before.0, uncounted.succeeded.len()), less(before.1, uncounted.failed.len()));
    status.succeeded = status.succeeded.saturating_add(succeeded);
    status.failed = status.failed.saturating_add(failed);
}

/// Ends a job, unless pods are still to be counted or still run; whether it has ended.
pub(super) fn finish(status: &mut Status, end: &Condition) -> bool {
    let uncounted = status.uncounted_terminated_pods.as_ref().is_some_and(|pods| pods.len() > 0);
    if uncounted || status.terminating.is_some_and(|pods| pods > 0) {
        return false;
    }
    if !status.holds(&end.r#type) {
        status.conditions.retain(|one| one.r#type != end.r#type);
        status.conditions.push(end.clone());
    }
    if end.r#type == "Complete" {
        status.completion_time.clone_from(&end.last_transition_time);
    }
    true
}

#[cfg(test)]
#[path = "settle_tests.rs"]
mod tests;
