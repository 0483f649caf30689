//! When a cluster is ready for its users: asked of the API server, as they will. Starts nothing.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::addresses::{self, DNS, DNS_READY_PORT};
use super::node::Node;
use crate::control_plane::probe::Probe;
use crate::kubectl::Kubectl;

/// A loaded machine needs a minute for all of it.
const PATIENCE: Duration = Duration::from_mins(5);
const POLL: Duration = Duration::from_millis(200);
/// Taints of nodes that pods cannot use yet.
const NOT_YET: [&str; 3] = [
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/network-unavailable",
];

/// Asks whether a cluster is ready.
pub(super) struct Readiness {
    probe: Probe,
    kubectl: Kubectl,
}

impl Readiness {
    /// `authority` signed the certificate of the API server at this port of loopback.
    pub(super) fn new(port: u16, authority: &[u8], kubectl: Kubectl) -> Result<Self> {
        Ok(Self { probe: Probe::new(port, authority, None)?, kubectl })
    }

    pub(super) fn kubectl(&self) -> &Kubectl {
        &self.kubectl
    }

    /// Returns when the API server says that it is ready.
    pub(super) async fn of_api_server(&self, nodes: &mut [Option<Node>]) -> Result<()> {
        until(nodes, "kube-apiserver is not ready", async || {
            match self.probe.status("/readyz").await {
                Ok(200) => Ok(None),
                Ok(status) => Ok(Some(format!("it answers {status}"))),
                Err(error) => Ok(Some(format!("{error:#}"))),
            }
        })
        .await
    }

    /// The nodes as the API server has them.
    pub(super) async fn nodes(&self) -> Result<Value> {
        let answer = self.kubectl.run(&["get", "nodes", "-o", "json"]).await?;
        serde_json::from_str(&answer.stdout_of_success()?).context("kubectl gave no JSON")
    }

    /// Returns when these nodes are ready, and have said so since `before` was asked.
    pub(super) async fn of_nodes(
        &self,
        nodes: &mut [Option<Node>],
        indices: &[usize],
        before: &Value,
    ) -> Result<()> {
        until(nodes, "nodes are not ready", async || {
            let now = self.nodes().await?;
            let reasons = indices.iter().filter_map(|&index| {
                let name = addresses::name(index);
                Some(format!("{name}: {}", not_ready(&now, &name, heartbeat(before, &name))?))
            });
            let reasons: Vec<_> = reasons.collect();
            Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
        })
        .await
    }

    /// Returns when the name server has read all it needs, and pods can be made in the namespace `default`.
    pub(super) async fn of_the_rest(&self, nodes: &mut [Option<Node>]) -> Result<()> {
        let first = nodes.first().and_then(Option::as_ref).context("there is no first node")?;
        let mut ask = first.command("sh");
        let request = r"printf 'GET /ready HTTP/1.0\r\n\r\n'";
        ask.args(["-c", &format!("{request} | socat -t 2 - TCP:{DNS}:{DNS_READY_PORT}")]);
        until(nodes, "the name server is not ready", async || {
            let answer = ask.output().await?;
            let ready = answer.stdout.starts_with(b"HTTP/1.0 200");
            Ok((!ready).then(|| String::from_utf8_lossy(&answer.stdout).trim_end().to_owned()))
        })
        .await?;
        until(nodes, "the namespace `default` has no service account", async || {
            let words = ["get", "serviceaccount", "default", "--namespace=default"];
            let answer = self.kubectl.run(&words).await?;
            Ok((!answer.success()).then_some(answer.stderr))
        })
        .await
    }
}

/// Asks until there is no reason to wait any longer, and looks after the nodes' programs meanwhile.
async fn until(
    nodes: &mut [Option<Node>],
    what: &str,
    mut ask: impl AsyncFnMut() -> Result<Option<String>>,
) -> Result<()> {
    let started = Instant::now();
    loop {
        nodes.iter_mut().flatten().try_for_each(Node::check)?;
        let Some(reason) = ask().await? else { return Ok(()) };
        if started.elapsed() > PATIENCE {
            bail!("{what} after {PATIENCE:?}: {reason}");
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Why a node is not ready, if so. What it said last before it was lost is still there when it comes back.
fn not_ready(nodes: &Value, name: &str, before: Option<&str>) -> Option<String> {
    let Some(node) = find(nodes, name) else { return Some("it has not registered".to_owned()) };
    let Some(condition) = ready(node) else { return Some("it has said nothing".to_owned()) };
    if condition["status"] != "True" {
        return Some(condition["message"].as_str().unwrap_or_default().to_owned());
    }
    if before.is_some() && condition["lastHeartbeatTime"].as_str() == before {
        return Some("it has said nothing since it was started".to_owned());
    }
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let keys = taints.filter_map(|taint| taint["key"].as_str());
    keys.into_iter().find(|key| NOT_YET.contains(key)).map(|key| format!("it is tainted {key}"))
}

/// When a node last said how it is.
fn heartbeat<'a>(nodes: &'a Value, name: &str) -> Option<&'a str> {
    ready(find(nodes, name)?)?["lastHeartbeatTime"].as_str()
}

fn find<'a>(nodes: &'a Value, name: &str) -> Option<&'a Value> {
    nodes["items"].as_array()?.iter().find(|node| node["metadata"]["name"] == name)
}

fn ready(node: &Value) -> Option<&Value> {
    node["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == "Ready")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nodes(status: &str, heartbeat: &str, taint: &str) -> Value {
        json!({"items": [{
            "metadata": {"name": "node1"},
            "spec": {"taints": [{"key": taint}]},
            "status": {"conditions": [{"type": "Ready", "status": status,
                "lastHeartbeatTime": heartbeat, "message": "no runtime"}]},
        }]})
    }

    #[test]
    fn a_node_is_ready_when_it_has_said_so_since() {
        let asked = |nodes: &Value, before| not_ready(nodes, "node1", before);
        assert_eq!(asked(&nodes("True", "t1", "own"), None), None);
        assert_eq!(asked(&nodes("True", "t2", "own"), Some("t1")), None);
        assert!(asked(&nodes("True", "t1", "own"), Some("t1")).is_some());
        assert_eq!(asked(&nodes("False", "t1", "own"), None).unwrap(), "no runtime");
        let tainted = asked(&nodes("True", "t1", "node.kubernetes.io/not-ready"), None);
        assert_eq!(tainted.unwrap(), "it is tainted node.kubernetes.io/not-ready");
        assert!(not_ready(&nodes("True", "t1", "own"), "node2", None).is_some());
    }
}
