//! What the scheduler has heard: its state, shared between those who tell and the one who decides.
//!
//! Must not act.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use tokio::sync::Notify;
use trainyard_sched::{Decision, Delta, Doing, Node, Pod, PodName, State};

use crate::cache::Object;
use crate::watch::News;

/// A pod as it is followed.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct SeenPod(Pod);

/// A node as it is followed.
#[derive(Debug, Deserialize)]
#[serde(transparent)]
pub(super) struct SeenNode(Node);

impl Object for SeenPod {
    fn uid(&self) -> &str {
        &self.0.uid
    }

    fn name(&self) -> &str {
        &self.0.key.name
    }

    fn version(&self) -> u64 {
        self.0.version
    }

    fn owner(&self) -> Option<&str> {
        None
    }

    fn same_facts(&mut self, older: &Self) -> bool {
        let mut older = older.0.clone();
        older.version = self.0.version;
        self.0 == older
    }
}

impl Object for SeenNode {
    fn uid(&self) -> &str {
        &self.0.uid
    }

    fn name(&self) -> &str {
        &self.0.name
    }

    fn version(&self) -> u64 {
        self.0.version
    }

    fn owner(&self) -> Option<&str> {
        None
    }

    fn same_facts(&mut self, older: &Self) -> bool {
        let mut older = older.0.clone();
        older.version = self.0.version;
        self.0 == older
    }
}

/// What is known.
pub(super) struct World {
    known: Mutex<Known>,
    changed: Notify,
}

struct Known {
    state: State,
    /// Where objects are by their identity: a deletion tells only that.
    pods: BTreeMap<String, PodName>,
    nodes: BTreeMap<String, String>,
    pods_listed: bool,
    nodes_listed: bool,
}

impl World {
    pub(super) fn new(names: Vec<String>) -> Self {
        let known = Known {
            state: State::new(names),
            pods: BTreeMap::new(),
            nodes: BTreeMap::new(),
            pods_listed: false,
            nodes_listed: false,
        };
        Self { known: Mutex::new(known), changed: Notify::new() }
    }

    fn locked(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hear_pods(&self, news: News<SeenPod>) {
        let mut known = self.locked();
        match news {
            News::All { objects, .. } => {
                // Only what is gone is forgotten: bindings under way are still under way.
                let there: BTreeSet<_> = objects.iter().map(|pod| pod.0.key.clone()).collect();
                for key in known.state.pod_names() {
                    if !there.contains(&key) {
                        known.state.apply(Delta::PodGone(key));
                    }
                }
                known.pods.clear();
                known.pods_listed = true;
                for SeenPod(pod) in objects {
                    known.there(pod);
                }
            }
            News::There(SeenPod(pod)) => known.there(pod),
            News::Gone { uid, .. } => {
                if let Some(key) = known.pods.remove(&uid) {
                    known.state.apply(Delta::PodGone(key));
                }
            }
        }
        drop(known);
        self.changed.notify_one();
    }

    pub(super) fn hear_nodes(&self, news: News<SeenNode>) {
        let mut known = self.locked();
        match news {
            News::All { objects, .. } => {
                for name in known.state.node_names() {
                    known.state.apply(Delta::NodeGone(name));
                }
                known.nodes.clear();
                known.nodes_listed = true;
                for SeenNode(node) in objects {
                    known.node(node);
                }
            }
            News::There(SeenNode(node)) => known.node(node),
            News::Gone { uid, .. } => {
                if let Some(name) = known.nodes.remove(&uid) {
                    known.state.apply(Delta::NodeGone(name));
                }
            }
        }
        drop(known);
        self.changed.notify_one();
    }

    /// Something that was decided could not be done.
    pub(super) fn failed(&self, key: &PodName, uid: &str, doing: Doing) {
        self.locked().state.apply(Delta::Failed(key.clone(), uid.to_owned(), doing));
    }

    /// Waits for something new.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// Has everybody look again.
    pub(super) fn look_again(&self) {
        self.changed.notify_one();
    }

    /// What is to be done now; nothing before everything is known.
    pub(super) fn decide(&self, now: i64) -> Vec<Decision> {
        let mut known = self.locked();
        if known.pods_listed && known.nodes_listed { known.state.decide(now) } else { Vec::new() }
    }
}

impl Known {
    fn there(&mut self, pod: Pod) {
        self.pods.insert(pod.uid.clone(), pod.key.clone());
        self.state.apply(Delta::Pod(Box::new(pod)));
    }

    fn node(&mut self, node: Node) {
        self.nodes.insert(node.uid.clone(), node.name.clone());
        self.state.apply(Delta::Node(Box::new(node)));
    }
}
