//! The algebra of conditions: how setting one changes the list.
//!
//! Succeeded and Failed are final and exclude each other. The list is in the order of last change,
//! so its last entry is the job's state. Must not decide which condition is due.

use jiff::Timestamp;
use trainyard_api::{Condition, ConditionType, JobStatus};

/// Sets a condition to true.
pub(super) fn set(
    status: &mut JobStatus,
    kind: ConditionType,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    put(status, kind, true, reason, message, now);
}

/// Sets a condition to true with the latest message; the place and the times of one that held before stay.
pub(super) fn update(
    status: &mut JobStatus,
    kind: ConditionType,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let known = status.conditions.iter_mut().find(|c| c.kind == kind && c.holds());
    match known.filter(|c| c.reason == reason) {
        Some(condition) if condition.message != message => {
            condition.message = message;
            condition.last_update_time = Some(now);
        }
        Some(_) => {}
        None => put(status, kind, true, reason, message, now),
    }
}

/// Takes a condition away.
pub(super) fn remove(status: &mut JobStatus, kind: ConditionType) {
    status.conditions.retain(|condition| condition.kind != kind);
}

/// Sets a condition to false, keeping the fact that it once held.
pub(super) fn clear(
    status: &mut JobStatus,
    kind: ConditionType,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    put(status, kind, false, reason, message, now);
}

fn put(
    status: &mut JobStatus,
    kind: ConditionType,
    holds: bool,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    if status.is_finished() {
        return;
    }
    let text = if holds { "True" } else { "False" };
    let before = status.condition(kind);
    if before.is_some_and(|c| c.status == text && c.reason == reason) {
        return;
    }
    let last_transition_time =
        before.filter(|c| c.status == text).and_then(|c| c.last_transition_time).or(Some(now));
    status.conditions.retain(|c| {
        c.kind != kind
            && !(kind == ConditionType::Restarting && c.kind == ConditionType::Running)
            && !(kind == ConditionType::Running && holds && c.kind == ConditionType::Restarting)
    });
    if matches!(kind, ConditionType::Failed | ConditionType::Succeeded) {
        remove(status, ConditionType::ReplicaFailure);
        for running in status.conditions.iter_mut().filter(|c| {
            matches!(c.kind, ConditionType::Running | ConditionType::Restarting) && c.holds()
        }) {
            "False".clone_into(&mut running.status);
            running.last_transition_time = Some(now);
        }
    }
    status.conditions.push(Condition {
        kind,
        status: text.to_owned(),
        reason: reason.to_owned(),
        message,
        last_update_time: Some(now),
        last_transition_time,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use ConditionType::{
        Created, Failed, ReplicaFailure, Restarting, Running, Succeeded, Suspended,
    };

    type Steps<'a> = &'a [(ConditionType, bool)];

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn after(steps: &[(ConditionType, bool)]) -> Vec<String> {
        let mut status = JobStatus::default();
        for (second, (kind, holds)) in (0..).zip(steps) {
            put(&mut status, *kind, *holds, &format!("TFJob{kind:?}"), String::new(), at(second));
        }
        status.conditions.iter().map(|c| format!("{:?} {}", c.kind, c.status)).collect()
    }

    #[test]
    fn traces() {
        let cases: [(Steps<'_>, &[&str]); 11] = [
            (&[(Created, true), (Running, true)], &["Created True", "Running True"]),
            (
                &[(Created, true), (Running, true), (Succeeded, true)],
                &["Created True", "Running False", "Succeeded True"],
            ),
            (&[(Created, true), (Succeeded, true)], &["Created True", "Succeeded True"]),
            (
                &[(Created, true), (Running, true), (Failed, true)],
                &["Created True", "Running False", "Failed True"],
            ),
            (
                &[(Created, true), (Running, true), (Restarting, true)],
                &["Created True", "Restarting True"],
            ),
            (
                &[(Created, true), (Running, true), (Restarting, true), (Running, true)],
                &["Created True", "Running True"],
            ),
            (
                &[(Created, true), (Running, true), (Running, false), (Suspended, true)],
                &["Created True", "Running False", "Suspended True"],
            ),
            (
                &[(Created, true), (Suspended, true), (Suspended, false), (Running, true)],
                &["Created True", "Suspended False", "Running True"],
            ),
            (
                &[(Created, true), (Restarting, true), (Failed, true)],
                &["Created True", "Restarting False", "Failed True"],
            ),
            (
                &[(Created, true), (Running, true), (ReplicaFailure, true), (Running, true)],
                &["Created True", "Running True", "ReplicaFailure True"],
            ),
            (
                &[(Created, true), (ReplicaFailure, true), (Failed, true)],
                &["Created True", "Failed True"],
            ),
        ];
        for (steps, expected) in cases {
            assert_eq!(after(steps), expected, "{steps:?}");
        }
    }

    #[test]
    fn both_ends_are_final() {
        assert_eq!(after(&[(Succeeded, true), (Failed, true)]), ["Succeeded True"]);
        assert_eq!(after(&[(Failed, true), (Succeeded, true)]), ["Failed True"]);
        assert_eq!(after(&[(Failed, true), (Running, true)]), ["Failed True"]);
    }

    #[test]
    fn the_same_again_changes_nothing() {
        let mut status = JobStatus::default();
        set(&mut status, Running, "TFJobRunning", "a".into(), at(1));
        set(&mut status, Running, "TFJobRunning", "b".into(), at(2));
        assert_eq!(status.conditions.len(), 1);
        assert_eq!(status.conditions[0].message, "a");
        assert_eq!(status.conditions[0].last_update_time, Some(at(1)));
    }

    #[test]
    fn the_latest_message_stands_where_the_condition_was() {
        let mut status = JobStatus::default();
        update(&mut status, ReplicaFailure, "FailedCreate", "a".into(), at(1));
        set(&mut status, Running, "TFJobRunning", String::new(), at(2));
        update(&mut status, ReplicaFailure, "FailedCreate", "b".into(), at(3));
        let first = &status.conditions[0];
        assert_eq!((first.kind, first.message.as_str()), (ReplicaFailure, "b"));
        assert_eq!(first.last_transition_time, Some(at(1)));
        assert_eq!(first.last_update_time, Some(at(3)));
    }

    #[test]
    fn a_new_reason_keeps_the_time_of_transition() {
        let mut status = JobStatus::default();
        set(&mut status, Suspended, "TFJobSuspended", String::new(), at(1));
        set(&mut status, Suspended, "Other", String::new(), at(2));
        assert_eq!(status.conditions[0].last_update_time, Some(at(2)));
        assert_eq!(status.conditions[0].last_transition_time, Some(at(1)));
    }
}
