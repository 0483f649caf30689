//! A node that is there and well, for as long as somebody says so. Pods of a node that does not exist,
//! or that is silent, are taken away by the servers that have the controllers of a cluster.

use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use trainyard_apiserver::Clock;

use super::NODE;
use crate::rest::Rest;

const BEAT: Duration = Duration::from_secs(5);

/// Makes the node that played kubelets are on.
pub(crate) async fn register(rest: &Rest) -> Result<()> {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    rest.send(Method::POST, "/api/v1/nodes", Some(&node)).await.context("making a node")?;
    Ok(())
}

/// The time by which nodes say that they are well.
///
/// The time of day stands still while that of the runtime is paused; each beat has to differ.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pulse {
    clock: Clock,
}

impl Pulse {
    /// From now on.
    pub(crate) fn start() -> Self {
        Self { clock: Clock::of_runtime() }
    }

    /// The condition of a node that is well.
    pub(crate) fn ready(&self) -> Value {
        self.condition("True", "KubeletReady", "it is played")
    }

    /// The condition of a node that has fallen silent.
    pub(crate) fn unknown(&self) -> Value {
        self.condition("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
    }

    fn condition(&self, status: &str, reason: &str, message: &str) -> Value {
        let now = text(&self.clock);
        json!({
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    }
}

/// A clock's time in the precision of the API.
pub(super) fn text(clock: &Clock) -> String {
    clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Says every few seconds that the node is well, as its kubelet would. Ends only by an error.
pub(crate) async fn beat(rest: &Rest) -> Result<()> {
    let pulse = Pulse::start();
    loop {
        let ready = json!({"status": {"conditions": [pulse.ready()]}});
        let path = format!("/api/v1/nodes/{NODE}/status");
        rest.send(Method::PATCH, &path, Some(&ready)).await.context("a node's heartbeat")?;
        tokio::time::sleep(BEAT).await;
    }
}
