//! What a state is told: changes of what there is, and what became of decisions.

use crate::objects::PriorityClass;
use crate::{
    ClaimWritten, DisruptionBudget, Namespace, Node, Pod, PodGroup, PodName, Queue, StorageDelta,
};

/// A change of what there is.
#[derive(Debug, Clone)]
pub enum Delta {
    /// A pod is there, new or changed.
    Pod(Box<Pod>),
    /// A pod is gone.
    PodGone(PodName),
    /// A node is there, new or changed.
    Node(Box<Node>),
    /// A node is gone.
    NodeGone(String),
    /// A PodGroup is there, new or changed.
    Group(Box<PodGroup>),
    /// A PodGroup is gone: namespace and name.
    GroupGone(String, String),
    /// A queue is there, new or changed.
    Queue(Box<Queue>),
    /// A queue is gone.
    QueueGone(String),
    /// A priority class is there, new or changed.
    Class(PriorityClass),
    /// A priority class is gone.
    ClassGone(String),
    /// A namespace is there, new or changed.
    Namespace(Box<Namespace>),
    /// A namespace is gone.
    NamespaceGone(String),
    /// A budget of disruption is there, new or changed.
    Budget(Box<DisruptionBudget>),
    /// A budget of disruption is gone: namespace and name.
    BudgetGone(String, String),
    /// An object of storage is there, changed or gone.
    Storage(Box<StorageDelta>),
    /// What was decided about a claim was written, or could not be.
    ClaimWritten(ClaimWritten),
    /// Something is being done with a pod; decisions are noted so by themselves.
    Doing(PodName, String, Doing),
    /// It could not be done.
    Failed(PodName, String, Doing),
    /// The status of a PodGroup was written, or could not be.
    Reported(Box<Reported>),
}

/// What is being done with a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Doing {
    /// It is being bound to this node.
    Binding(String),
    /// This node is being promised to it.
    Promising(String),
    /// It is being evicted.
    Evicting,
    /// It is being told why it has no node.
    Telling,
}

/// What became of a [`GroupReport`](crate::GroupReport).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// Namespace of the PodGroup.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// The version that has it; nothing if it could not be written and is to be said again.
    pub version: Option<u64>,
}
