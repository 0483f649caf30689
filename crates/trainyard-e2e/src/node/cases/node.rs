//! The Node object and what is read through it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use serde_json::{Value, json};

use super::Shared;
use super::look::until;
use crate::check::contains;
use crate::control_plane::KUBELET_CLIENT_NAME;
use crate::harness::{Case, cases, within};
use crate::kubectl::{Kubectl, Outcome};
use crate::node::{Agent, AgentOptions, Pods, Stage};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["node":
        node,
        lease,
        described,
        stats,
        strangers_stay_out,
        no_proxy,
    ]
}

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    within(
        Duration::from_mins(2),
        cases!["node":
            client_names,
            interrupted,
        ],
    )
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
        // First where the API server asks, then where pods have it.
        let internal = addresses.iter().filter(|address| address.type_ == "InternalIP");
        let internal: Vec<&str> = internal.map(|address| address.address.as_str()).collect();
        let host_ip = host_ip(stage, name).await?;
        ensure!(internal == ["127.0.0.1", &host_ip], "{addresses:?}, of pods: {host_ip}");
        let port = status.daemon_endpoints.and_then(|ends| ends.kubelet_endpoint);
        ensure!(port.is_some_and(|port| port.port > 0));
    }
    Ok(())
}

/// What pods of a node are told of it.
async fn host_ip(stage: &Stage, node: &str) -> Result<String> {
    let pods = Pods::open(stage, "hostip").await?;
    let source = json!({"fieldRef": {"fieldPath": "status.hostIP"}});
    let env = json!([{"name": "HOST", "valueFrom": source}]);
    let more = json!({"nodeName": node, "containers": [{"env": env}]});
    pods.shell("asks", "echo $HOST", more).await?;
    let pod = pods.until_phase("asks", "Succeeded").await?;
    let host = pod.status.and_then(|status| status.host_ip).context("no hostIP")?;
    ensure!(pods.logs(&["asks"]).await? == format!("{host}\n"));
    Ok(host)
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
async fn strangers_stay_out(stage: &Stage, agent: &Agent) -> Result<()> {
    let api = KubeletApi::of(stage, &agent.nodes[0]).await?;
    ensure!(api.as_api_server("/pods").await?.success(), "the API server itself is refused");
    let refused = api.ask("/pods", &["--token=a-guess"]).await?;
    ensure!(!refused.success() && refused.stdout.is_empty(), "a stranger was told: {refused:?}");
    ensure!(refused.stderr.contains("certificate required"), "{refused:?}");
    Ok(())
}

/// An API server passes on requests to addresses that others could reach, not to this machine's own.
async fn no_proxy(stage: &Stage, agent: &Agent) -> Result<()> {
    for path in ["healthz", "stats/summary"] {
        let path = format!("/api/v1/nodes/{}/proxy/{path}", agent.nodes[0]);
        let words = ["get", "--raw", &path];
        let error = stage.kubectl.run(&words).await?.stderr_of_failure()?;
        ensure!(error.contains("address not allowed"), "{error}");
    }
    Ok(())
}

/// Whom else the API server's authority vouches for is answered or not as the node is told.
async fn client_names(stage: &Stage) -> Result<()> {
    let nodes = vec!["sorrel".to_owned()];
    let named = async |name: &str| {
        let flags = vec![format!("--client-name={name}"), "--client-name=nobody".to_owned()];
        let options = AgentOptions { nodes: nodes.clone(), flags, ..AgentOptions::default() };
        Agent::start(stage, options).await
    };
    let pods = Pods::open(stage, "names").await?;
    let agent = named(KUBELET_CLIENT_NAME).await?;
    pods.shell("talker", "echo heard", json!({"nodeName": "sorrel"})).await?;
    pods.until_phase("talker", "Succeeded").await?;
    ensure!(pods.logs(&["talker"]).await? == "heard\n");
    let api = KubeletApi::of(stage, "sorrel").await?;
    let refused = api.as_one("person", "/pods").await?;
    ensure!(!refused.success() && !refused.stdout.contains("talker"), "{refused:?}");
    contains("a person", &refused.stderr, &["orbidden"])?;
    let home = agent.state.clone();
    agent.stop().await?;
    // The API server itself is told why, and tells whoever asks it.
    let options = AgentOptions {
        nodes: nodes.clone(),
        flags: vec!["--client-name=somebody".to_owned()],
        state: Some(home),
        ..AgentOptions::default()
    };
    let agent = Agent::start(stage, options).await?;
    let words = ["logs", "-n", &pods.namespace, "talker"];
    let error = stage.kubectl.run(&words).await?.stderr_of_failure()?;
    contains("kubectl", &error, &[KUBELET_CLIENT_NAME, "--client-name"])?;
    agent.stop().await
}

/// While there is no API server an agent waits for it, and can be told to stop.
async fn interrupted(stage: &Stage) -> Result<()> {
    // Nobody listens there.
    let flags = vec!["--master=https://127.0.0.1:1".to_owned()];
    let nodes = vec!["sorrel".to_owned()];
    let options = AgentOptions { nodes, flags, ..AgentOptions::default() };
    let agent = Agent::launch(stage, &options)?;
    agent.until_logged("the API server does not answer yet").await?;
    let began = Instant::now();
    agent.stop().await?;
    ensure!(began.elapsed() < Duration::from_secs(3), "it took {:?}", began.elapsed());
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
        self.as_one("apiserver-kubelet-client", path).await
    }

    /// With the certificate in these files.
    async fn as_one(&self, stem: &str, path: &str) -> Result<Outcome> {
        let file = |name: &str| self.secrets.join(format!("{stem}.{name}"));
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
