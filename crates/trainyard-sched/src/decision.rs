//! What a state answers: what is to be done, and what is to be said.

use std::sync::Arc;

use crate::{BindClaim, GroupKey, GroupPhase, PodGroup, PodName, ReleaseClaim};

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Bind a pod to a node.
    Bind {
        /// Which pod.
        pod: PodName,
        /// Its identity.
        uid: String,
        /// The node's name.
        node: String,
    },
    /// Evict a pod.
    Evict {
        /// Which pod.
        pod: PodName,
        /// Its identity.
        uid: String,
        /// For whom or what.
        cause: Cause,
    },
    /// Note the node that a pod is promised (`status.nominatedNodeName`): room is being made there.
    Promise {
        /// Which pod.
        pod: PodName,
        /// Its identity.
        uid: String,
        /// The node's name.
        node: String,
    },
    /// Have a claim provisioned for a node, or keep a volume for it: its pod is bound afterwards.
    BindClaim(Box<BindClaim>),
    /// Take a claim from the node that it was to be provisioned for: its pod finds no room there.
    ReleaseClaim(Box<ReleaseClaim>),
    /// Say that a pod has no node, and why.
    Wait {
        /// Which pod.
        pod: PodName,
        /// Its identity.
        uid: String,
        /// Why, in words.
        message: Arc<str>,
    },
    /// Write the status of a PodGroup.
    Report(Box<GroupReport>),
}

/// Why a pod is evicted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// For a group of higher priority in the same queue.
    Preempted(GroupKey),
    /// For a group whose queue uses less than its share.
    Reclaimed(GroupKey),
    /// Its own group could not be completed.
    Incomplete,
}

/// What the status of a PodGroup is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupReport {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// How far it has come.
    pub phase: GroupPhase,
    /// Members that run.
    pub running: usize,
    /// Members that ended well.
    pub succeeded: usize,
    /// Members that ended badly.
    pub failed: usize,
    /// `Scheduled` or `Unschedulable`, reason and message.
    pub condition: Option<Condition>,
}

impl GroupReport {
    /// Whether the status of the PodGroup says all this already.
    #[must_use]
    pub fn is_said_by(&self, object: &PodGroup) -> bool {
        let counts = (self.running, self.succeeded, self.failed);
        let says = |condition: &Condition| {
            object.conditions.last().is_some_and(|last| {
                last.status == "True"
                    && last.r#type == condition.kind
                    && last.reason == condition.reason
                    && last.message == condition.message
            })
        };
        !object.is_new
            && self.phase == object.phase
            && counts == (object.running, object.succeeded, object.failed)
            && self.condition.as_ref().is_none_or(says)
    }
}

/// A condition of a PodGroup; always true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// `Scheduled` or `Unschedulable`.
    pub kind: &'static str,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in words.
    pub message: String,
}
