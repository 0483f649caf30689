//! The words of an explanation, as data: what binds a group, what is short, who has it, what helps.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{Amounts, GroupKey};

/// What stands between a group and its nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Constraint {
    /// Nothing: it has its nodes, or gets them with the next decision.
    None,
    /// Its PodGroup does not exist.
    PodGroup,
    /// Its queue does not exist.
    Queue,
    /// Its queue is not open.
    QueueClosed,
    /// Another group is ahead in a queue that is served in order.
    QueueOrder,
    /// Its queue may not use more.
    QueueLimit,
    /// Members are still to be made.
    Members,
    /// It asks for something that is not supported.
    Unsupported,
    /// A claim that it mounts does not exist, is lost or does not get its volume.
    Claim,
    /// It has its nodes, and its volumes are being bound.
    Volumes,
    /// Room is being made: others are leaving.
    Releasing,
    /// It would not fit even if everything scheduled here ended.
    TooLarge,
    /// No room at present.
    Room,
}

/// A resource of which there is not enough.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shortage {
    /// Which.
    pub resource: String,
    /// What the members that wait ask for together.
    pub asked: i64,
    /// What is free on all nodes that they may use. For a group that is not let into its queue
    /// without what others are still to get, and within the queue's limit where that binds.
    pub free: i64,
    /// The most that is free on one of these nodes.
    pub most_on_one_node: i64,
    /// What one member asks for at most.
    pub per_member: i64,
}

/// Somebody who has what is short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Holder {
    /// Which group.
    pub group: GroupKey,
    /// How many of its pods.
    pub pods: usize,
    /// What they have of what is short, or were let into their queue to get.
    pub has: Amounts,
}

/// A change after which the group would fit now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "change")]
pub enum Remedy {
    /// Ask for so many members at most.
    FewerMembers {
        /// Members wanted now.
        from: usize,
        /// Members that fit.
        to: usize,
    },
    /// Ask for less of a resource in each member.
    SmallerMembers {
        /// Which resource.
        resource: String,
        /// What one asks for now.
        from: i64,
        /// What fits.
        to: i64,
    },
    /// Let the queue use so much more.
    RaiseLimit {
        /// Which queue.
        queue: String,
        /// Of which resource.
        resource: String,
        /// By how much.
        by: i64,
    },
}

/// Everything about a group that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Which group.
    pub group: GroupKey,
    /// Its queue.
    pub queue: String,
    /// Its priority.
    pub priority: i64,
    /// Members needed at least.
    pub minimum: usize,
    /// Members that have a node or have ended well.
    pub ready: usize,
    /// Members that wait.
    pub waiting: usize,
    /// Its place among the groups of its queue that wait, from 1; 0 when it does not wait.
    pub position: usize,
    /// How many groups of its queue wait.
    pub of: usize,
    /// Since when it waits, in seconds since 1970.
    pub since: i64,
    /// What binds.
    pub constraint: Constraint,
    /// The same in words.
    pub message: String,
    /// How many nodes there are.
    pub nodes: usize,
    /// How many nodes are out for which reason.
    pub reasons: BTreeMap<String, usize>,
    /// What is short.
    pub shortages: Vec<Shortage>,
    /// Who has it, those with the most first.
    pub holders: Vec<Holder>,
    /// Changes that would help, each by itself.
    pub remedies: Vec<Remedy>,
    /// What else is to be known.
    pub notes: Vec<String>,
}
