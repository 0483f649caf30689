//! Looks at one node or one pod, and writes what was decided.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::decide::{Change, decide};
use super::fate::{Fate, Patience, Standing, Why, fate};
use super::view::{Pod, ServedNode};
use super::{Controller, Known, Task, Turn};
use crate::controllers::calls::{Propagation, core, delete_options};
use crate::controllers::clock::{between, seconds};
use crate::controllers::error::{Error, unless_missing};
use crate::controllers::events::{About, Weight};
use crate::controllers::held;
use crate::controllers::queue::Next;
use crate::controllers::view::{Key, Meta};

impl Controller {
    pub(super) async fn attend(&self, task: Task) -> Result<Next, Error> {
        match task {
            Task::Node(name) => self.attend_node(&name).await,
            Task::Pod(key) => self.attend_pod(&key).await,
            Task::Turn(name, uid, turn) => self.tell(&name, &uid, turn).await,
        }
    }

    async fn tell(&self, name: &str, uid: &str, turn: Turn) -> Result<Next, Error> {
        let (reason, message) = match turn {
            Turn::Came => (
                "RegisteredNode",
                format!("Node {name} event: Registered Node {name} in Controller"),
            ),
            Turn::Went => {
                ("RemovingNode", format!("Node {name} event: Removing Node {name} from Controller"))
            }
            Turn::Fell => ("NodeNotReady", format!("Node {name} status is now: NodeNotReady")),
        };
        if turn == Turn::Fell {
            self.mark_pods(name, &seconds(self.context.clock.now())).await?;
        }
        self.nodes.record(&about_node(name, uid), Weight::Normal, reason, &message).await;
        Ok(Next::Rest)
    }

    async fn attend_node(&self, name: &str) -> Result<Next, Error> {
        let Some(node) = held(&self.known).nodes.get(name).cloned() else { return Ok(Next::Rest) };
        let (silent_for, grace) = self.silence(&node);
        let silent = silent_for >= grace;
        let now = seconds(self.context.clock.now());
        if decide(&node.spec, &node.status, None, silent, &now) != Change::default() {
            // What is written must follow from what is there now.
            let path = core("", "nodes", name);
            let Some(live) = self.context.calls.find::<ServedNode>(&path).await? else {
                return Ok(Next::Rest);
            };
            if live.metadata.uid != node.uid {
                return Ok(Next::Rest);
            }
            self.change_node(&path, &live, silent, &now).await?;
        }
        if node.ready().is_none() {
            self.mark_pods(name, &now).await?;
        }
        if silent {
            // The next sign of life is news.
            Ok(Next::Rest)
        } else {
            Ok(Next::After(grace.saturating_sub(silent_for)))
        }
    }

    async fn change_node(
        &self,
        path: &str,
        live: &ServedNode,
        silent: bool,
        now: &str,
    ) -> Result<(), Error> {
        let created = live.metadata.creation_timestamp.as_deref();
        let change = decide(&live.spec, &live.status, created, silent, now);
        let mut revision = Some(&live.metadata.resource_version);
        if !change.conditions.is_empty() {
            let edit = json!({
                "metadata": {"uid": live.metadata.uid, "resourceVersion": revision.take()},
                "status": {"conditions": change.conditions},
            });
            self.context.calls.merge_parts(&format!("{path}/status"), &edit).await?;
        }
        if let Some(taints) = change.taints {
            let mut edit =
                json!({"metadata": {"uid": live.metadata.uid}, "spec": {"taints": taints}});
            if let Some(revision) = revision {
                edit["metadata"]["resourceVersion"] = json!(revision);
            }
            self.context.calls.merge(path, &edit).await?;
        }
        Ok(())
    }

    /// Pods of a node that nobody hears of count as not ready.
    async fn mark_pods(&self, node: &str, now: &str) -> Result<(), Error> {
        let pods: Vec<(Key, String)> = {
            let known = held(&self.known);
            let ready = |pod: &Pod| pod.node == node && pod.ready && !pod.ended;
            let pods = known.pods.iter().filter(|(_, pod)| ready(pod));
            pods.map(|(key, pod)| (key.clone(), pod.uid.clone())).collect()
        };
        for (key, uid) in pods {
            let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": now});
            let path = format!("{}/status", core(&key.namespace, "pods", &key.name));
            let edit = json!({"metadata": {"uid": uid}, "status": {"conditions": [condition]}});
            if unless_missing(self.context.calls.merge_parts(&path, &edit).await)?.is_some() {
                let about = about_pod(&key, &uid);
                let message = "Node is not ready";
                self.nodes.record(&about, Weight::Warning, "NodeNotReady", message).await;
            }
        }
        Ok(())
    }

    async fn attend_pod(&self, key: &Key) -> Result<Next, Error> {
        let Some((pod, decided)) = self.decide_pod(key) else { return Ok(Next::Rest) };
        match decided {
            Fate::Later(after) => Ok(Next::After(after)),
            Fate::Stays => {
                let was = held(&self.known).limited.remove(key);
                if was.is_some() && pod.deadline.is_none() {
                    let message = format!("Cancelling deletion of Pod {key}");
                    self.tell_eviction(key, &pod, &message).await;
                }
                Ok(Next::Rest)
            }
            Fate::Evicted(stay) => {
                let since =
                    *held(&self.known).limited.entry(key.clone()).or_insert_with(Instant::now);
                let left = stay.saturating_sub(since.elapsed());
                if !left.is_zero() {
                    return Ok(Next::After(left));
                }
                self.evict(key, &pod).await?;
                held(&self.known).limited.remove(key);
                Ok(Next::Rest)
            }
            Fate::Removed(why) => {
                if why == Why::NodeMissing && self.node_exists(&pod.node).await? {
                    return Ok(Next::Again);
                }
                self.remove(key, &pod, why).await?;
                Ok(Next::Rest)
            }
        }
    }

    fn decide_pod(&self, key: &Key) -> Option<(Pod, Fate)> {
        let mut known = held(&self.known);
        let Known { nodes, pods, missing, nodes_listed, .. } = &mut *known;
        let pod = pods.get(key)?.clone();
        let node = match nodes.get(&pod.node) {
            Some(node) => {
                missing.remove(key);
                Standing::There { taints: &node.spec.taints, ready: node.ready() }
            }
            None if pod.node.is_empty() => Standing::Missing(Duration::ZERO),
            None if !*nodes_listed => return None,
            None => {
                let since = *missing.entry(key.clone()).or_insert_with(Instant::now);
                Standing::Missing(since.elapsed())
            }
        };
        let now = self.context.clock.now();
        let deadline = pod.deadline.as_ref().and_then(|time| time.parse().ok()).unwrap_or(now);
        let settings = &self.context.settings;
        let patience = Patience {
            missing_node: settings.missing_node_grace,
            lost_pod: settings.lost_pod_grace,
        };
        let fate = fate(&pod, node, between(deadline, now), between(now, deadline), patience);
        Some((pod, fate))
    }

    async fn node_exists(&self, name: &str) -> Result<bool, Error> {
        Ok(self.context.calls.find::<Value>(&core("", "nodes", name)).await?.is_some())
    }

    async fn tell_eviction(&self, key: &Key, pod: &Pod, message: &str) {
        let about = about_pod(key, &pod.uid);
        self.evictions.record(&about, Weight::Normal, "TaintManagerEviction", message).await;
    }

    async fn evict(&self, key: &Key, pod: &Pod) -> Result<(), Error> {
        self.tell_eviction(key, pod, &format!("Marking for deletion Pod {key}")).await;
        let path = core(&key.namespace, "pods", &key.name);
        let message = "Taint manager: deleting due to NoExecute taint";
        let condition = self.disruption("DeletionByTaintManager", message);
        let edit = json!({"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}});
        let status = format!("{path}/status");
        if unless_missing(self.context.calls.merge_parts(&status, &edit).await)?.is_none() {
            return Ok(());
        }
        let options = delete_options(Propagation::Background, Some(&pod.uid));
        unless_missing(self.context.calls.delete(&path, &options).await).map(|_| ())
    }

    fn disruption(&self, reason: &str, message: &str) -> Value {
        json!({
            "type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": seconds(self.context.clock.now()),
        })
    }

    /// Removes the object of a pod that nobody else will remove; first it says that it has failed.
    async fn remove(&self, key: &Key, pod: &Pod, why: Why) -> Result<(), Error> {
        let path = core(&key.namespace, "pods", &key.name);
        if !pod.ended {
            let message = match why {
                Why::NodeMissing => Some("PodGC: node no longer exists"),
                Why::NodeLost => Some("PodGC: node is lost"),
                Why::NeverPlaced | Why::OutOfService => None,
            };
            let mut status = json!({"phase": "Failed"});
            if let Some(message) = message {
                status["conditions"] = json!([self.disruption("DeletionByPodGC", message)]);
            }
            let edit = json!({"metadata": {"uid": pod.uid}, "status": status});
            let status = format!("{path}/status");
            if unless_missing(self.context.calls.merge_parts(&status, &edit).await)?.is_none() {
                return Ok(());
            }
        }
        tracing::info!(pod = %key, node = pod.node, ?why, "a pod that nobody looks after is removed");
        let mut options = delete_options(Propagation::Background, Some(&pod.uid));
        options["gracePeriodSeconds"] = json!(0);
        unless_missing(self.context.calls.delete(&path, &options).await).map(|_| ())
    }
}

fn about_node(name: &str, uid: &str) -> About {
    let meta = Meta { name: name.to_owned(), uid: uid.to_owned(), ..Meta::default() };
    About::core("Node", &meta)
}

fn about_pod(key: &Key, uid: &str) -> About {
    let meta = Meta {
        name: key.name.clone(),
        namespace: key.namespace.clone(),
        uid: uid.to_owned(),
        ..Meta::default()
    };
    About::core("Pod", &meta)
}
