//! The jobs of the benchmark: submitting them, and waiting until all are where they should be.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use kube::{Client, core::WatchEvent};
use serde::Deserialize;
use serde_json::{Value, json};

use super::WIDTH;

/// Makes the namespace of a run.
pub(super) async fn make_namespace(client: &Client, name: &str) -> Result<()> {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    post(client, "/api/v1/namespaces", &body).await?;
    Ok(())
}

/// One job of the load.
pub(super) fn job(index: usize) -> Value {
    let template = json!({"spec": {"containers": [{
        "name": "tensorflow",
        "image": "tensorflow/tensorflow:2.21.0",
        "command": ["python", "/opt/model.py", "--epochs=3"],
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
    }]}});
    json!({
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name(index)},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "Running"},
            "tfReplicaSpecs": {
                "PS": {"replicas": 1, "restartPolicy": "Never", "template": template},
                "Worker": {"replicas": 4, "restartPolicy": "Never", "template": template},
            },
        },
    })
}

/// Name of a job.
pub(super) fn name(index: usize) -> String {
    format!("load-{index}")
}

/// Submits all jobs; the answers are the jobs as stored.
pub(super) async fn submit(client: &Client, namespace: &str, jobs: usize) -> Result<Vec<Value>> {
    let path = format!("/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs");
    stream::iter(0..jobs)
        .map(|index| {
            let path = &path;
            async move { post(client, path, &job(index)).await }
        })
        .buffered(WIDTH)
        .try_collect()
        .await
}

/// Posts an object.
pub(super) async fn post(client: &Client, path: &str, body: &Value) -> Result<Value> {
    let request = Request::post(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(body)?)?;
    client.request(request).await.with_context(|| format!("POST {path}"))
}

/// Merges a patch into an object.
pub(super) async fn merge(client: &Client, path: &str, body: &Value) -> Result<()> {
    let request = Request::patch(path)
        .header("content-type", "application/merge-patch+json")
        .body(serde_json::to_vec(body)?)?;
    client.request_text(request).await.with_context(|| format!("PATCH {path}"))?;
    Ok(())
}

#[derive(Debug, Clone, Deserialize)]
struct Job {
    metadata: Meta,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Deserialize)]
struct Meta {
    name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Deserialize)]
struct Condition {
    r#type: String,
    status: String,
}

/// Waits until the condition holds (or did hold) for all jobs; returns when that was.
pub(super) async fn until_condition(
    client: &Client,
    namespace: &str,
    wanted: &str,
    jobs: usize,
    patience: Duration,
) -> Result<Instant> {
    let path = format!(
        "/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs?watch=1&timeoutSeconds={}",
        patience.as_secs()
    );
    let watch = async {
        let mut there = BTreeSet::new();
        loop {
            // A watch that falls behind is ended by the API server; the next one begins with all.
            let request = Request::get(&path).body(Vec::new())?;
            let events = client.request_events::<Job>(request).await?;
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                let (WatchEvent::Added(job) | WatchEvent::Modified(job)) = event else { continue };
                let conditions = &job.status.conditions;
                if conditions.iter().any(|c| c.r#type == "Failed" && c.status == "True") {
                    bail!("job {} failed", job.metadata.name);
                }
                if conditions.iter().any(|c| c.r#type == wanted) {
                    there.insert(job.metadata.name);
                }
                if there.len() >= jobs {
                    return Ok(Instant::now());
                }
            }
        }
    };
    tokio::time::timeout(patience, watch)
        .await
        .with_context(|| format!("waiting for all jobs to be {wanted}"))?
}
