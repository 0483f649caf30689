//! The state of the cluster as far as scheduling goes, and what follows from it.

use std::collections::{BTreeMap, BTreeSet};

use crate::gang::Group;
use crate::place::{Stuck, Usage, place};
use crate::{Gang, Node, Pod, PodName, words};

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
}

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
    /// Say that a pod has no node, and why.
    Wait {
        /// Which pod.
        pod: PodName,
        /// Its identity.
        uid: String,
        /// Why, in words.
        message: String,
    },
}

/// All pods and nodes that are known.
#[derive(Debug, Clone, Default)]
pub struct State {
    pods: BTreeMap<PodName, Pod>,
    nodes: BTreeMap<String, Node>,
    /// What bound pods take.
    usage: Usage,
    /// Pods that wait for a node.
    waiting: BTreeSet<PodName>,
    /// Members of gangs.
    gangs: BTreeMap<Gang, BTreeSet<PodName>>,
    /// Who is scheduled here; everybody's pods count.
    schedulers: BTreeSet<String>,
}

impl State {
    /// A state for pods that name one of these schedulers.
    #[must_use]
    pub fn new(schedulers: impl IntoIterator<Item = String>) -> Self {
        Self { schedulers: schedulers.into_iter().collect(), ..Self::default() }
    }

    /// Takes note of a change.
    pub fn apply(&mut self, delta: Delta) {
        match delta {
            Delta::Pod(pod) => {
                self.forget(&pod.key);
                self.learn(*pod);
            }
            Delta::PodGone(key) => self.forget(&key),
            Delta::Node(node) => {
                self.nodes.insert(node.name.clone(), *node);
            }
            Delta::NodeGone(name) => {
                self.nodes.remove(&name);
            }
        }
    }

    /// A binding could not be made: the pod waits again.
    pub fn unbind(&mut self, key: &PodName, uid: &str) {
        let Some(mut pod) = self.pods.get(key).filter(|pod| pod.uid == uid).cloned() else {
            return;
        };
        self.forget(key);
        pod.node.clear();
        self.learn(pod);
    }

    /// The names of all pods.
    #[must_use]
    pub fn pod_names(&self) -> Vec<PodName> {
        self.pods.keys().cloned().collect()
    }

    /// The names of all nodes.
    #[must_use]
    pub fn node_names(&self) -> Vec<String> {
        self.nodes.keys().cloned().collect()
    }

    fn learn(&mut self, pod: Pod) {
        if let Some((gang, _)) = &pod.gang {
            self.gangs.entry(gang.clone()).or_default().insert(pod.key.clone());
        }
        if !pod.node.is_empty() && !pod.is_over {
            self.usage.entry(pod.node.clone()).or_default().add(&pod);
        }
        let ours = self.schedulers.contains(&pod.scheduler);
        if ours && pod.node.is_empty() && !pod.is_over && !pod.is_gated {
            self.waiting.insert(pod.key.clone());
        }
        self.pods.insert(pod.key.clone(), pod);
    }

    fn forget(&mut self, key: &PodName) {
        let Some(pod) = self.pods.remove(key) else { return };
        self.waiting.remove(key);
        let taken = self.usage.get_mut(&pod.node).filter(|_| !pod.is_over);
        if let Some(taken) = taken {
            taken.remove(&pod);
        }
        let Some((gang, _)) = &pod.gang else { return };
        if let Some(members) = self.gangs.get_mut(gang) {
            members.remove(key);
            if members.is_empty() {
                self.gangs.remove(gang);
            }
        }
    }

    /// What follows from the state. Bindings are taken for done: whoever carries them out tells of
    /// each pod again, bound or not.
    pub fn decide(&mut self) -> Vec<Decision> {
        let mut decisions = Vec::new();
        let mut usage = std::mem::take(&mut self.usage);
        for group in self.groups() {
            decisions.extend(self.decide_group(&group, &mut usage));
        }
        self.usage = usage;
        for decision in &decisions {
            if let Decision::Bind { pod, node, .. } = decision {
                self.waiting.remove(pod);
                if let Some(pod) = self.pods.get_mut(pod) {
                    pod.node.clone_from(node);
                }
            }
        }
        decisions
    }

    /// What waits, in the order in which it is looked at.
    fn groups(&self) -> Vec<Group<'_>> {
        let mut groups = Vec::new();
        let mut by_gang: BTreeMap<&Gang, Group<'_>> = BTreeMap::new();
        for pod in self.waiting.iter().filter_map(|key| self.pods.get(key)) {
            let Some((gang, size)) = &pod.gang else {
                groups.push(Group { gang: None, waiting: vec![pod], present: 1 });
                continue;
            };
            let present = self.gangs.get(gang).map_or(0, BTreeSet::len);
            let group = by_gang.entry(gang).or_insert_with(|| Group {
                gang: Some((gang, *size)),
                waiting: Vec::new(),
                present,
            });
            // Members made later know better how many there are still to be.
            group.gang = group.gang.map(|(gang, least)| (gang, least.min(*size)));
            group.waiting.push(pod);
        }
        groups.extend(by_gang.into_values());
        groups.sort_by(|one, other| one.rank().cmp(&other.rank()));
        groups
    }

    fn decide_group(&self, group: &Group<'_>, usage: &mut Usage) -> Vec<Decision> {
        let missing = group.missing();
        if let (Some((gang, size)), true) = (group.gang, missing > 0) {
            let message =
                format!("waiting for {missing} more of the {size} pods of {:?}", gang.name);
            return group.waiting.iter().map(|pod| wait(pod, &message)).collect();
        }
        if let Some(what) = group.waiting.iter().find_map(|pod| pod.beyond) {
            let message =
                format!("{what} cannot be honoured by this scheduler: remove it from the pod");
            return group.waiting.iter().map(|pod| wait(pod, &message)).collect();
        }
        match place(&group.waiting, &self.nodes, usage) {
            Ok(placed) => placed
                .into_iter()
                .map(|(pod, node)| Decision::Bind {
                    pod: pod.key.clone(),
                    uid: pod.uid.clone(),
                    node,
                })
                .collect(),
            Err(stuck) => self.explain(group, &stuck),
        }
    }

    fn explain(&self, group: &Group<'_>, stuck: &Stuck<'_>) -> Vec<Decision> {
        let message = words::unavailable(self.nodes.len(), &stuck.reasons);
        let together = |pod: &&&Pod| {
            let Some((gang, size)) = group.gang.filter(|(_, size)| *size > 1) else {
                return wait(pod, &message);
            };
            wait(pod, &words::with_gang(&message, &gang.name, size))
        };
        group.waiting.iter().map(|pod| together(&pod)).collect()
    }
}

fn wait(pod: &Pod, message: &str) -> Decision {
    Decision::Wait { pod: pod.key.clone(), uid: pod.uid.clone(), message: message.to_owned() }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
