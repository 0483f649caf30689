//! A pod as the scheduler sees it.
//!
//! Owns what is known of one pod; `read` makes it from JSON. Must not know nodes.

mod asks;
mod fields;
mod read;
mod sizes;

pub use fields::{PLACEMENT, PlacementField};
pub(crate) use read::PREEMPTABLE;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::Amounts;
use crate::affinity::Required;
use crate::peer::Peers;
use crate::storage::Disk;
use crate::taint::Toleration;

/// Namespace and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PodName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Which pods are decided together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(tag = "kind", rename_all = "PascalCase")]
pub enum GroupKey {
    /// The pods of a Volcano PodGroup object.
    PodGroup {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Pods that carry the annotations `trainyard.dev/gang` and `trainyard.dev/gang-size`.
    Gang {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A pod by itself.
    Pod {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
}

impl GroupKey {
    /// The namespace of its pods.
    #[must_use]
    pub fn namespace(&self) -> &str {
        match self {
            Self::PodGroup { namespace, .. }
            | Self::Gang { namespace, .. }
            | Self::Pod { namespace, .. } => namespace,
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::PodGroup { name, .. } | Self::Gang { name, .. } | Self::Pod { name, .. } => name,
        }
    }
}

/// How far a pod has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Phase {
    /// Its containers have not started.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// It has ended well.
    Succeeded,
    /// It has ended badly.
    Failed,
}

/// A port of a node: address, protocol, number.
pub(crate) type Port = (String, String, u32);

/// A pod.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts of the object that have nothing in common"
)]
pub struct Pod {
    /// Where it is found.
    pub key: PodName,
    /// Its identity.
    pub uid: String,
    /// Its version; 0 when versions cannot be compared.
    pub version: u64,
    /// When it was made, in seconds since 1970; 0 when that is not known.
    pub created: i64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The node it is bound to; empty while it waits.
    pub node: String,
    /// Whether its node has refused it: it has ended without having run.
    pub is_refused: bool,
    /// What its status says of why it has no node.
    pub said: Option<Arc<str>>,
    /// The node it is promised; empty for most.
    pub nominated: String,
    /// How far it has come.
    pub phase: Phase,
    /// Whether it is being deleted.
    pub is_leaving: bool,
    /// Whether something keeps it from being looked at (`schedulingGates`).
    pub is_gated: bool,
    /// Its priority.
    pub priority: i64,
    /// Its priority among the members of its group.
    pub task_priority: i64,
    /// Whether others may be evicted for it.
    pub may_preempt: bool,
    /// Whether it may be evicted for others.
    pub is_preemptable: bool,
    /// Who is to schedule it.
    pub scheduler: String,
    /// What it asks for.
    pub asks: Amounts,
    /// The group it belongs to.
    pub group: GroupKey,
    /// How many pods that group has, where the pods say it themselves.
    pub gang_size: Option<usize>,
    /// The queue that it names itself.
    pub queue: Option<String>,
    /// Its task (role) in the group.
    pub task: String,
    /// Its number in that task.
    pub index: u64,
    /// The claims whose volumes it mounts.
    pub claims: Vec<String>,
    /// Those among them that are made for it (`ephemeral`).
    pub own_claims: Vec<String>,
    /// Disks that it names without a claim and that CSI drivers attach.
    pub(crate) disks: Vec<Disk>,
    /// What its node has to be able to do, in the words of nodes (`status.declaredFeatures`).
    pub(crate) features: Vec<&'static str>,
    pub(crate) ports: Vec<Port>,
    pub(crate) required: Required,
    pub(crate) tolerations: Vec<Toleration>,
    /// What it wants of the pods around it.
    pub(crate) peers: Peers,
    /// What it asks for that this scheduler cannot take into account.
    pub(crate) beyond: Option<&'static str>,
}

impl Pod {
    /// Whether it has ended, or is being deleted before it was bound.
    #[must_use]
    pub fn is_over(&self) -> bool {
        let ended = matches!(self.phase, Phase::Succeeded | Phase::Failed);
        ended || (self.is_leaving && self.node.is_empty())
    }
}
