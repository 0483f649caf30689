//! What is recorded about a Volcano Job.
//!
//! The shape of the reference's status, plus the evidence that lets a pass be repeated after a
//! crash without acting twice. Must not decide anything.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};

use crate::limits::{ENTRIES_MAX, RECORDS_MAX, first_entries, first_items};

/// Status of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolcanoStatus {
    /// How far it is.
    pub state: JobState,
    /// The `minAvailable` that counts.
    pub min_available: i64,
    /// Pods per task and phase.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "few_entries")]
    pub task_status_count: BTreeMap<String, TaskCount>,
    /// Pods that wait.
    #[serde(skip_serializing_if = "is_zero")]
    pub pending: i64,
    /// Pods that run.
    #[serde(skip_serializing_if = "is_zero")]
    pub running: i64,
    /// Pods that ended well.
    #[serde(skip_serializing_if = "is_zero")]
    pub succeeded: i64,
    /// Pods that ended badly.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: i64,
    /// Pods that are being deleted.
    #[serde(skip_serializing_if = "is_zero")]
    pub terminating: i64,
    /// Pods of which nothing is known.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown: i64,
    /// Grows with every kill of the whole job.
    #[serde(skip_serializing_if = "is_zero")]
    pub version: i64,
    /// Grows with every restart.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_count: i64,
    /// How long it has run, as Go writes durations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_duration: Option<String>,
    /// Plugins and claims that belong to it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "few_entries")]
    pub controlled_resources: BTreeMap<String, String>,
    /// Phases, in the order of their last visit.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "few_items")]
    pub conditions: Vec<PhaseRecord>,
    /// Pods that were there when the status was written, by name: the evidence that one has
    /// disappeared, failed or was dealt with.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "record_entries")]
    pub pods: BTreeMap<String, PodRecord>,
    /// Actions that wait for their time.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "record_items")]
    pub timers: Vec<TimerRecord>,
    /// What holds of a task or of the PodGroup and has been dealt with, as `TaskCompleted/worker`:
    /// it is dealt with again only when it has ceased to hold in between.
    #[serde(skip_serializing_if = "BTreeSet::is_empty", deserialize_with = "few_items")]
    pub acted_on: BTreeSet<String>,
    /// UID of the PodGroup that was given up by a restart: another one takes its place.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub retired_group: String,
    /// The Command that was carried out last: it is never carried out twice.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_command: String,
}

/// How far a job is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct JobState {
    /// In one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<JobPhase>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
}

/// How far a job is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum JobPhase {
    /// Its pods are being made or wait.
    Pending,
    /// Enough of its pods run or have run.
    Running,
    /// Its pods are being ended, to be made again.
    Restarting,
    /// Its pods are being ended, at somebody's word.
    Aborting,
    /// None of its pods runs; it can be resumed.
    Aborted,
    /// Its pods are being ended: the work is done.
    Completing,
    /// Done.
    Completed,
    /// Its pods are being ended for good.
    Terminating,
    /// Ended for good.
    Terminated,
    /// Ended badly.
    Failed,
}

impl JobPhase {
    /// Whether nothing changes any more.
    #[must_use]
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Completed | Self::Terminated | Self::Failed)
    }
}

/// Pods of a task by their phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskCount {
    /// How many are in each phase.
    pub phase: BTreeMap<String, i64>,
}

/// When a phase was last entered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PhaseRecord {
    /// Which.
    pub status: JobPhase,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
}

/// What is remembered of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PodRecord {
    /// Its identity.
    pub uid: String,
    /// The phase in which it was last dealt with.
    pub phase: String,
}

/// An action that waits for its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TimerRecord {
    /// The action.
    pub action: super::Action,
    /// What armed it.
    pub event: super::PolicyEvent,
    /// The pod it is about.
    pub pod: String,
    /// The identity of that pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The task of that pod.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// When it is due.
    pub due: Timestamp,
}

/// A record for each pod, and no more.
fn record_entries<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    first_entries(deserializer, RECORDS_MAX)
}

/// The same of a list.
fn record_items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    first_items(deserializer, RECORDS_MAX)
}

fn few_entries<'de, D, T>(deserializer: D) -> Result<BTreeMap<String, T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    first_entries(deserializer, ENTRIES_MAX)
}

fn few_items<'de, D, T, All>(deserializer: D) -> Result<All, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
    All: FromIterator<T> + IntoIterator<Item = T>,
{
    first_items(deserializer, ENTRIES_MAX)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_zero(number: &i64) -> bool {
    *number == 0
}
