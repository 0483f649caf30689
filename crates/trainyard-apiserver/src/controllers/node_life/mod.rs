//! The life of nodes: who gives no sign of life is marked, and what becomes of the pods on it.
//!
//! A sign of life is a renewed lease or a written condition. How long ago it came is measured here,
//! on this machine's own clock: a machine that slept has not missed anything. Must not know what
//! nodes are; what is decided is in [`decide`] and [`fate`].

mod decide;
mod fate;
mod view;
mod write;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use tokio::time::Instant;

use super::events::Recorder;
use super::follow::{News, Source, follow};
use super::queue::Queue;
use super::view::{HasMeta, Key};
use super::{Context, held};
use decide::NO_EXECUTE;
use view::{NodeSpec, NodeStatus, Pod, ServedLease, ServedNode, ServedPod};

const WIDTH: usize = 8;
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Task {
    Node(String),
    Pod(Key),
    /// Something has happened to a node of this name and UID.
    Turn(String, String, Turn),
}

/// What happens to nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    Came,
    /// It was ready and is so no more.
    Fell,
    Went,
}

/// A node, and when it last gave a sign of life.
#[derive(Debug, Clone)]
struct Node {
    uid: String,
    spec: NodeSpec,
    status: NodeStatus,
    alive: Instant,
}

impl Node {
    /// Whether it is ready; `None` when nobody knows.
    fn ready(&self) -> Option<bool> {
        match self.status.ready().map(|ready| &*ready.status) {
            Some("True") => Some(true),
            Some("Unknown") => None,
            _ => Some(false),
        }
    }

    fn is_tainted(&self) -> bool {
        self.spec.taints.iter().any(|taint| taint.effect == NO_EXECUTE)
    }

    /// Whether pods on it need no look: they are the kubelet's matter.
    fn is_well(&self) -> bool {
        self.ready() == Some(true) && !self.is_tainted()
    }
}

/// What is known of the cluster.
#[derive(Debug, Default)]
struct Known {
    nodes: BTreeMap<String, Node>,
    /// When each lease was last renewed, as it says itself.
    leases: BTreeMap<String, String>,
    pods: BTreeMap<Key, Pod>,
    /// Pods whose node does not exist, and since when that is known of each: one that is made anew on
    /// such a node stays as long as the one before it, so that whoever makes it cannot go round in
    /// circles.
    missing: BTreeMap<Key, Instant>,
    /// Pods whose stay on their node is limited, and since when.
    limited: BTreeMap<Key, Instant>,
    nodes_listed: bool,
}

struct Controller {
    context: Context,
    nodes: Recorder,
    evictions: Recorder,
    known: Mutex<Known>,
    queue: Queue<Task>,
}

/// Runs until dropped.
pub(super) async fn run(context: Context) {
    let controller = Controller {
        nodes: context.recorder("node-controller"),
        evictions: context.recorder("taint-eviction-controller"),
        context,
        known: Mutex::default(),
        queue: Queue::new(),
    };
    let this = &controller;
    let calls = &controller.context.calls;
    let source = Source::new("/api/v1/nodes");
    let nodes = follow(calls, &source, |news| this.hear_nodes(news));
    let source = Source::new(LEASES);
    let leases = follow(calls, &source, |news| this.hear_leases(news));
    let source = Source::new("/api/v1/pods");
    let pods = follow(calls, &source, |news| this.hear_pods(news));
    let work = controller.queue.work(WIDTH, async |task| this.attend(task).await);
    tokio::join!(nodes, leases, pods, work);
}

impl Controller {
    fn hear_nodes(&self, news: News<ServedNode>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                let names: Vec<String> = all.iter().map(|one| one.metadata.name.clone()).collect();
                let gone: Vec<String> =
                    known.nodes.keys().filter(|name| !names.contains(name)).cloned().collect();
                for name in &gone {
                    self.node_gone(&mut known, name);
                }
                known.nodes_listed = true;
                for one in all {
                    self.node_there(&mut known, one);
                }
                // Pods may name nodes that have never been there.
                self.queue.add_all(known.pods.keys().cloned().map(Task::Pod));
            }
            News::There(one) => self.node_there(&mut known, one),
            News::Gone(one) => self.node_gone(&mut known, &one.metadata.name),
        }
    }

    fn node_there(&self, known: &mut Known, served: ServedNode) {
        let ServedNode { metadata, spec, status } = served;
        let name = metadata.name;
        let old = known.nodes.get(&name).filter(|old| old.uid == metadata.uid);
        let heartbeat = |status: &NodeStatus| {
            status.ready().and_then(|ready| ready.last_heartbeat_time.clone())
        };
        let alive = match old {
            Some(old) if heartbeat(&old.status) == heartbeat(&status) => old.alive,
            _ => Instant::now(),
        };
        if old.is_none() {
            self.queue.add(Task::Turn(name.clone(), metadata.uid.clone(), Turn::Came));
        }
        let new = Node { uid: metadata.uid, spec, status, alive };
        let pods_care =
            old.is_none_or(|old| old.spec.taints != new.spec.taints || old.ready() != new.ready());
        if old.is_some_and(|old| old.ready() == Some(true)) && new.ready() != Some(true) {
            self.queue.add(Task::Turn(name.clone(), new.uid.clone(), Turn::Fell));
        }
        known.nodes.insert(name.clone(), new);
        if pods_care {
            self.look_at_pods(known, &name);
        }
        self.queue.add(Task::Node(name));
    }

    fn node_gone(&self, known: &mut Known, name: &str) {
        if let Some(node) = known.nodes.remove(name) {
            self.queue.add(Task::Turn(name.to_owned(), node.uid, Turn::Went));
        }
        self.look_at_pods(known, name);
    }

    fn look_at_pods(&self, known: &Known, node: &str) {
        for (key, _) in known.pods.iter().filter(|(_, pod)| pod.node == node) {
            self.queue.add(Task::Pod(key.clone()));
        }
    }

    fn hear_leases(&self, news: News<ServedLease>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => all.into_iter().for_each(|one| self.lease_there(&mut known, one)),
            News::There(one) => self.lease_there(&mut known, one),
            News::Gone(one) => {
                known.leases.remove(&one.metadata.name);
            }
        }
    }

    fn lease_there(&self, known: &mut Known, served: ServedLease) {
        let name = served.meta().name.clone();
        let Some(renewed) = served.spec.renew_time else { return };
        if known.leases.get(&name) == Some(&renewed) {
            return;
        }
        known.leases.insert(name.clone(), renewed);
        if let Some(node) = known.nodes.get_mut(&name) {
            node.alive = Instant::now();
            // Where a look is due already, that one stands.
            self.queue.add_after(Task::Node(name), self.context.settings.node_grace);
        }
    }

    fn hear_pods(&self, news: News<ServedPod>) {
        let mut known = held(&self.known);
        match news {
            News::All(all) => {
                known.pods.clear();
                for one in all {
                    self.pod_there(&mut known, one);
                }
                let Known { limited, missing, pods, .. } = &mut *known;
                limited.retain(|key, _| pods.contains_key(key));
                missing.retain(|key, _| pods.contains_key(key));
            }
            News::There(one) => self.pod_there(&mut known, one),
            News::Gone(one) => {
                let key = one.meta().key();
                known.pods.remove(&key);
                known.limited.remove(&key);
                known.missing.remove(&key);
            }
        }
    }

    fn pod_there(&self, known: &mut Known, served: ServedPod) {
        let key = served.meta().key();
        let pod = Pod::from(served);
        if known.pods.get(&key) == Some(&pod) {
            return;
        }
        let care = if pod.node.is_empty() {
            pod.deadline.is_some()
        } else {
            known.nodes_listed && known.nodes.get(&pod.node).is_none_or(|node| !node.is_well())
        };
        // A pod that was marked for leaving may be free now.
        if care || known.limited.contains_key(&key) {
            self.queue.add(Task::Pod(key.clone()));
        }
        known.pods.insert(key, pod);
    }

    /// For how long a node has given no sign of life, and for how long it may.
    fn silence(&self, node: &Node) -> (Duration, Duration) {
        let settings = &self.context.settings;
        let told = node.status.ready().is_some();
        let grace = if told { settings.node_grace } else { settings.node_start_grace };
        (node.alive.elapsed(), grace)
    }
}
