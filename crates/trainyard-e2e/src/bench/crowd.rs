//! All kubelets of the benchmark: pods are bound and run as soon as they are seen, and pods that
//! are deleted go at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use http::Request;
use kube::{Client, core::WatchEvent};
use serde::Deserialize;
use serde_json::json;
use tokio::{
    sync::{Semaphore, watch},
    task::JoinSet,
};

use super::{
    WIDTH,
    load::{merge, post},
};

/// What the kubelets have seen and done.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    /// Pods that exist.
    pub(super) pods: usize,
    /// Pods that run.
    pub(super) running: usize,
}

/// Pods by job, as the kubelets left them running.
type Running = Arc<Mutex<BTreeMap<String, usize>>>;

/// The kubelets; they stop when this is dropped.
pub(super) struct Crowd {
    client: Client,
    path: String,
    seen: watch::Receiver<Seen>,
    running: Running,
    _task: JoinSet<()>,
}

#[derive(Debug, Clone, Deserialize)]
struct Pod {
    metadata: Meta,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    name: String,
    #[serde(default)]
    deletion_timestamp: Option<String>,
}

impl Crowd {
    /// Starts the kubelets of a namespace; with `ends` they also complete deletions.
    pub(super) fn start(client: Client, namespace: &str, ends: bool) -> Self {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        let (tell, seen) = watch::channel(Seen::default());
        let running = Running::default();
        let mut task = JoinSet::new();
        let yard = Arc::new(Yard {
            client: client.clone(),
            path: path.clone(),
            room: Semaphore::new(WIDTH),
            tell,
            running: Arc::clone(&running),
            ends,
        });
        task.spawn(follow(yard));
        Self { client, path, seen, running, _task: task }
    }

    /// Waits until something holds of what the kubelets have seen.
    pub(super) async fn until(
        &mut self,
        patience: Duration,
        holds: impl Fn(&Seen) -> bool,
    ) -> Result<Instant> {
        let reached = self.seen.wait_for(|seen| holds(seen));
        tokio::time::timeout(patience, reached)
            .await
            .context("the kubelets waited in vain")?
            .context("the kubelets stopped")?;
        Ok(Instant::now())
    }

    /// How many pods of the job run.
    pub(super) fn running(&self, job: &str) -> usize {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(job).copied().unwrap_or(0)
    }

    /// A receiver of every change.
    pub(super) fn changes(&self) -> watch::Receiver<Seen> {
        self.seen.clone()
    }

    /// Every worker's program ends well.
    pub(super) async fn complete_workers(&self) -> Result<()> {
        let jobs: Vec<String> = {
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
            running.keys().cloned().collect()
        };
        let workers = jobs.iter().flat_map(|job| (0..4).map(move |i| format!("{job}-worker-{i}")));
        stream::iter(workers)
            .map(|name| {
                let path = format!("{}/{name}/status", self.path);
                async move { merge(&self.client, &path, &ended()).await }
            })
            .buffer_unordered(WIDTH)
            .try_collect::<Vec<()>>()
            .await?;
        Ok(())
    }
}

/// What the moves of all kubelets share.
struct Yard {
    client: Client,
    path: String,
    room: Semaphore,
    tell: watch::Sender<Seen>,
    running: Running,
    ends: bool,
}

/// Watches the pods; a watch that ends is taken up again, and no pod is met twice.
async fn follow(yard: Arc<Yard>) {
    let mut moves = JoinSet::new();
    let mut met = BTreeSet::new();
    loop {
        let request = Request::get(format!("{}?watch=1&timeoutSeconds=3600", yard.path));
        let Ok(request) = request.body(Vec::new()) else { return };
        if let Ok(events) = yard.client.request_events::<Pod>(request).await {
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                let (WatchEvent::Added(pod) | WatchEvent::Modified(pod)) = event else { continue };
                let leaves = pod.metadata.deletion_timestamp.is_some();
                if (leaves && !yard.ends) || !met.insert((pod.metadata.name.clone(), leaves)) {
                    continue;
                }
                if !leaves {
                    yard.tell.send_modify(|seen| seen.pods += 1);
                }
                moves.spawn(step(Arc::clone(&yard), pod.metadata.name, leaves));
                while moves.try_join_next().is_some() {}
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

async fn step(yard: Arc<Yard>, name: String, leaves: bool) {
    let _room = yard.room.acquire().await;
    if leaves {
        let _ = remove(&yard.client, &yard.path, &name).await;
    } else if run(&yard.client, &yard.path, &name).await.is_ok() {
        let job = name.rsplitn(3, '-').last().unwrap_or_default().to_owned();
        let mut running = yard.running.lock().unwrap_or_else(PoisonError::into_inner);
        *running.entry(job).or_default() += 1;
        drop(running);
        yard.tell.send_modify(|seen| seen.running += 1);
    }
}

async fn run(client: &Client, base: &str, name: &str) -> Result<()> {
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "played"},
    });
    post(client, &format!("{base}/{name}/binding"), &binding).await?;
    let status = json!({"status": {"phase": "Running", "containerStatuses": [{
        "name": "tensorflow", "image": "played", "imageID": "played", "ready": true,
        "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
    }]}});
    merge(client, &format!("{base}/{name}/status"), &status).await
}

fn ended() -> serde_json::Value {
    json!({"status": {"phase": "Succeeded", "containerStatuses": [{
        "name": "tensorflow", "image": "played", "imageID": "played", "ready": false,
        "restartCount": 0, "state": {"terminated": {"exitCode": 0, "reason": "Completed",
            "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:01Z"}},
    }]}})
}

async fn remove(client: &Client, base: &str, name: &str) -> Result<()> {
    let request = Request::delete(format!("{base}/{name}?gracePeriodSeconds=0")).body(Vec::new())?;
    client.request_text(request).await?;
    Ok(())
}
