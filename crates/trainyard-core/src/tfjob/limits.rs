//! Limits in time: the deadline of a job and the time it may take to start.
//!
//! Must not stop anything itself.

use jiff::Timestamp;
use trainyard_api::{ConditionType, JobStatus, RunPolicy, time::after_seconds};

/// When the job is past its deadline, if it has one.
#[must_use]
pub(super) fn deadline(policy: &RunPolicy, status: &JobStatus) -> Option<Timestamp> {
    Some(after_seconds(status.start_time?, policy.deadline_seconds?))
}

/// Since when the job is to run: since it was accepted or last resumed. It starts later if it has
/// to wait for its gang.
#[must_use]
pub(super) fn asked_at(status: &JobStatus) -> Option<Timestamp> {
    let turn = |kind| status.condition(kind).and_then(|one| one.last_transition_time);
    turn(ConditionType::Created).max(turn(ConditionType::Suspended)).or(status.start_time)
}

/// By when all pods have to run, if that is limited and they have not run yet. Waiting for the
/// gang counts.
#[must_use]
pub(super) fn start_deadline(policy: &RunPolicy, status: &JobStatus) -> Option<Timestamp> {
    if status.running_time.is_some() || status.is(ConditionType::Running) {
        return None;
    }
    Some(after_seconds(asked_at(status)?, policy.start_timeout_seconds?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(second: i64) -> JobStatus {
        JobStatus { start_time: Timestamp::from_second(second).ok(), ..JobStatus::default() }
    }

    #[test]
    fn counted_from_the_start() {
        let policy = RunPolicy { deadline_seconds: Some(60), ..RunPolicy::default() };
        assert_eq!(deadline(&policy, &started(100)), Timestamp::from_second(160).ok());
        assert_eq!(deadline(&policy, &JobStatus::default()), None);
        assert_eq!(deadline(&RunPolicy::default(), &started(100)), None);
    }

    #[test]
    fn a_huge_deadline_does_not_overflow() {
        let policy = RunPolicy { deadline_seconds: Some(i64::MAX), ..RunPolicy::default() };
        assert_eq!(deadline(&policy, &started(100)), Some(Timestamp::MAX));
    }

    #[test]
    fn starting_is_limited_only_until_the_job_first_runs() {
        let policy = RunPolicy { start_timeout_seconds: Some(5), ..RunPolicy::default() };
        let mut status = started(100);
        assert_eq!(start_deadline(&policy, &status), Timestamp::from_second(105).ok());
        status.running_time = Timestamp::from_second(103).ok();
        assert_eq!(start_deadline(&policy, &status), None);
    }
}
