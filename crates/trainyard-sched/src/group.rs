//! A Volcano PodGroup as the scheduler sees it.
//!
//! Owns reading it from its JSON form. Must not know pods.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Amounts;
use crate::amounts::as_text;
use crate::meta::Metadata;

/// So many tasks of a group count, and so many resources of its minimum: by name the first ones. The
/// definition says so where it is ours.
const TASKS_MAX: usize = 1_000;
const RESOURCES_MAX: usize = 256;
/// So many conditions of a group are read, the newest.
const CONDITIONS_MAX: usize = 100;

/// How far a PodGroup has come, as its status says it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum GroupPhase {
    /// Not yet let into its queue.
    #[default]
    Pending,
    /// Let into its queue: its pods may be made.
    Inqueue,
    /// Enough of its pods have a node.
    Running,
    /// Some run, but not enough.
    Unknown,
    /// All have ended.
    Completed,
}

impl GroupPhase {
    /// As status writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Inqueue => "Inqueue",
            Self::Running => "Running",
            Self::Unknown => "Unknown",
            Self::Completed => "Completed",
        }
    }

    fn read(written: &str) -> Self {
        let all = [Self::Inqueue, Self::Running, Self::Unknown, Self::Completed];
        all.into_iter().find(|phase| phase.as_str() == written).unwrap_or_default()
    }
}

/// A PodGroup.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodGroup {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its version; 0 when versions cannot be compared.
    pub version: u64,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// How many members it needs at least.
    pub min_member: usize,
    /// How many of each task it needs at least.
    pub min_task_member: BTreeMap<String, usize>,
    /// What its minimum asks for.
    pub min_resources: Amounts,
    /// Its queue.
    pub queue: String,
    /// Its priority class.
    pub priority_class: String,
    /// Whether it may be evicted for others.
    pub is_preemptable: bool,
    /// How far it has come.
    pub phase: GroupPhase,
    /// Whether its status says nothing yet.
    pub is_new: bool,
    /// Members that run, as its status says.
    pub running: usize,
    /// Members that have ended well, as its status says.
    pub succeeded: usize,
    /// Members that have ended badly, as its status says.
    pub failed: usize,
    /// The conditions of its status, the newest last.
    pub conditions: Vec<GroupCondition>,
}

/// A condition as the status of a PodGroup has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct GroupCondition {
    /// `Scheduled` or `Unschedulable`.
    pub r#type: String,
    /// `True` or `False`.
    pub status: String,
    /// Which decision said it.
    #[serde(rename = "transitionID", skip_serializing_if = "String::is_empty")]
    pub transition_id: String,
    /// When it was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Why, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    min_member: i64,
    min_task_member: BTreeMap<String, i64>,
    #[serde(deserialize_with = "as_text")]
    min_resources: BTreeMap<String, String>,
    queue: String,
    priority_class_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
    running: i64,
    succeeded: i64,
    failed: i64,
    conditions: Vec<GroupCondition>,
}

impl<'de> Deserialize<'de> for PodGroup {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let Wire { metadata, spec, mut status } = Wire::deserialize(reader)?;
        let old = status.conditions.len().saturating_sub(CONDITIONS_MAX);
        status.conditions.drain(..old);
        let said = metadata.marked(crate::pod::PREEMPTABLE);
        let is_preemptable = said.is_none_or(|said| said != "false");
        let tasks = spec.min_task_member.into_iter().map(|(task, least)| (task, count(least)));
        let tasks = tasks.take(TASKS_MAX);
        Ok(Self {
            version: metadata.version(),
            created: metadata.created(),
            namespace: metadata.namespace,
            name: metadata.name,
            uid: metadata.uid,
            min_member: count(spec.min_member),
            min_task_member: tasks.collect(),
            min_resources: resources(spec.min_resources),
            queue: if spec.queue.is_empty() {
                crate::queue::DEFAULT.to_owned()
            } else {
                spec.queue
            },
            priority_class: spec.priority_class_name,
            is_preemptable,
            phase: GroupPhase::read(&status.phase),
            is_new: status.phase.is_empty(),
            running: count(status.running),
            succeeded: count(status.succeeded),
            failed: count(status.failed),
            conditions: status.conditions,
        })
    }
}

fn count(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// Without the keys that only a quota counts.
fn resources(mut written: BTreeMap<String, String>) -> Amounts {
    let quota = |name: &str| ["count/", "requests.", "limits."].iter().any(|p| name.starts_with(p));
    written.retain(|name, _| !quota(name));
    Amounts::read(&written.into_iter().take(RESOURCES_MAX).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_group_is_read_with_its_defaults() {
        let group: PodGroup = from_value(json!({
            "metadata": {"namespace": "n", "name": "g", "annotations": {"volcano.sh/preemptable": "false"}},
            "spec": {
                "minMember": 3, "minTaskMember": {"ps": 1, "worker": -2},
                "minResources": {"cpu": "3", "requests.cpu": "3", "count/pods": "3", "pods": 3},
            },
            "status": {"phase": "Inqueue"},
        }))
        .unwrap();
        assert_eq!((group.min_member, group.queue.as_str()), (3, "default"));
        assert_eq!(group.min_resources, Amounts::from([("cpu", 3000), ("pods", 3)]));
        assert_eq!((group.min_task_member["ps"], group.min_task_member["worker"]), (1, 0));
        assert!(!group.is_preemptable);
        assert_eq!(group.phase, GroupPhase::Inqueue);
        assert_eq!(from_value::<PodGroup>(json!({})).unwrap().phase.as_str(), "Pending");
    }
}
