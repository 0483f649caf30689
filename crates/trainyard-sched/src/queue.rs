//! A queue as the scheduler sees it.
//!
//! Owns reading it from its JSON form. What it may use is `shares`'s.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Amounts;
use crate::amounts::as_text;
use crate::meta::Metadata;

/// The queue of everything that names none.
pub const DEFAULT: &str = "default";
/// The parent of all queues.
pub const ROOT: &str = "root";

/// The status of a queue: its state, what its pods use, its PodGroups by phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueStatus {
    /// `Open`, `Closing`, `Closed`; empty when nobody has said it.
    pub state: String,
    /// What its pods use.
    pub allocated: Amounts,
    /// PodGroups that are not in it yet.
    pub pending: i64,
    /// PodGroups that are in it.
    pub inqueue: i64,
    /// PodGroups that run.
    pub running: i64,
    /// PodGroups of which some members run, but not enough.
    pub unknown: i64,
    /// PodGroups that have ended.
    pub completed: i64,
}

/// A queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its version; 0 when versions cannot be compared.
    pub version: u64,
    /// When it was made, in seconds since 1970.
    pub created: i64,
    /// Its part of what is shared.
    pub weight: i64,
    /// What it may never exceed; a resource that is not named is not limited.
    pub capability: Amounts,
    /// What is kept for it.
    pub guarantee: Amounts,
    /// Its share, where that is said in so many words.
    pub deserved: Amounts,
    /// Whether others may take back what it uses above its share.
    pub is_reclaimable: bool,
    /// Higher ones are served first.
    pub priority: i64,
    /// Whether new pods may start in it.
    pub is_open: bool,
    /// The state that its status names.
    pub state: String,
    /// What its status says.
    pub written: QueueStatus,
    /// Whether one that does not fit holds up those behind it.
    pub is_fifo: bool,
    /// The queue above it.
    pub parent: String,
}

impl Queue {
    /// A queue of weight 1 without limits: what `default` is when nobody has made it.
    #[must_use]
    pub fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            uid: String::new(),
            version: 0,
            created: 0,
            weight: 1,
            capability: Amounts::default(),
            guarantee: Amounts::default(),
            deserved: Amounts::default(),
            is_reclaimable: true,
            priority: 0,
            is_open: true,
            state: "Open".to_owned(),
            written: QueueStatus::default(),
            is_fifo: false,
            parent: ROOT.to_owned(),
        }
    }

    /// What is not honoured, if anything.
    #[must_use]
    pub fn unheeded(&self) -> Option<String> {
        let nested = !matches!(self.parent.as_str(), "" | ROOT);
        nested.then(|| {
            format!(
                "queue {:?}: parent {:?} is not honoured yet, only {ROOT:?} is; \
                 neither its limits nor its state count for {:?}",
                self.name, self.parent, self.name
            )
        })
    }
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
    weight: i64,
    #[serde(deserialize_with = "as_text")]
    capability: BTreeMap<String, String>,
    guarantee: Guarantee,
    #[serde(deserialize_with = "as_text")]
    deserved: BTreeMap<String, String>,
    reclaimable: Option<bool>,
    priority: i64,
    parent: String,
    dequeue_strategy: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Guarantee {
    #[serde(deserialize_with = "as_text")]
    resource: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    state: String,
    #[serde(deserialize_with = "as_text")]
    allocated: BTreeMap<String, String>,
    pending: i64,
    inqueue: i64,
    running: i64,
    unknown: i64,
    completed: i64,
}

impl<'de> Deserialize<'de> for Queue {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let Wire { metadata, spec, status } = Wire::deserialize(reader)?;
        Ok(Self {
            version: metadata.version(),
            created: metadata.created(),
            name: metadata.name,
            uid: metadata.uid,
            weight: spec.weight.clamp(1, 65_535),
            capability: Amounts::read(&spec.capability),
            guarantee: Amounts::read(&spec.guarantee.resource),
            deserved: Amounts::read(&spec.deserved),
            is_reclaimable: spec.reclaimable.unwrap_or(true),
            priority: spec.priority,
            // A state nobody has written yet is an open one.
            is_open: matches!(status.state.as_str(), "" | "Open"),
            written: QueueStatus {
                state: status.state.clone(),
                allocated: Amounts::read(&status.allocated),
                pending: status.pending,
                inqueue: status.inqueue,
                running: status.running,
                unknown: status.unknown,
                completed: status.completed,
            },
            state: if status.state.is_empty() { "Open".to_owned() } else { status.state },
            is_fifo: spec.dequeue_strategy == "fifo",
            parent: spec.parent,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn a_queue_is_read_with_its_defaults() {
        let queue: Queue = from_value(json!({"metadata": {"name": "q"}})).unwrap();
        assert_eq!((queue.weight, queue.is_reclaimable, queue.is_open), (1, true, true));
        assert_eq!(queue.unheeded(), None);
        let queue: Queue =
            from_value(json!({"metadata": {"name": "q"}, "spec": {"weight": 0}})).unwrap();
        assert_eq!(queue.weight, 1);
        let queue: Queue = from_value(json!({
            "metadata": {"name": "q"},
            "spec": {"weight": 3, "reclaimable": false, "parent": "team", "dequeueStrategy": "fifo",
                "guarantee": {"resource": {"cpu": "2"}}, "capability": {"cpu": "4"}},
            "status": {"state": "Closing"},
        }))
        .unwrap();
        assert_eq!((queue.weight, queue.is_reclaimable, queue.is_open), (3, false, false));
        assert!(queue.is_fifo && queue.unheeded().unwrap().contains("team"));
        assert_eq!((queue.guarantee.get("cpu"), queue.capability.get("cpu")), (2000, 4000));
    }
}
