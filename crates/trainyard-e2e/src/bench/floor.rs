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
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use trainyard_api::{JobStatus, Meta, TfJob};
use trainyard_core::{Child, Config, Observed, Tongue, Write, outcome_events, plan};

use super::{
    NAMESPACE, REPLICAS, WIDTH,
    crowd::Crowd,
    load::{job, make_namespace, merge, post},
};
use crate::control_plane::{ControlPlane, Identity};

/// Writes under way at the same time.
const WRITES_AT_ONCE: usize = 64;
/// Event writes under way at the same time; they come behind all others.
const EVENTS_AT_ONCE: usize = 8;
const PATIENCE: Duration = Duration::from_mins(20);

/// What all jobs of the floor share.
struct Bare {
    client: Client,
    namespace: &'static str,
    crowd: Crowd,
    room: Semaphore,
    events: mpsc::UnboundedSender<Value>,
}

/// Runs the floor; the time from the first job until all are Running.
pub(super) async fn run(plane: &ControlPlane, jobs: usize) -> Result<Duration> {
    let namespace = NAMESPACE;
    let client = plane.client(Identity::Admin)?;
    make_namespace(&client, namespace).await?;
    let crowd = Crowd::start(plane.client(Identity::Kubelet)?, namespace, false);
    let (events, queue) = mpsc::unbounded_channel();
    let _told = tell(client.clone(), namespace, queue);
    let room = Semaphore::new(WRITES_AT_ONCE);
    let bare = Arc::new(Bare { client: client.clone(), namespace, crowd, room, events });
    let begin = Instant::now();
    let path = format!("/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs");
    let mut submitted = stream::iter(0..jobs)
        .map(|index| {
            let (client, path) = (&client, &path);
            async move { post(client, path, &job(index)).await }
        })
        .buffer_unordered(WIDTH);
    // Each job is taken up as soon as it is there, as an operator takes it up.
    let mut replays = JoinSet::new();
    while let Some(stored) = submitted.try_next().await? {
        replays.spawn(replay(Arc::clone(&bare), stored));
    }
    while let Some(replayed) = replays.join_next().await {
        replayed??;
    }
    Ok(begin.elapsed())
}

/// Posts events behind everything else, until this is dropped.
pub(super) fn tell(
    client: Client,
    namespace: &'static str,
    mut queue: mpsc::UnboundedReceiver<Value>,
) -> JoinSet<()> {
    let mut task = JoinSet::new();
    task.spawn(async move {
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let (client, path) = (&client, &path);
        let events = stream::poll_fn(move |context| queue.poll_recv(context));
        let posts = events.for_each_concurrent(EVENTS_AT_ONCE, |event| async move {
            let _ = post(client, path, &event).await;
        });
        posts.await;
    });
    task
}

/// The writes of one job: its first plan, then the status write that says Running.
async fn replay(bare: Arc<Bare>, stored: Value) -> Result<()> {
    let text = |key: &str| stored["metadata"][key].as_str().unwrap_or_default().to_owned();
    let (name, uid, namespace) = (text("name"), text("uid"), bare.namespace);
    let meta = Meta {
        name: name.clone(),
        namespace: namespace.to_owned(),
        uid: uid.clone(),
        generation: 1,
        ..Meta::default()
    };
    let job = TfJob::new(meta, &stored["spec"], &JobStatus::default());
    let seen = Observed {
        job: &job,
        pods: &[],
        departed: &[],
        services: &[],
        groups: &[],
        classes: &[],
        counts_pending_since: None,
        refused: None,
        create_failure: None,
    };
    let config = Config::default();
    let plan = plan(&seen, jiff::Timestamp::now(), &config);
    let status = format!("/apis/kubeflow.org/v1/namespaces/{namespace}/tfjobs/{name}/status");
    for stage in &plan.stages {
        let mut writes = Vec::new();
        for write in &stage.writes {
            writes.push(carry_out(&bare, &status, write));
        }
        futures::future::try_join_all(writes).await?;
        let outcomes: Vec<_> = stage.writes.iter().map(|write| (write, Ok(()))).collect();
        let told = outcome_events(&outcomes, config.events_each, Tongue::Kubeflow);
        for (n, event) in told.iter().enumerate() {
            let event_name = format!("{name}.{n}.{}", event.reason.to_lowercase());
            let _ = bare.events.send(json!({
                "apiVersion": "v1", "kind": "Event",
                "metadata": {"name": event_name, "namespace": namespace},
                "involvedObject": {"kind": "TFJob", "name": name, "namespace": namespace,
                    "uid": uid, "apiVersion": "kubeflow.org/v1"},
                "reason": event.reason, "message": event.message, "type": "Normal", "count": 1,
                "source": {"component": "floor"},
            }));
        }
    }
    let mut changes = bare.crowd.changes();
    let all = changes.wait_for(|_| bare.crowd.running(&name) >= REPLICAS);
    tokio::time::timeout(PATIENCE, all).await.context("the floor's pods never ran")??;
    let running = json!({"status": {"conditions": [
        {"type": "Created", "status": "True", "reason": "TFJobCreated"},
        {"type": "Running", "status": "True", "reason": "TFJobRunning"},
    ]}});
    let _room = bare.room.acquire().await?;
    merge(&bare.client, &status, &running).await
}

async fn carry_out(bare: &Bare, status: &str, write: &Write) -> Result<()> {
    let (client, namespace) = (&bare.client, bare.namespace);
    let _room = bare.room.acquire().await?;
    match write {
        Write::Create(Child::Pod, create) => {
            let path = format!("/api/v1/namespaces/{namespace}/pods");
            post(client, &path, &create.body).await.map(drop)
        }
        Write::Create(Child::Service, create) => {
            let path = format!("/api/v1/namespaces/{namespace}/services");
            post(client, &path, &create.body).await.map(drop)
        }
        Write::PatchStatus { patch, .. } => merge(client, status, &json!({"status": patch})).await,
        other => anyhow::bail!("a new job needs no {other:?}"),
    }
}
