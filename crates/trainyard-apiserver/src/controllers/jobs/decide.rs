//! What a job needs: whether it ends, and which pods are made or go. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::backoff::Backoff;
use super::indexes::Indexes;
use super::surplus::surplus;
use super::view::{Condition, Job, Pod, time};
use crate::controllers::clock::{between, seconds};

/// No more pods are made or removed in one pass.
const PASS_MAX: usize = 500;

/// No more pods of a job are active at a time, whatever it asks for: all of them are in the memory of one
/// process, and a number is written quickly.
const ACTIVE_MAX: usize = 10_000;

/// What a look at a job and its pods shows.
#[derive(Debug)]
pub(super) struct Tally<'a> {
    pub(super) active: Vec<&'a Pod>,
    /// Pods that have been told to go and still run.
    pub(super) terminating: u32,
    pub(super) ready: u32,
    /// Everything that has succeeded, counted or not.
    pub(super) succeeded: u32,
    /// The same for failures.
    failed: u32,
    /// The indexes that the status knows as done.
    pub(super) known: Indexes,
    /// Those, and those of pods that have succeeded since.
    pub(super) done: Indexes,
    pub(super) backoff: Backoff,
}

pub(super) fn tally<'a>(job: &Job, pods: &'a [Pod], before: &Backoff) -> Tally<'a> {
    let uncounted = job.status.uncounted_terminated_pods.clone().unwrap_or_default();
    let completions = job.spec.completions.unwrap_or(0);
    let valid = |pod: &Pod| {
        pod.is_tracked()
            && (!job.is_indexed() || pod.index().is_some_and(|index| index < completions))
    };
    // A status may name any number of pods.
    let is_new = |pod: &Pod, known: &BTreeSet<&str>| valid(pod) && !known.contains(pod.uid());
    let known: BTreeSet<&str> = uncounted.succeeded.iter().map(String::as_str).collect();
    let succeeded: Vec<&Pod> =
        pods.iter().filter(|pod| pod.has_succeeded() && is_new(pod, &known)).collect();
    let known: BTreeSet<&str> = uncounted.failed.iter().map(String::as_str).collect();
    let failed: Vec<&Pod> =
        pods.iter().filter(|pod| pod.has_failed() && is_new(pod, &known)).collect();
    let active: Vec<&Pod> = pods.iter().filter(|pod| pod.is_active()).collect();
    let known = Indexes::parse(&job.status.completed_indexes, completions);
    let done = pods.iter().filter(|pod| pod.has_succeeded() && valid(pod)).filter_map(Pod::index);
    let done = known.with(done);
    let total = if job.is_indexed() {
        done.total()
    } else {
        sum(&[job.status.succeeded, count(&succeeded), number(uncounted.succeeded.len())])
    };
    Tally {
        terminating: number(pods.iter().filter(|pod| pod.is_terminating()).count()),
        ready: number(active.iter().filter(|pod| pod.is_ready()).count()),
        succeeded: total,
        failed: sum(&[job.status.failed, count(&failed), number(uncounted.failed.len())]),
        backoff: before.after(&succeeded, &failed),
        active,
        known,
        done,
    }
}

fn count(pods: &[&Pod]) -> u32 {
    number(pods.len())
}

pub(super) fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn sum(numbers: &[u32]) -> u32 {
    numbers.iter().copied().fold(0, u32::saturating_add)
}

/// A condition that holds.
pub(super) fn condition(kind: &str, reason: &str, message: &str, now: Timestamp) -> Condition {
    Condition {
        r#type: kind.to_owned(),
        status: "True".to_owned(),
        last_probe_time: Some(seconds(now)),
        last_transition_time: Some(seconds(now)),
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

/// How a job stands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It ends, for this reason.
    Ends(Condition),
    /// It goes on; its time is up in a while.
    GoesOn(Option<Duration>),
}

/// Whether a job ends without its completions, or has been found to end before.
pub(super) fn verdict(job: &Job, pods: &[Pod], tally: &Tally<'_>, now: Timestamp) -> Verdict {
    let held = |kind: &str| job.status.condition(kind).filter(|_| job.status.holds(kind));
    if let Some(met) = held("SuccessCriteriaMet") {
        return Verdict::Ends(met.clone());
    }
    if let Some(target) = held("FailureTarget") {
        return Verdict::Ends(condition("Failed", &target.reason, &target.message, now));
    }
    let limit = job.spec.backoff_limit.unwrap_or(6);
    if tally.failed > limit || restarted_too_often(job, pods, limit) {
        let words = "Job has reached the specified backoff limit";
        return Verdict::Ends(condition("FailureTarget", "BackoffLimitExceeded", words, now));
    }
    let (Some(allowed), false) = (job.spec.active_deadline_seconds, job.is_suspended()) else {
        return Verdict::GoesOn(None);
    };
    let started = time(job.status.start_time.as_ref()).unwrap_or(now);
    let left = Duration::from_secs(allowed).saturating_sub(between(started, now));
    if left.is_zero() && job.status.start_time.is_some() {
        let words = "Job was active longer than specified deadline";
        return Verdict::Ends(condition("FailureTarget", "DeadlineExceeded", words, now));
    }
    Verdict::GoesOn(Some(left))
}

/// Containers that are restarted in place count as retries too.
fn restarted_too_often(job: &Job, pods: &[Pod], limit: u32) -> bool {
    if !job.restarts_in_place() {
        return false;
    }
    let alive = |pod: &&Pod| matches!(&*pod.status.phase, "Running" | "Pending");
    let restarts = sum(&pods.iter().filter(alive).map(Pod::restarts).collect::<Vec<_>>());
    restarts >= limit.max(1)
}

/// What is to be done about a job's pods.
#[derive(Debug, PartialEq)]
pub(super) enum Work<'a> {
    /// These are too many. They are not counted as failures.
    Drop(Vec<&'a Pod>),
    /// New ones, with their indexes if they have some.
    Make(Vec<Option<u32>>),
    /// New ones, but not before this time has passed.
    Wait(Duration),
    Nothing,
}

/// What a job that goes on needs.
pub(super) fn work<'a>(job: &Job, tally: &Tally<'a>, now: Timestamp) -> Work<'a> {
    let active = tally.active.len();
    if job.is_suspended() {
        return drop_some(surplus(job, &tally.active, active));
    }
    let parallelism = (job.spec.parallelism.unwrap_or(1) as usize).min(ACTIVE_MAX);
    let wanted = match job.spec.completions {
        // The first success says that there is nothing left to begin.
        None if tally.succeeded > 0 => active,
        None => parallelism,
        Some(completions) => parallelism.min(completions.saturating_sub(tally.succeeded) as usize),
    };
    let mut gone = surplus(job, &tally.active, active.saturating_sub(wanted));
    if !gone.is_empty() {
        gone.truncate(PASS_MAX);
        return Work::Drop(gone);
    }
    let missing = wanted.saturating_sub(active).min(PASS_MAX);
    if missing == 0 {
        return Work::Nothing;
    }
    if let Some(left) = tally.backoff.left(now) {
        return Work::Wait(left);
    }
    if !job.is_indexed() {
        return Work::Make(vec![None; missing]);
    }
    let taken = tally.done.with(tally.active.iter().filter_map(|pod| pod.index()));
    let next = taken.first_missing(missing, job.spec.completions.unwrap_or(0));
    if next.is_empty() { Work::Nothing } else { Work::Make(next.into_iter().map(Some).collect()) }
}

fn drop_some(pods: Vec<&Pod>) -> Work<'_> {
    if pods.is_empty() { Work::Nothing } else { Work::Drop(pods) }
}

/// Whether a job has all it wanted.
pub(super) fn is_complete(job: &Job, succeeded: u32, active: u32) -> bool {
    active == 0 && succeeded >= job.spec.completions.unwrap_or(1)
}

/// How long a finished job still stays; `None` when it stays for good.
pub(super) fn stay(job: &Job, now: Timestamp) -> Option<Duration> {
    let stays = job.spec.ttl_seconds_after_finished?;
    let ended = ["Complete", "Failed"].into_iter().find(|kind| job.status.holds(kind))?;
    let ended = time(job.status.condition(ended)?.last_transition_time.as_ref())?;
    let stays = SignedDuration::from_secs(i64::try_from(stays).unwrap_or(i64::MAX));
    let until = ended.checked_add(stays).unwrap_or(Timestamp::MAX);
    Some(between(now, until))
}

#[cfg(test)]
#[path = "decide_tests.rs"]
pub(super) mod tests;
