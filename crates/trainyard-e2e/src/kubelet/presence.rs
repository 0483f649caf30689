//! A node that is there and well, for as long as somebody says so. Pods of a node that does not exist,
//! or that is silent, are taken away by the servers that have the controllers of a cluster.

use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::time::Instant;

use super::NODE;
use crate::rest::Rest;

const BEAT: Duration = Duration::from_secs(5);

/// Makes the node that played kubelets are on.
pub(crate) async fn register(rest: &Rest) -> Result<()> {
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}});
    rest.send(Method::POST, "/api/v1/nodes", Some(&node)).await.context("making a node")?;
    Ok(())
}

/// Says every few seconds that the node is well, as its kubelet would. Ends only by an error.
pub(crate) async fn beat(rest: &Rest) -> Result<()> {
    // The time of day stands still while that of the runtime is paused; each beat has to differ.
    let (start, since) = (Timestamp::now(), Instant::now());
    loop {
        let passed = SignedDuration::try_from(since.elapsed())?;
        let now = start.checked_add(passed)?.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let ready = json!({"status": {"conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "it is played",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }]}});
        let path = format!("/api/v1/nodes/{NODE}/status");
        rest.send(Method::PATCH, &path, Some(&ready)).await.context("a node's heartbeat")?;
        tokio::time::sleep(BEAT).await;
    }
}
