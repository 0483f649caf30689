//! Carries decisions out: bindings, the condition of pods that wait, and events about both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::{debug, warn};
use trainyard_sched::{Cause, Decision, Doing, PodName};

use super::world::World;
use crate::calls::{Call, CallError, Calls, Turn, Verb};
use crate::clock::Clock;

/// Writes under way at the same time.
const AT_ONCE: usize = 16;
/// Pods of one gang are made one after the other: a moment together saves looking at each.
const GATHER: Duration = Duration::from_millis(5);
/// The pause after a binding that failed.
const RETRY: Duration = Duration::from_secs(1);
/// Words about so many waiting pods are remembered.
const REMEMBERED: usize = 20_000;

pub(super) struct Actor {
    calls: Calls,
    world: Arc<World>,
    clock: Clock,
    reporter: String,
}

impl Actor {
    pub(super) fn new(calls: Calls, world: Arc<World>, clock: Clock, names: Vec<String>) -> Self {
        let reporter = names.into_iter().next().unwrap_or_default();
        Self { calls, world, clock, reporter }
    }

    /// Decides and acts for ever.
    pub(super) async fn run(&self) {
        // What waiting pods were last told, by identity.
        let mut told: BTreeMap<String, Arc<str>> = BTreeMap::new();
        loop {
            self.world.changed().await;
            tokio::time::sleep(GATHER).await;
            let decisions = self.world.decide(self.clock.now().as_second());
            let mut work = Vec::new();
            for decision in decisions {
                match &decision {
                    Decision::Bind { uid, .. } => {
                        told.remove(uid);
                    }
                    Decision::Wait { uid, message, .. } => {
                        if told.get(uid) == Some(message) {
                            continue;
                        }
                        if told.len() >= REMEMBERED {
                            told.clear();
                        }
                        told.insert(uid.clone(), message.clone());
                    }
                    Decision::Evict { .. } | Decision::Promise { .. } | Decision::Report(_) => {}
                }
                work.push(decision);
            }
            let acts = work.into_iter().map(|decision| self.act(decision));
            let failed: Vec<bool> =
                futures::stream::iter(acts).buffer_unordered(AT_ONCE).collect().await;
            if failed.into_iter().any(|failed| failed) {
                tokio::time::sleep(RETRY).await;
                self.world.look_again();
            }
        }
    }

    /// Carries one decision out; whether it is to be decided anew.
    async fn act(&self, decision: Decision) -> bool {
        match decision {
            Decision::Bind { pod, uid, node } => match self.bind(&pod, &uid, &node).await {
                Ok(()) => {
                    let words =
                        format!("Successfully assigned {}/{} to {node}", pod.namespace, pod.name);
                    self.tell(&pod, &uid, "Normal", "Scheduled", &words).await;
                    false
                }
                // The watch tells what became of it.
                Err(error) if error.code() == 404 => false,
                Err(error) => {
                    warn!(pod = %pod.name, node, %error, "binding a pod failed");
                    self.world.failed(&pod, &uid, Doing::Binding(node));
                    true
                }
            },
            Decision::Wait { pod, uid, message } => {
                if let Err(error) = self.mark(&pod, &message).await {
                    debug!(pod = %pod.name, %error, "a waiting pod was not marked");
                    return false;
                }
                self.tell(&pod, &uid, "Warning", "FailedScheduling", &message).await;
                false
            }
            Decision::Evict { pod, uid, cause } => self.evict(&pod, &uid, &cause).await,
            Decision::Promise { pod, node, .. } => {
                self.promise(&pod, &node).await;
                false
            }
            // PodGroups are not followed, so there is none to report on.
            Decision::Report(_) => false,
        }
    }

    /// Deletes a pod that makes room; whether it is to be decided anew.
    async fn evict(&self, pod: &PodName, uid: &str, cause: &Cause) -> bool {
        let words = match cause {
            Cause::Preempted(by) => format!("Preempted by {}/{}", by.namespace(), by.name()),
            Cause::Reclaimed(by) => format!("Reclaimed for {}/{}", by.namespace(), by.name()),
            Cause::Incomplete => "The gang of the pod could not be completed".to_owned(),
        };
        self.tell(pod, uid, "Warning", "Evict", &words).await;
        let body = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid},
        });
        let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
        match self.send(Verb::Delete, "pods", path, &body, Turn::Usual).await {
            Ok(()) => false,
            Err(error) if error.code() == 404 => false,
            Err(error) => {
                warn!(pod = %pod.name, %error, "evicting a pod failed");
                self.world.failed(pod, uid, Doing::Evicting);
                true
            }
        }
    }

    async fn promise(&self, pod: &PodName, node: &str) {
        let body = json!({"status": {"nominatedNodeName": node}});
        let path = format!("/api/v1/namespaces/{}/pods/{}/status", pod.namespace, pod.name);
        if let Err(error) = self.send(Verb::Patch, "pods/status", path, &body, Turn::Usual).await {
            debug!(pod = %pod.name, %error, "a pod's node was not noted");
        }
    }

    async fn bind(&self, pod: &PodName, uid: &str, node: &str) -> Result<(), CallError> {
        let body = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": uid},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!("/api/v1/namespaces/{}/pods/{}/binding", pod.namespace, pod.name);
        self.send(Verb::Create, "pods/binding", path, &body, Turn::Usual).await
    }

    async fn mark(&self, pod: &PodName, message: &str) -> Result<(), CallError> {
        let body = json!({"status": {"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": message, "lastTransitionTime": seconds(self.clock.now()),
        }]}});
        let path = format!("/api/v1/namespaces/{}/pods/{}/status", pod.namespace, pod.name);
        self.send(Verb::Patch, "pods/status", path, &body, Turn::Usual).await
    }

    async fn tell(&self, pod: &PodName, uid: &str, kind: &str, reason: &str, message: &str) {
        let now = self.clock.now();
        let name = format!("{}.{:x}", pod.name, now.as_nanosecond());
        let time = seconds(now);
        let body = json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": pod.namespace},
            "involvedObject": {
                "apiVersion": "v1", "kind": "Pod", "namespace": pod.namespace,
                "name": pod.name, "uid": uid,
            },
            "type": kind, "reason": reason, "message": message,
            "source": {"component": self.reporter}, "reportingComponent": self.reporter,
            "firstTimestamp": time, "lastTimestamp": time, "count": 1,
        });
        let path = format!("/api/v1/namespaces/{}/events", pod.namespace);
        if let Err(error) = self.send(Verb::Create, "events", path, &body, Turn::Spare).await {
            debug!(pod = %pod.name, %error, "an event was not written");
        }
    }

    async fn send(
        &self,
        verb: Verb,
        resource: &'static str,
        path: String,
        body: &Value,
        turn: Turn,
    ) -> Result<(), CallError> {
        let body = body.to_string().into_bytes();
        self.calls.send(Call { verb, resource, path, body, turn }).await.map(drop)
    }
}

fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
