//! Creating and listing pods over raw HTTPS, each writer on a connection of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

use crate::raw::{Door, Talk};

const NAMESPACE: &str = "bench";
/// Writers that fill a server.
const WRITERS: usize = 16;

/// The namespace of the load, and the account its pods run as.
pub(super) async fn prepare(door: &Door) -> Result<()> {
    let mut talk = door.open().await?;
    let namespace = json!({"metadata": {"name": NAMESPACE}});
    // Pods are to hold what they are given and nothing more.
    let account = json!({"metadata": {"name": "default"}, "automountServiceAccountToken": false});
    for (path, object) in [
        ("/api/v1/namespaces".to_owned(), namespace),
        (format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts"), account),
    ] {
        create(&mut talk, &path, &object).await?;
    }
    Ok(())
}

async fn create(talk: &mut Talk, path: &str, object: &Value) -> Result<()> {
    let answer = talk.ask(Method::POST, path, object.to_string().into()).await?;
    ensure!(answer.code == 201, "{path}: {} {}", answer.code, answer.value()["message"]);
    Ok(())
}

/// A pod as an operator makes it, of about 2 kB.
fn pod(name: &str) -> Value {
    let env: Vec<Value> = (0..6)
        .map(|n| json!({"name": format!("VARIABLE_{n}"), "value": "a value of some length"}))
        .collect();
    json!({
        "metadata": {"name": name, "labels": {
            "training.kubeflow.org/job-name": "bench", "training.kubeflow.org/replica-type": "worker",
            "training.kubeflow.org/replica-index": "0", "training.kubeflow.org/operator-name": "tfjob",
        }},
        "spec": {"restartPolicy": "Never", "containers": [{
            "name": "tensorflow", "image": "tensorflow/tensorflow:2.21.0",
            "command": ["python", "/opt/train.py", "--batch-size=64", "--learning-rate=0.01"],
            "ports": [{"name": "tfjob-port", "containerPort": 2222}], "env": env,
            "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
        }]},
    })
}

fn pods() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/pods")
}

/// Creations in a second by so many writers.
pub(super) async fn creations(door: &Door, writers: usize, seconds: u64) -> Result<f64> {
    let length = Duration::from_secs(seconds.max(1));
    let begin = Instant::now();
    let mut tasks = Vec::new();
    for writer in 0..writers {
        let mut talk = door.open().await?;
        tasks.push(tokio::spawn(async move {
            let mut made = 0_u32;
            while begin.elapsed() < length {
                let name = format!("rate-{writers}-{writer}-{made}");
                create(&mut talk, &pods(), &pod(&name)).await?;
                made += 1;
            }
            anyhow::Ok(made)
        }));
    }
    let mut made = 0;
    for task in tasks {
        made += task.await??;
    }
    Ok(f64::from(made) / begin.elapsed().as_secs_f64())
}

/// Creates so many pods, as fast as it goes.
pub(super) async fn fill(door: &Door, count: usize) -> Result<()> {
    objects(door, count, &pods(), |number| pod(&format!("pod-{number}"))).await
}

/// Creates so many objects by several writers.
pub(super) async fn objects(
    door: &Door,
    count: usize,
    path: &str,
    object: fn(usize) -> Value,
) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut tasks = Vec::new();
    for _ in 0..WRITERS {
        let (mut talk, next, path) = (door.open().await?, Arc::clone(&next), path.to_owned());
        tasks.push(tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return anyhow::Ok(());
                }
                create(&mut talk, &path, &object(number)).await?;
            }
        }));
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

/// Lists all pods; how long it took and how long the answer was.
pub(super) async fn list(door: &Door, count: usize) -> Result<(Duration, usize)> {
    let mut talk = door.open().await?;
    let begin = Instant::now();
    let answer = talk.begin(Method::GET, &pods(), "application/json", Bytes::new()).await?;
    ensure!(answer.status() == 200, "a list is answered with {}", answer.status());
    let mut body = answer.into_body();
    let mut pieces = Vec::new();
    while let Some(frame) = body.frame().await {
        pieces.extend(frame?.into_data());
    }
    let took = begin.elapsed();
    let whole = pieces.concat();
    let found: Value = serde_json::from_slice(&whole)?;
    let found = found["items"].as_array().map_or(0, Vec::len);
    ensure!(found == count, "{found} pods are listed, not {count}");
    Ok((took, whole.len()))
}
