//! What is read of nodes, leases and pods to see which nodes live and what becomes of their pods.

use serde::{Deserialize, Serialize};

use crate::controllers::view::{HasMeta, Meta, null_is_empty};

/// A node as it is served.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServedNode {
    pub(super) metadata: Meta,
    pub(super) spec: NodeSpec,
    pub(super) status: NodeStatus,
}

impl HasMeta for ServedNode {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct NodeSpec {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) taints: Vec<Taint>,
    pub(super) unschedulable: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct NodeStatus {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) conditions: Vec<Condition>,
}

/// A taint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Taint {
    pub(super) key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) value: String,
    pub(super) effect: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time_added: Option<String>,
}

/// A condition of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Condition {
    pub(super) r#type: String,
    pub(super) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_heartbeat_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_transition_time: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
}

impl NodeStatus {
    /// The condition `Ready`.
    pub(super) fn ready(&self) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.r#type == "Ready")
    }
}

/// A lease as it is served.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServedLease {
    pub(super) metadata: Meta,
    pub(super) spec: LeaseSpec,
}

impl HasMeta for ServedLease {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct LeaseSpec {
    pub(super) renew_time: Option<String>,
}

/// A pod as it is served.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServedPod {
    metadata: Meta,
    spec: PodSpec,
    status: PodStatus,
}

impl HasMeta for ServedPod {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    node_name: String,
    #[serde(deserialize_with = "null_is_empty")]
    tolerations: Vec<Toleration>,
}

/// A toleration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Toleration {
    pub(super) key: String,
    pub(super) operator: String,
    pub(super) value: String,
    pub(super) effect: String,
    #[serde(rename = "tolerationSeconds")]
    pub(super) seconds: Option<i64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: String,
    #[serde(deserialize_with = "null_is_empty")]
    conditions: Vec<Condition>,
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pod {
    pub(super) uid: String,
    /// Empty for a pod that is not on a node yet.
    pub(super) node: String,
    /// Those that keep a pod on a node.
    pub(super) tolerations: Vec<Toleration>,
    /// When it should have ended.
    pub(super) deadline: Option<String>,
    pub(super) ended: bool,
    pub(super) ready: bool,
}

impl From<ServedPod> for Pod {
    fn from(served: ServedPod) -> Self {
        let ServedPod { metadata, spec, status } = served;
        let keeps = |toleration: &Toleration| matches!(&*toleration.effect, "" | "NoExecute");
        let ready =
            |condition: &Condition| condition.r#type == "Ready" && condition.status == "True";
        Self {
            uid: metadata.uid,
            node: spec.node_name,
            tolerations: spec.tolerations.into_iter().filter(keeps).collect(),
            deadline: metadata.deletion_timestamp,
            ended: matches!(&*status.phase, "Succeeded" | "Failed"),
            ready: status.conditions.iter().any(ready),
        }
    }
}
