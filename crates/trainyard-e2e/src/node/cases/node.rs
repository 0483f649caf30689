//! The Node object and what is read through it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::{Value, json};

use super::Case;
use super::look::until;
use crate::kubectl::{Kubectl, Outcome};
use crate::node::{Agent, Pods, Stage};

pub(super) fn all() -> Vec<Case> {
    vec![
        Case { name: "node/node", play: |s, a| Box::pin(node(s, a)) },
        Case { name: "node/lease", play: |s, a| Box::pin(lease(s, a)) },
        Case { name: "node/described", play: |s, a| Box::pin(described(s, a)) },
        Case { name: "node/stats", play: |s, a| Box::pin(stats(s, a)) },
        Case { name: "node/strangers_stay_out", play: |s, a| Box::pin(strangers(s, a)) },
    ]
}

async fn node(stage: &Stage, agent: &Agent) -> Result<()> {
    let nodes: Api<Node> = Api::all(stage.client.clone());
    for name in &agent.nodes {
        let node = nodes.get(name).await?;
        let labels = node.metadata.labels.clone().unwrap_or_default();
        ensure!(labels.get("kubernetes.io/hostname") == Some(name), "{labels:?}");
        for label in ["kubernetes.io/os", "trainyard.dev/sandbox", "trainyard.dev/network"] {
            ensure!(labels.contains_key(label), "{label} is not in {labels:?}");
        }
        let status = node.status.context("a node without a status")?;
        let condition = |kind: &str| {
            let all = status.conditions.iter().flatten();
            all.clone().find(|c| c.type_ == kind).map(|c| c.status.clone()).unwrap_or_default()
        };
        ensure!(condition("Ready") == "True", "{:?}", status.conditions);
        for kind in ["MemoryPressure", "DiskPressure", "PIDPressure"] {
            ensure!(condition(kind) == "False", "{:?}", status.conditions);
        }
        for amounts in [&status.capacity, &status.allocatable] {
            let amounts = amounts.clone().unwrap_or_default();
            for resource in ["cpu", "memory", "ephemeral-storage", "pods"] {
                let amount = amounts.get(resource).map(|amount| amount.0.clone());
                ensure!(amount.as_deref().is_some_and(|a| a != "0"), "{resource}: {amounts:?}");
            }
        }
        let addresses = status.addresses.unwrap_or_default();
        ensure!(addresses.iter().any(|address| address.type_ == "InternalIP"), "{addresses:?}");
        let port = status.daemon_endpoints.and_then(|ends| ends.kubelet_endpoint);
        ensure!(port.is_some_and(|port| port.port > 0));
    }
    Ok(())
}

async fn lease(stage: &Stage, agent: &Agent) -> Result<()> {
    let leases: Api<Lease> = Api::namespaced(stage.client.clone(), "kube-node-lease");
    let renewed = async || {
        let lease = leases.get(&agent.nodes[0]).await?;
        let spec = lease.spec.context("a lease without a spec")?;
        ensure!(spec.lease_duration_seconds == Some(40), "{spec:?}");
        ensure!(spec.holder_identity.as_deref() == Some(&agent.nodes[0]), "{spec:?}");
        let owner = lease.metadata.owner_references.unwrap_or_default();
        ensure!(owner.iter().any(|owner| owner.kind == "Node"), "{owner:?}");
        Ok(spec.renew_time.context("never renewed")?.0)
    };
    let first = renewed().await?;
    until("a renewed lease", async || Ok(renewed().await? > first)).await
}

async fn described(stage: &Stage, agent: &Agent) -> Result<()> {
    let wide = stage.kubectl.run(&["get", "nodes", "-o", "wide"]).await?.stdout_of_success()?;
    for name in &agent.nodes {
        let line = wide.lines().find(|line| line.starts_with(name.as_str()));
        let line = line.with_context(|| format!("no {name} in {wide}"))?;
        ensure!(line.contains(" Ready ") && line.contains("trainyard://"), "{line}");
    }
    let pods = Pods::open(stage, "described").await?;
    pods.shell(
        "listed",
        "exec sleep 600",
        json!({"nodeName": agent.nodes[0],
        "containers": [{"resources": {"requests": {"cpu": "10m"}}}]}),
    )
    .await?;
    pods.until_phase("listed", "Running").await?;
    let text =
        stage.kubectl.run(&["describe", "node", &agent.nodes[0]]).await?.stdout_of_success()?;
    ensure!(text.contains("listed") && text.contains("10m"), "{text}");
    let pod = ["describe", "pod", "-n", &pods.namespace, "listed"];
    let text = stage.kubectl.run(&pod).await?.stdout_of_success()?;
    ensure!(text.contains("Started") && text.contains("kubelet"), "{text}");
    Ok(())
}

async fn stats(stage: &Stage, agent: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "stats").await?;
    let script = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done; exec sleep 600";
    pods.shell("busy", script, json!({"nodeName": agent.nodes[0]})).await?;
    pods.until_phase("busy", "Running").await?;
    let api = KubeletApi::of(stage, &agent.nodes[0]).await?;
    let raw = async |path: &str| api.as_api_server(path).await?.stdout_of_success();
    let mut busy = Value::Null;
    for _ in 0..100 {
        let summary: Value = serde_json::from_str(&raw("/stats/summary").await?)?;
        ensure!(summary["node"]["nodeName"] == agent.nodes[0].as_str(), "{summary}");
        let mut all = summary["pods"].as_array().into_iter().flatten();
        let of_case = |pod: &&Value| pod["podRef"]["namespace"] == pods.namespace.as_str();
        busy = all.find(of_case).cloned().unwrap_or_default();
        let used = |what: &str, which: &str| busy["containers"][0][what][which].as_u64();
        if used("cpu", "usageCoreNanoSeconds") > Some(0) && used("memory", "usageBytes") > Some(0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    ensure!(busy["podRef"]["name"] == "busy" && busy["containers"][0]["name"] == "main", "{busy}");
    ensure!(busy["containers"][0]["cpu"]["usageCoreNanoSeconds"].as_u64() > Some(0), "{busy}");
    ensure!(busy["containers"][0]["memory"]["usageBytes"].as_u64() > Some(0), "{busy}");
    let metrics = raw("/metrics/resource").await?;
    let line = format!("namespace=\"{}\",pod=\"busy\"", pods.namespace);
    ensure!(metrics.contains(&line), "{metrics}");
    ensure!(raw("/pods").await?.contains(&pods.namespace));
    ensure!(raw("/healthz").await?.starts_with("ok"));
    Ok(())
}

/// Whoever has no certificate of the API server's authority learns nothing.
async fn strangers(stage: &Stage, agent: &Agent) -> Result<()> {
    let api = KubeletApi::of(stage, &agent.nodes[0]).await?;
    ensure!(api.as_api_server("/pods").await?.success(), "the API server itself is refused");
    let refused = api.ask("/pods", &["--token=a-guess"]).await?;
    ensure!(!refused.success() && refused.stdout.is_empty(), "a stranger was told: {refused:?}");
    ensure!(refused.stderr.contains("certificate required"), "{refused:?}");
    Ok(())
}

/// The kubelet's API of one node, asked directly: the API server passes on nothing to an address of
/// the loopback interface but logs and exec.
struct KubeletApi {
    kubectl: Kubectl,
    server: String,
    secrets: PathBuf,
}

impl KubeletApi {
    async fn of(stage: &Stage, node: &str) -> Result<Self> {
        let nodes: Api<Node> = Api::all(stage.client.clone());
        let ends = nodes.get(node).await?.status.and_then(|status| status.daemon_endpoints);
        let port = ends.and_then(|ends| ends.kubelet_endpoint).context("no port")?.port;
        let secrets = stage.authority.parent().context("no folder")?.to_owned();
        let server = format!("--server=https://127.0.0.1:{port}");
        Ok(Self { kubectl: stage.kubectl.clone(), server, secrets })
    }

    async fn as_api_server(&self, path: &str) -> Result<Outcome> {
        let file = |name: &str| self.secrets.join(format!("apiserver-kubelet-client.{name}"));
        let certificate = format!("--client-certificate={}", file("crt").display());
        let key = format!("--client-key={}", file("key").display());
        self.ask(path, &[&certificate, &key]).await
    }

    async fn ask(&self, path: &str, who: &[&str]) -> Result<Outcome> {
        // It asks with what it is told here, not with what its own configuration says.
        let all = ["get", "--raw", path, &self.server, "--insecure-skip-tls-verify"];
        let all = [&["--kubeconfig=/dev/null"][..], &all, who].concat();
        self.kubectl.run(&all).await
    }
}
