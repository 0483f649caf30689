//! Probes: what keeps a container, what makes it ready, what lets it start.

use anyhow::{Result, ensure};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};

use super::Shared;
use super::look::{Gate, condition, container, ended_before, runs, until};
use crate::harness::{Case, cases};
use crate::node::{Agent, Pods, Stage};

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["probes":
        liveness_by_program,
        liveness_by_http,
        liveness_by_tcp,
        liveness_without_restart,
        readiness_and_endpoints,
        startup_comes_first,
        startup_fails,
    ]
}

/// A server whose answers depend on files at the gate: `closed` is an error, `gone` closes the port.
const SERVER: &str = r"
import os, socket
from http.server import BaseHTTPRequestHandler, HTTPServer
class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        good = self.path == '/health?x=1' and self.headers['X-Probe'] == 'yes'
        self.send_response(503 if not good or os.path.exists('/gate/closed') else 200)
        self.end_headers()
    def log_message(self, *words): pass
server = HTTPServer(('', 8080), Answer)
server.timeout = 0.05
open('/gate/up', 'w').close()
while not os.path.exists('/gate/gone'): server.handle_request()
server.server_close()
import time
os.remove('/gate/gone')
time.sleep(600)
";

fn server(gate: &Gate, policy: &str, probes: Value) -> Value {
    let mut container = json!({
        "name": "main", "image": "test", "command": ["/usr/bin/python3", "-c", SERVER],
        "volumeMounts": [Gate::mount()], "ports": [{"name": "web", "containerPort": 8080}],
    });
    if let (Some(container), Value::Object(probes)) = (container.as_object_mut(), probes) {
        container.extend(probes);
    }
    json!({"restartPolicy": policy, "terminationGracePeriodSeconds": 1,
        "volumes": [gate.volume()], "containers": [container]})
}

/// A probe every second that one failure settles.
fn probe(what: Value) -> Value {
    let mut probe = json!({"periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 5});
    if let (Some(probe), Value::Object(what)) = (probe.as_object_mut(), what) {
        probe.extend(what);
    }
    probe
}

fn http() -> Value {
    json!({"httpGet": {"path": "/health?x=1", "port": "web",
        "httpHeaders": [{"name": "X-Probe", "value": "yes"}]}})
}

fn ran_again(pod: &Pod) -> bool {
    runs(pod, "main") && container(pod, "main").is_ok_and(|status| status.restart_count == 1)
}

async fn liveness_by_program(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "liveexec").await?, Gate::new()?);
    let mut spec = gate.spec();
    let check = "[ ! -e /gate/sick ] || { echo feeling sick; rm /gate/sick; exit 3; }";
    spec["restartPolicy"] = json!("Always");
    spec["terminationGracePeriodSeconds"] = json!(1);
    spec["containers"][0]["livenessProbe"] =
        probe(json!({"exec": {"command": ["sh", "-c", check]}}));
    pods.shell("live", "exec sleep 600", spec).await?;
    pods.until_phase("live", "Running").await?;
    gate.open("sick")?;
    let pod = pods.until("live", "restarted", ran_again).await?;
    let before = ended_before(&pod, "main")?;
    ensure!(before.exit_code == 143 && before.signal == Some(15), "{before:?}");
    pods.until_event("live", "Unhealthy: Liveness probe failed: feeling sick").await?;
    let words = "Killing: Container main failed liveness probe, will be restarted";
    pods.until_event("live", words).await?;
    Ok(())
}

async fn liveness_by_http(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "livehttp").await?, Gate::new()?);
    let mut probes = probe(http());
    // The server needs a moment; without one the first answer would be a refusal.
    probes["failureThreshold"] = json!(5);
    pods.create("web", server(&gate, "Always", json!({"livenessProbe": probes}))).await?;
    gate.until("up").await?;
    tokio::time::sleep(std::time::Duration::from_millis(2500)).await;
    let pod = pods.get("web").await?;
    ensure!(container(&pod, "main")?.restart_count == 0, "{:?}", pod.status);
    gate.open("closed")?;
    pods.until_event(
        "web",
        "Unhealthy: Liveness probe failed: HTTP probe failed with statuscode: 503",
    )
    .await?;
    pods.until("web", "restarted", ran_again).await?;
    Ok(())
}

async fn liveness_by_tcp(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "livetcp").await?, Gate::new()?);
    let mut probes = probe(json!({"tcpSocket": {"port": 8080}}));
    probes["failureThreshold"] = json!(4);
    pods.create("port", server(&gate, "Always", json!({"livenessProbe": probes}))).await?;
    gate.until("up").await?;
    gate.open("gone")?;
    pods.until_event("port", "Unhealthy: Liveness probe failed: dial tcp").await?;
    pods.until("port", "restarted", ran_again).await?;
    Ok(())
}

/// A pod that never restarts fails by its probe.
async fn liveness_without_restart(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "livenever").await?;
    let more = json!({"containers": [
        {"livenessProbe": probe(json!({"exec": {"command": ["false"]}}))}]});
    pods.shell("once", "exec sleep 600", more).await?;
    let pod = pods.until_phase("once", "Failed").await?;
    ensure!(container(&pod, "main")?.restart_count == 0, "{:?}", pod.status);
    pods.until_event("once", "Killing: ").await?;
    Ok(())
}

async fn readiness_and_endpoints(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "ready").await?, Gate::new()?);
    let services: Api<Service> = Api::namespaced(stage.client.clone(), &pods.namespace);
    let service = json!({"metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "web"}]}});
    services.create(&PostParams::default(), &serde_json::from_value(service)?).await?;
    let api: Api<Pod> = Api::namespaced(stage.client.clone(), &pods.namespace);
    let spec = server(&gate, "Always", json!({"readinessProbe": probe(http())}));
    let pod = json!({"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": spec});
    gate.open("closed")?;
    api.create(&PostParams::default(), &serde_json::from_value(pod)?).await?;
    gate.until("up").await?;
    pods.until_event("web", "Unhealthy: Readiness probe failed: ").await?;
    let pod = pods.get("web").await?;
    ensure!(condition(&pod, "Ready") == "False/ContainersNotReady", "{:?}", pod.status);
    let slices: Api<EndpointSlice> = Api::namespaced(stage.client.clone(), &pods.namespace);
    // The API takes no endpoint with an address of the loopback interface.
    let address = pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap_or_default();
    let has_endpoints = !address.starts_with("127.");
    let endpoint_ready = async |wanted: bool| -> Result<bool> {
        let slices = slices.list(&ListParams::default()).await?;
        let mut endpoints = slices.items.iter().flat_map(|slice| slice.endpoints.iter());
        let found = endpoints.any(|endpoint| {
            endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(wanted)
        });
        Ok(found || !has_endpoints)
    };
    until("an endpoint that is not ready", async || endpoint_ready(false).await).await?;
    gate.close("closed")?;
    pods.until("web", "ready", |pod| condition(pod, "Ready") == "True").await?;
    until("an endpoint that is ready", async || endpoint_ready(true).await).await?;
    gate.open("closed")?;
    let pod = pods
        .until("web", "not ready any more", |pod| condition(pod, "Ready").starts_with("False"))
        .await?;
    let status = container(&pod, "main")?;
    ensure!(status.restart_count == 0 && runs(&pod, "main") && !status.ready, "{status:?}");
    until("no ready endpoint", async || endpoint_ready(false).await).await
}

/// Until the startup probe has passed, no other is made and the container is not ready.
async fn startup_comes_first(stage: &Stage, _: &Agent) -> Result<()> {
    let (pods, gate) = (Pods::open(stage, "startup").await?, Gate::new()?);
    let mut spec = gate.spec();
    let command = |script: &str| json!({"exec": {"command": ["sh", "-c", script]}});
    let mut slow = probe(command("[ -e /gate/started ]"));
    slow["failureThreshold"] = json!(60);
    spec["containers"][0]["startupProbe"] = slow;
    spec["containers"][0]["livenessProbe"] = probe(command("touch /gate/probed; true"));
    pods.shell("slow", "exec sleep 600", spec).await?;
    pods.until_phase("slow", "Running").await?;
    tokio::time::sleep(std::time::Duration::from_millis(2200)).await;
    let pod = pods.get("slow").await?;
    let status = container(&pod, "main")?;
    ensure!(status.started == Some(false) && !status.ready, "{status:?}");
    ensure!(!gate.has("probed"), "the liveness probe was made too early");
    gate.open("started")?;
    let started = |pod: &Pod| {
        container(pod, "main").is_ok_and(|status| status.started == Some(true) && status.ready)
    };
    pods.until("slow", "started", started).await?;
    gate.until("probed").await
}

async fn startup_fails(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "startfail").await?;
    let more = json!({"restartPolicy": "OnFailure", "terminationGracePeriodSeconds": 1,
        "containers": [{"startupProbe": probe(json!({"exec": {"command": ["false"]}}))}]});
    pods.shell("bad", "exec sleep 600", more).await?;
    let again = |pod: &Pod| container(pod, "main").is_ok_and(|c| c.restart_count >= 1);
    pods.until("bad", "restarted", again).await?;
    pods.until_event("bad", "Unhealthy: Startup probe failed: ").await?;
    pods.until_event("bad", "Container main failed startup probe, will be restarted").await?;
    Ok(())
}
