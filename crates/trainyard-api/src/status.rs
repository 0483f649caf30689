//! What the operator records about a job.
//!
//! The shape of the reference operator's status, plus the evidence that lets a pass be repeated
//! after a crash without counting anything twice. Must not decide anything.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    limits::{ENTRIES_MAX, RECORDS_MAX, first_entries, first_items},
    replica::ReplicaType,
};

/// Status of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobStatus {
    /// Conditions, in the order of their last change.
    #[serde(deserialize_with = "readable_items")]
    pub conditions: Vec<Condition>,
    /// Counts per replica type.
    #[serde(deserialize_with = "readable_entries")]
    pub replica_statuses: BTreeMap<ReplicaType, ReplicaStatus>,
    /// When the operator first acted on the job, or when it was last resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<Timestamp>,
    /// When all replicas first ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_time: Option<Timestamp>,
    /// When the job succeeded or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<Timestamp>,
    /// Left as the reference operator wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_reconcile_time: Option<Timestamp>,
    /// Generation of the specification that this status answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Restarts that count towards `backoffLimit`, over the life of the job.
    #[serde(skip_serializing_if = "is_zero")]
    pub restarts: i64,
    /// Attempt of the whole job; grows with `restartScope: Job`.
    #[serde(skip_serializing_if = "is_zero")]
    pub attempt: i64,
    /// Replicas that were restarted, and what is known of it, in the order of their names.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "records")]
    pub replica_records: Vec<ReplicaRecord>,
    /// Replicas that do not run now although they have started, or whose node cannot be reached; the
    /// first few of them.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "readable_items")]
    pub unavailable_replicas: Vec<UnavailableReplica>,
    /// Why the job failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Digest of what has no effect any more in the specification of a job that has ended.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ended_spec: String,
}

/// One condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What the condition is about.
    #[serde(rename = "type")]
    pub kind: ConditionType,
    /// `True` or `False`; other text is kept and counts as not true.
    pub status: String,
    /// One word in camel case.
    #[serde(default)]
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
    /// When the condition was last written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// When `status` last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
}

impl Condition {
    /// Whether the condition holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.status == "True"
    }
}

/// What a condition is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionType {
    /// The job has been accepted.
    Created,
    /// All its pods have started.
    Running,
    /// A replica is being restarted, or cannot be reached.
    Restarting,
    /// The API server refuses what has to be created for the job.
    ReplicaFailure,
    /// The job has succeeded. Final.
    Succeeded,
    /// The job is suspended.
    Suspended,
    /// The job has failed. Final.
    Failed,
}

/// Counts of one replica type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicaStatus {
    /// Pods that run.
    #[serde(skip_serializing_if = "is_zero")]
    pub active: i64,
    /// Replicas that have completed.
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: i64,
    /// Pods that ended with an error and are still there.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: i64,
    /// Completed indices, as `0-3,5`; they are never run again.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub completed_indexes: String,
    /// Indices that have started at least once, as `0-3,5`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub started_indexes: String,
    /// Label selector of the type's pods, for autoscalers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub selector: String,
}

/// What is known about restarts of one replica.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReplicaRecord {
    /// The replica, as `worker-0`.
    pub replica: String,
    /// The pod that was last examined.
    pub uid: String,
    /// Container restarts of that pod that are already counted.
    #[serde(skip_serializing_if = "is_zero")]
    pub in_place: i64,
    /// That pod's end has been dealt with: it is to be deleted and its successor created.
    #[serde(skip_serializing_if = "is_false")]
    pub replaced: bool,
    /// Restarts that count, in place and by a new pod.
    #[serde(skip_serializing_if = "is_zero")]
    pub restarts: i64,
    /// Ends that were nobody's fault: eviction, preemption, node loss. They do not count.
    #[serde(skip_serializing_if = "is_zero")]
    pub disruptions: i64,
    /// New pods since the last long run; decides how long the next one waits.
    #[serde(skip_serializing_if = "is_zero")]
    pub streak: i64,
    /// When the replica was last restarted by a new pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_restart_time: Option<Timestamp>,
}

/// A replica that has started and does not run now, or whose node cannot be reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnavailableReplica {
    /// The replica, as `worker-0`.
    pub replica: String,
    /// Since when it does not run, as far as is known.
    pub since: Timestamp,
    /// Why, in one word: `NodeUnreachable`, `Deleted`, `CrashLoopBackOff`, who of the cluster has deleted its
    /// pod (`DeletionByTaintManager` …), or how its program ended (`Error`, `OOMKilled` …).
    pub reason: String,
    /// The same for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Why a job failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Failure {
    /// What ended the job.
    pub kind: FailureKind,
    /// The pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// Its container.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub container: String,
    /// Exit code of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// The signal that ended it, by name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub signal: String,
    /// One word from the kubelet: `Error`, `OOMKilled`, `Evicted` …
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Last words: the termination message, or the last lines of the log.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// What ended a job that failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// A replica failed for good.
    #[default]
    ReplicaFailed,
    /// `backoffLimit` was reached.
    BackoffLimitExceeded,
    /// `activeDeadlineSeconds` has passed.
    DeadlineExceeded,
    /// `startTimeoutSeconds` has passed.
    StartTimeout,
    /// The specification cannot be run.
    InvalidSpec,
}

impl FailureKind {
    /// Whether the job was ended from outside while replicas still ran, so that they are stopped
    /// whatever the pod policy says.
    #[must_use]
    pub const fn stops_everything(self) -> bool {
        matches!(self, Self::BackoffLimitExceeded | Self::DeadlineExceeded | Self::StartTimeout)
    }
}

impl JobStatus {
    /// The condition of that type.
    #[must_use]
    pub fn condition(&self, kind: ConditionType) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.kind == kind)
    }

    /// Whether the condition of that type holds.
    #[must_use]
    pub fn is(&self, kind: ConditionType) -> bool {
        self.condition(kind).is_some_and(Condition::holds)
    }

    /// Whether the job has succeeded or failed.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.is(ConditionType::Succeeded) || self.is(ConditionType::Failed)
    }
}

/// A record for each replica, and no more, in the order of their names.
fn records<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ReplicaRecord>, D::Error> {
    let mut records: Vec<ReplicaRecord> = first_items(deserializer, RECORDS_MAX)?;
    records.sort_by(|one, other| one.replica.cmp(&other.replica));
    Ok(records)
}

/// Items that can be read; a condition of a type we do not know must not hide the others.
fn readable_items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items: Vec<Value> = first_items(deserializer, ENTRIES_MAX)?;
    Ok(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect())
}

/// Entries whose key and value can be read.
fn readable_entries<'de, D>(
    deserializer: D,
) -> Result<BTreeMap<ReplicaType, ReplicaStatus>, D::Error>
where
    D: Deserializer<'de>,
{
    let entries: BTreeMap<String, Value> = first_entries(deserializer, ENTRIES_MAX)?;
    Ok(entries
        .into_iter()
        .filter_map(|(key, value)| {
            Some((ReplicaType::parse(&key)?, serde_json::from_value(value).ok()?))
        })
        .collect())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(number: &i64) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_condition_does_not_hide_a_terminal_one() {
        let status: JobStatus = serde_json::from_value(json!({
            "conditions": [
                {"type": "Archived", "status": "True"},
                {"type": "Succeeded", "status": "True", "reason": "TFJobSucceeded"},
            ],
            "replicaStatuses": {"Worker": {"succeeded": 2}, "Gardener": {"active": 1}},
        }))
        .unwrap();
        assert!(status.is_finished());
        assert_eq!(status.replica_statuses[&ReplicaType::Worker].succeeded, 2);
        assert_eq!(status.replica_statuses.len(), 1);
    }

    #[test]
    fn zero_counts_are_left_out() {
        let mut status = JobStatus::default();
        status.replica_statuses.insert(ReplicaType::Ps, ReplicaStatus::default());
        assert_eq!(
            serde_json::to_value(&status).unwrap(),
            json!({"conditions": [], "replicaStatuses": {"PS": {}}})
        );
    }
}
