//! The node agent measured on a real control plane, each part against what it would cost without
//! an agent: a shell, a pod that nobody runs, the same training started by hand.
//!
//! Works with any `trainyard` binary. Must not know how the agent does what it does.

mod binding;
mod idle;
mod phases;
mod replicas;
mod training;

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::{load, processes};
use crate::node::{Agent, AgentOptions, Stage, Who};
use phases::Phases;

/// The node that pods are bound to.
const NODE: &str = "yew";

/// What to measure.
#[derive(Debug, Clone)]
pub struct NodeBench {
    /// The product.
    pub binary: PathBuf,
    /// Pods of the parts that need many.
    pub pods: usize,
    /// Pairs of the parts that compare.
    pub rounds: usize,
    /// Who runs the agent.
    pub who: Who,
}

/// Runs the benchmark; the result is one JSON object.
pub async fn node(options: NodeBench) -> Result<Value> {
    ensure!(options.pods > 0, "--pods must be at least 1");
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    let busy = processes::load()?;
    let stage = Stage::start(&options.binary).await?;
    let agent = agent(&stage, options.who).await?;
    let replicas = replicas::measure(&stage, &agent, options.rounds).await.context("replicas")?;
    let binding = binding::measure(&stage, &agent, options.pods).await.context("binding")?;
    let training = training::measure(&stage, options.rounds).await.context("training")?;
    agent.stop().await?;
    let idle = idle::measure(&stage, &options).await.context("idle pods")?;
    stage.check()?;
    Ok(json!({
        "bench": "node",
        "user": options.who == Who::User,
        "rounds": options.rounds,
        "load_before": busy,
        "replicas": replicas,
        "binding": binding,
        "training": training,
        "idle": idle,
        "goals": {
            "per_pod_ms": {"at_most": 20.0, "is": binding["per_pod_ms"]},
            "training_cpu_over_bare": {"at_most": 1.05, "is": training["cpu_over_bare"]},
            "training_wall_over_bare": {"at_most": 1.05, "is": training["wall_over_bare"]},
            "mb_per_pod": {"at_most": 0.5, "is": idle["mb_per_pod"]},
        },
    }))
}

async fn agent(stage: &Stage, who: Who) -> Result<Agent> {
    let flags = vec!["--log-format=json".to_owned()];
    Agent::start(
        stage,
        AgentOptions { nodes: vec![NODE.to_owned()], who, flags, ..AgentOptions::default() },
    )
    .await
}

/// Pods of one namespace: made without a look at what is there, followed by one watch.
struct Ground {
    client: kube::Client,
    namespace: String,
    phases: Phases,
}

impl Ground {
    async fn open(stage: &Stage, name: &str) -> Result<Self> {
        let namespace = stage.namespace(name).await?;
        let phases = Phases::follow(stage.client.clone(), &namespace).await?;
        Ok(Self { client: stage.client.clone(), namespace, phases })
    }

    /// Makes a pod that runs this once; `more` of its spec may say where.
    async fn pod(&self, name: &str, container: &Value, more: &Value) -> Result<Pod> {
        let mut spec = json!({"restartPolicy": "Never", "containers": [container]});
        if let (Some(spec), Some(more)) = (spec.as_object_mut(), more.as_object()) {
            spec.extend(more.clone());
        }
        let body = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec,
        });
        let path = format!("/api/v1/namespaces/{}/pods", self.namespace);
        Ok(serde_json::from_value(load::post(&self.client, &path, &body).await?)?)
    }

    /// What a pod has written.
    async fn log(&self, name: &str) -> Result<String> {
        let path = format!("/api/v1/namespaces/{}/pods/{name}/log", self.namespace);
        let request = http::Request::get(path).body(Vec::new())?;
        self.client.request_text(request).await.with_context(|| format!("the log of {name}"))
    }

    /// Takes an object away that no node will miss.
    async fn remove(&self, name: &str) -> Result<()> {
        let path = format!("/api/v1/namespaces/{}/pods/{name}", self.namespace);
        let now = json!({"gracePeriodSeconds": 0});
        let request = http::Request::delete(path)
            .header("content-type", "application/json")
            .body(serde_json::to_vec(&now)?)?;
        self.client.request_text(request).await?;
        Ok(())
    }
}

/// A container that runs a program of this machine.
fn program(command: &[&str]) -> Value {
    json!({"name": "main", "image": "test", "command": command})
}
