//! When an ended job is deleted.
//!
//! Must not know what else the end of a job brings.

use jiff::Timestamp;
use trainyard_api::{ConditionType, JobStatus, RunPolicy, time::after_seconds};

/// When the ended job is to be deleted, if ever. A job whose completion time was never written is
/// counted from the change of its last condition.
#[must_use]
pub(super) fn expiry(policy: &RunPolicy, status: &JobStatus) -> Option<Timestamp> {
    let ttl = policy.ttl_seconds?;
    let ended = status.completion_time.or_else(|| {
        [ConditionType::Succeeded, ConditionType::Failed]
            .into_iter()
            .filter_map(|kind| status.condition(kind).filter(|c| c.holds()))
            .find_map(|condition| condition.last_transition_time)
    })?;
    Some(after_seconds(ended, ttl))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tfjob::conditions;

    #[test]
    fn counted_from_completion_or_from_the_condition() {
        let policy = RunPolicy { ttl_seconds: Some(30), ..RunPolicy::default() };
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut status = JobStatus::default();
        assert_eq!(expiry(&policy, &status), None);
        conditions::set(&mut status, ConditionType::Failed, "TFJobFailed", String::new(), at(50));
        assert_eq!(expiry(&policy, &status), Some(at(80)));
        status.completion_time = Some(at(40));
        assert_eq!(expiry(&policy, &status), Some(at(70)));
        assert_eq!(expiry(&RunPolicy::default(), &status), None);
    }
}
