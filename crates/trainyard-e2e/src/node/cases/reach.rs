//! Ports of pods that this machine's programs reach on loopback, asked for by an annotation.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;

use super::Shared;
use super::objects::make;
use crate::check::{contains, equal};
use crate::forward::{self, Forwarded};
use crate::harness::{Case, cases};
use crate::node::{Agent, Pods, Stage};

const ADDRESS: &str = "trainyard.dev/address";

pub(super) fn all() -> Vec<Case<Shared>> {
    cases!["reach":
        port,
        port_forward,
        no_such_port,
    ]
}

/// Listens only after a while, and tells its name to whoever connects.
const SERVE: &str = "sleep 1; exec python3 -c '
import os, socket
s = socket.socket()
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((\"\", 6006))
s.listen()
while True:
    c, _ = s.accept()
    c.sendall((os.environ[\"HOSTNAME\"] + \"\\n\").encode())
    c.close()
'";

async fn port(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "reach").await?;
    opens(&pods, &json!({})).await
}

/// A pod's port is open as long as the pod is there, and at the same place when it comes again. `more` is
/// put into its spec.
pub(super) async fn opens(pods: &Pods<'_>, more: &Value) -> Result<()> {
    let first = served(pods, more).await?;
    let again = served(pods, more).await?;
    equal("the address of a pod that comes again", again, first)
}

/// Makes a pod, hears it, and deletes it; where it was.
async fn served(pods: &Pods<'_>, more: &Value) -> Result<SocketAddr> {
    let name = "web";
    create(pods, name, "door", more).await?;
    let address = |pod: &Pod| {
        let url = pod.metadata.annotations.as_ref()?.get(ADDRESS)?.clone();
        url.strip_prefix("http://")?.parse::<SocketAddr>().ok()
    };
    let pod = pods.until(name, "reachable", |pod| address(pod).is_some()).await?;
    let at = address(&pod).context("an address")?;
    ensure!(at.ip().is_loopback(), "it is at {at}");
    pods.until_event(name, "Reachable: Port 6006 of the pod is reachable").await?;
    let mut said = String::new();
    // It does not listen yet: the connection waits for it.
    let heard = async { TcpStream::connect(at).await?.read_to_string(&mut said).await };
    tokio::time::timeout(Duration::from_mins(1), heard).await.context("nobody answers")??;
    equal("the answer", said.as_str(), "web\n")?;
    pods.delete(name, Some(1)).await?;
    pods.until_gone(name).await?;
    ensure!(TcpStream::connect(at).await.is_err(), "{at} answers after the pod is gone");
    Ok(at)
}

/// A program that listens for its own pod alone is reached through the API server.
async fn port_forward(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "forward").await?;
    pods.shell("echo", &forward::echo(7000), json!({})).await?;
    pods.until_phase("echo", "Running").await?;
    listens(&pods, "echo").await?;
    let what = ["-n", &pods.namespace, "pod/echo"];
    let forwarded = Forwarded::start(&stage.kubectl, &what, 7000).await?;
    equal("the answer", forwarded.ask(b"hello").await?, b"hello".to_vec())?;
    let large: Vec<u8> = (0..4_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let (one, two) = tokio::join!(forwarded.ask(&large), forwarded.ask(b"small"));
    equal("a small one beside it", two?, b"small".to_vec())?;
    ensure!(one? == large, "a large answer is another");
    let forwarded = Forwarded::start(&stage.kubectl, &what, 7001).await?;
    let words = forwarded.complaint().await?;
    contains("the complaint", &words, &["7001", "refused"])?;
    pods.delete("echo", Some(1)).await
}

async fn listens(pods: &Pods<'_>, name: &str) -> Result<()> {
    for _ in 0..600 {
        if pods.logs(&[name]).await?.contains("listens") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("{name} does not listen")
}

async fn create(pods: &Pods<'_>, name: &str, wish: &str, more: &Value) -> Result<()> {
    let mut spec = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "test", "command": ["sh", "-c", SERVE],
         "ports": [{"name": "door", "containerPort": 6006}]},
    ]});
    if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
        spec.extend(more.clone());
    }
    let annotations = json!({"trainyard.dev/expose": wish});
    let pod = json!({"metadata": {"name": name, "annotations": annotations}, "spec": spec});
    make::<Pod>(pods, pod).await?;
    Ok(())
}

/// What cannot be meant is said; the pod runs all the same.
async fn no_such_port(stage: &Stage, _: &Agent) -> Result<()> {
    let pods = Pods::open(stage, "no-port").await?;
    create(&pods, "web", "window", &json!({})).await?;
    pods.until_event("web", "NotReachable: the annotation trainyard.dev/expose says \"window\"")
        .await?;
    let pod = pods.until_phase("web", "Running").await?;
    let annotations = pod.metadata.annotations.unwrap_or_default();
    ensure!(!annotations.contains_key(ADDRESS), "it has an address: {annotations:?}");
    pods.delete("web", Some(1)).await
}
