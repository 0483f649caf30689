//! The floor: a bare client makes the writes that an operator has to make up to Running, with the
//! same kubelets, and watches nothing.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::{Value, json};
use trainyard_api::{Meta, TfJob};
use trainyard_core::{Config, Observed, Write, outcome_events, plan};

use super::{
    REPLICAS, WIDTH,
    crowd::Crowd,
    load::{make_namespace, merge, post, submit},
};
use crate::control_plane::{ControlPlane, Identity};

/// Jobs whose writes are under way at the same time.
const JOBS_AT_ONCE: usize = 32;
const PATIENCE: Duration = Duration::from_mins(20);

/// Runs the floor in a namespace of its own; the time from the first job until all are Running.
pub(super) async fn run(plane: &ControlPlane, namespace: &str, jobs: usize) -> Result<Duration> {
    let client = plane.client(Identity::Admin)?;
    make_namespace(&client, namespace).await?;
    let crowd = Arc::new(Crowd::start(plane.client(Identity::Kubelet)?, namespace, false).await?);
    let begin = Instant::now();
    // The jobs are submitted in the same manner as under load, and each is taken up at once.
    let stored = submit(&client, namespace, jobs).await?;
    stream::iter(stored)
        .map(|job| replay(client.clone(), namespace, job, Arc::clone(&crowd)))
        .buffer_unordered(JOBS_AT_ONCE)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(begin.elapsed())
}

/// The writes of one job: its first plan, then the status write that says Running.
async fn replay(client: Client, namespace: &str, stored: Value, crowd: Arc<Crowd>) -> Result<()> {
    let text = |key: &str| stored["metadata"][key].as_str().unwrap_or_default().to_owned();
    let meta = Meta {
        name: text("name"),
        namespace: namespace.to_owned(),
        uid: text("uid"),
        generation: 1,
        ..Meta::default()
    };
    let job = TfJob::new(meta, &stored["spec"], &trainyard_api::JobStatus::default());
    let seen = Observed { job: &job, pods: &[], services: &[], counts_pending_since: None };
    let config = Config::default();
    let plan = plan(&seen, jiff::Timestamp::now(), &config);
    let name = text("name");
    let status = format!("/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs/{name}/status");
    for stage in &plan.stages {
        let writes = stage.writes.iter().map(|write| carry_out(&client, namespace, &status, write));
        stream::iter(writes).buffer_unordered(WIDTH).try_collect::<Vec<()>>().await?;
        let outcomes: Vec<_> = stage.writes.iter().map(|write| (write, Ok(()))).collect();
        let events = outcome_events(&outcomes, config.events_each);
        let posts = events.iter().enumerate().map(|(n, event)| {
            let body = json!({
                "apiVersion": "v1", "kind": "Event",
                "metadata": {"name": format!("{name}.{n}.{}", event.reason.to_lowercase()), "namespace": namespace},
                "involvedObject": {"kind": "TFJob", "name": name, "namespace": namespace,
                    "uid": text("uid"), "apiVersion": "kubeflow.org/v1"},
                "reason": event.reason, "message": event.message, "type": "Normal", "count": 1,
                "source": {"component": "floor"},
            });
            let client = &client;
            async move {
                post(client, &format!("/api/v1/namespaces/{namespace}/events"), &body).await
            }
        });
        stream::iter(posts).buffer_unordered(WIDTH).try_collect::<Vec<Value>>().await?;
    }
    let mut changes = crowd.changes();
    let all = changes.wait_for(|_| crowd.running(&name) >= REPLICAS);
    tokio::time::timeout(PATIENCE, all).await.context("the floor's pods never ran")??;
    let running = json!({"status": {"conditions": [
        {"type": "Created", "status": "True", "reason": "TFJobCreated"},
        {"type": "Running", "status": "True", "reason": "TFJobRunning"},
    ]}});
    merge(&client, &status, &running).await
}

async fn carry_out(client: &Client, namespace: &str, status: &str, write: &Write) -> Result<()> {
    match write {
        Write::CreatePod(create) => {
            let path = format!("/api/v1/namespaces/{namespace}/pods");
            post(client, &path, &create.body).await.map(drop)
        }
        Write::CreateService(create) => {
            let path = format!("/api/v1/namespaces/{namespace}/services");
            post(client, &path, &create.body).await.map(drop)
        }
        Write::PatchStatus { patch, .. } => merge(client, status, &json!({"status": patch})).await,
        other => anyhow::bail!("a new job needs no {other:?}"),
    }
}
