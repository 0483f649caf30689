//! What a scheduler shares out on a [`Floor`]: nodes that are only objects, queues, priority classes.
//!
//! All of them belong to the whole cluster, so that their names say whose they are.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};

use super::fence::SCENE;
use super::floor::Floor;
use crate::kubelet::presence::Pulse;
use crate::rest::Rest;

const BEAT: Duration = Duration::from_secs(5);
const NODES: &str = "/api/v1/nodes";
const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";
const CLASSES: &str = "/apis/scheduling.k8s.io/v1/priorityclasses";

/// Names of the nodes that are well.
pub(super) type Well = Arc<Mutex<BTreeSet<String>>>;

impl Floor {
    /// The name of something that belongs to the whole cluster.
    pub(crate) fn own(&self, name: &str) -> String {
        format!("{name}.{}", self.namespace)
    }

    /// Makes a node with these resources, and room for 20 pods.
    pub(crate) async fn node(&self, name: &str, has: Value) -> Result<String> {
        self.node_with(name, has, json!({}), json!([])).await
    }

    /// The same with labels and taints.
    pub(crate) async fn node_with(
        &self,
        name: &str,
        mut has: Value,
        mut labels: Value,
        taints: Value,
    ) -> Result<String> {
        let name = self.own(name);
        labels[SCENE] = self.namespace.as_str().into();
        labels["kubernetes.io/hostname"] = name.as_str().into();
        if has["pods"].is_null() {
            has["pods"] = "20".into();
        }
        let node = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "labels": labels}, "spec": {"unschedulable": true}});
        self.rest.send(Method::POST, NODES, Some(&node)).await.context("making a node")?;
        let status = json!({"status": {"capacity": has, "allocatable": has,
            "conditions": [self.pulse.ready()]}});
        let path = format!("{NODES}/{name}");
        self.rest.send(Method::PATCH, &format!("{path}/status"), Some(&status)).await?;
        self.lock().insert(name.clone());
        // A server may have put a taint on it until it is known to be well.
        let spec = json!({"spec": {"unschedulable": false, "taints": taints}});
        self.rest.send(Method::PATCH, &path, Some(&spec)).await.context("opening a node")?;
        Ok(name)
    }

    /// Edits a node of this floor.
    pub(crate) async fn edit_node(&self, name: &str, change: Value) -> Result<()> {
        let path = format!("{NODES}/{}", self.own(name));
        self.rest.send(Method::PATCH, &path, Some(&change)).await.context("editing a node")?;
        Ok(())
    }

    /// A node falls silent, and the cluster has noticed.
    pub(crate) async fn lose_node(&self, name: &str) -> Result<()> {
        let own = self.own(name);
        self.lock().remove(&own);
        let status = json!({"status": {"conditions": [self.pulse.unknown()]}});
        let path = format!("{NODES}/{own}/status");
        self.rest.send(Method::PATCH, &path, Some(&status)).await.context("losing a node")?;
        let taint =
            |effect: &str| json!({"key": "node.kubernetes.io/unreachable", "effect": effect});
        let taints = [taint("NoSchedule"), taint("NoExecute")];
        self.edit_node(name, json!({"spec": {"taints": taints}})).await
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.well.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a queue; its full name.
    pub(crate) async fn queue(&self, name: &str, spec: Value) -> Result<String> {
        let name = self.own(name);
        let queue = json!({
            "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
            "metadata": {"name": name, "labels": {SCENE: self.namespace}}, "spec": spec,
        });
        self.rest.send(Method::POST, QUEUES, Some(&queue)).await.context("making a queue")?;
        Ok(name)
    }

    /// Writes the state of a queue.
    pub(crate) async fn queue_state(&self, queue: &str, state: &str) -> Result<()> {
        let path = format!("{QUEUES}/{queue}/status");
        let change = json!({"status": {"state": state}});
        self.rest.send(Method::PATCH, &path, Some(&change)).await.context("closing a queue")?;
        Ok(())
    }

    /// A queue as it is.
    pub(crate) async fn get_queue(&self, queue: &str) -> Result<Value> {
        Ok(self.rest.send(Method::GET, &format!("{QUEUES}/{queue}"), None).await?)
    }

    /// Waits until a field of a queue, by its JSON pointer, has a value.
    pub(crate) async fn queue_is(&self, queue: &str, field: &str, wanted: &str) -> Result<()> {
        let mut last = Value::Null;
        for _ in 0..200 {
            last = self.get_queue(queue).await?;
            if last.pointer(field).is_some_and(|value| value == wanted) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!("{field} of queue {queue} never was {wanted}: {last}")
    }

    /// Makes a priority class; its full name.
    pub(crate) async fn class(&self, name: &str, value: i64) -> Result<String> {
        self.class_with(name, value, "PreemptLowerPriority").await
    }

    /// The same, with what its pods do to others.
    pub(crate) async fn class_with(&self, name: &str, value: i64, does: &str) -> Result<String> {
        let name = self.own(name);
        let class = json!({
            "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value, "preemptionPolicy": does,
        });
        self.rest.send(Method::POST, CLASSES, Some(&class)).await.context("making a class")?;
        Ok(name)
    }
}

/// Says every few seconds of all nodes that they are well, as their kubelets would.
pub(super) async fn beat(rest: Rest, pulse: Pulse, well: Well) {
    loop {
        let names = well.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for name in names {
            let status = json!({"status": {"conditions": [pulse.ready()]}});
            // The next beat comes soon enough.
            let _ =
                rest.send(Method::PATCH, &format!("{NODES}/{name}/status"), Some(&status)).await;
        }
        tokio::time::sleep(BEAT).await;
    }
}
