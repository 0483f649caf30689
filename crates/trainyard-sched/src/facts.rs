//! Everything that is known of pods, groups, queues and what else scheduling looks at.
//!
//! Owns the records; the sums over nodes are `room`'s, the decisions `cycle`'s.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

use crate::config::Config;
use crate::muster::Muster;
use crate::objects::PriorityClass;
use crate::pod::Phase;
use crate::shape::{Shape, Shapes};
use crate::slots::{Id, Slots};
use crate::storage::Storage;
use crate::vector::{Resources, Vector};
use crate::{
    DisruptionBudget, GroupKey, GroupReport, Namespace, Pod, PodGroup, PodName, Queue, queue,
};

/// What is known of a pod.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    pub(crate) pod: Pod,
    pub(crate) shape: Arc<Shape>,
    pub(crate) group: Id,
    /// The node that it is being bound to.
    pub(crate) assumed: Option<String>,
    /// The node that it was promised by a decision that may not be written yet.
    pub(crate) promised: Option<String>,
    /// Whether it is being evicted.
    pub(crate) is_evicted: bool,
    /// What was last said of it.
    pub(crate) told: Option<Arc<str>>,
    /// Whether it is scheduled here.
    pub(crate) is_ours: bool,
    /// The queue whose account it is in.
    pub(crate) charged: Option<String>,
}

/// How a pod stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// It waits for a node.
    Waiting,
    /// It waits and must not be looked at.
    Gated,
    /// It has a node.
    Bound,
    /// It has a node and is on its way out.
    Leaving,
    Succeeded,
    Failed,
    /// It is being deleted and never had a node.
    Void,
}

impl Record {
    /// The node that it has or is being given.
    pub(crate) fn node(&self) -> &str {
        if self.pod.node.is_empty() {
            self.assumed.as_deref().unwrap_or("")
        } else {
            &self.pod.node
        }
    }

    /// Whether others are placed together with it.
    pub(crate) fn is_of_gang(&self, facts: &Facts) -> bool {
        facts.groups.get(self.group).is_some_and(|group| group.members.len() > 1)
    }

    /// The node that it is promised.
    pub(crate) fn promise(&self) -> &str {
        self.promised.as_deref().unwrap_or(&self.pod.nominated)
    }

    pub(crate) fn stand(&self) -> Stand {
        match self.pod.phase {
            Phase::Succeeded => Stand::Succeeded,
            Phase::Failed => Stand::Failed,
            _ if self.node().is_empty() => {
                if self.pod.is_leaving || self.is_evicted {
                    Stand::Void
                } else if self.pod.is_gated {
                    Stand::Gated
                } else {
                    Stand::Waiting
                }
            }
            _ if self.pod.is_leaving || self.is_evicted => Stand::Leaving,
            _ => Stand::Bound,
        }
    }
}

/// What is known of a group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    pub(crate) object: Option<PodGroup>,
    pub(crate) members: BTreeSet<Id>,
    /// Members of ours that wait.
    pub(crate) waiting: BTreeSet<Id>,
    /// What its status was last told to say.
    pub(crate) reported: Option<GroupReport>,
    /// The version that says so; nothing while that is being written.
    pub(crate) reported_at: Option<u64>,
    /// Its members as they were last counted; nothing after a change.
    pub(crate) muster: OnceLock<Muster>,
}

impl Group {
    /// Whether somebody has written another status over the one that was reported.
    pub(crate) fn is_contradicted(&self) -> bool {
        let (Some(object), Some(report)) = (&self.object, &self.reported) else { return false };
        self.reported_at.is_some_and(|at| object.version > at) && !report.is_said_by(object)
    }
}

/// What is known of a queue and used of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    pub(crate) object: Option<Queue>,
    /// What its pods have that stay.
    pub(crate) used: Vector,
    /// What its pods have that are on their way out.
    pub(crate) leaving: Vector,
    /// What its waiting pods ask for.
    pub(crate) wanted: Vector,
    /// How many pods those are; nobody's account is forgotten.
    pub(crate) pods: usize,
}

/// Everything that is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) pods: Slots<PodName, Record>,
    pub(crate) groups: Slots<GroupKey, Group>,
    pub(crate) accounts: BTreeMap<String, Account>,
    pub(crate) classes: BTreeMap<String, PriorityClass>,
    pub(crate) namespaces: BTreeMap<String, Namespace>,
    pub(crate) storage: Storage,
    pub(crate) budgets: BTreeMap<(String, String), DisruptionBudget>,
    pub(crate) resources: Resources,
    pub(crate) shapes: Shapes,
    /// Groups with members that wait.
    pub(crate) waiting: BTreeSet<GroupKey>,
    pub(crate) config: Config,
}

impl Facts {
    pub(crate) fn record(&self, id: Id) -> Option<&Record> {
        self.pods.get(id)
    }

    /// The name of a group's queue.
    pub(crate) fn queue_of<'s>(&'s self, group: &'s Group) -> &'s str {
        if let Some(object) = &group.object {
            return &object.queue;
        }
        let named = |id: &Id| self.record(*id).and_then(|record| record.pod.queue.as_deref());
        group.members.iter().filter_map(named).min().unwrap_or(queue::DEFAULT)
    }

    /// A group's members, counted.
    pub(crate) fn muster<'s>(&self, key: &GroupKey, group: &'s Group) -> &'s Muster {
        group.muster.get_or_init(|| Muster::of(key, group, self))
    }

    /// A group's priority: its class's; without one, the highest of its pods.
    pub(crate) fn priority_of(&self, key: &GroupKey, group: &Group) -> i64 {
        let named =
            group.object.as_ref().and_then(|object| self.classes.get(&object.priority_class));
        if let Some(class) = named {
            return class.value;
        }
        self.muster(key, group).priority
    }

    /// When a group was made.
    pub(crate) fn created_of(&self, group: &Group) -> i64 {
        if let Some(object) = &group.object {
            return object.created;
        }
        let times = group.members.iter().filter_map(|id| self.record(*id));
        times.map(|record| record.pod.created).min().unwrap_or(0)
    }
}
