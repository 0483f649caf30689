//! The floor: a bare client makes the writes that a scheduler has to make for the same load, as many
//! at the same time, and neither watches nor decides anything.

use std::sync::Arc;

use anyhow::Result;
use futures::{TryStreamExt as _, future::try_join_all};
use kube::Client;
use serde_json::{Value, json};
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};

use super::{
    SIZE, SchedulerBench,
    gangs::{self, Gang, node_name},
    sight::Sight,
};
use crate::bench::{
    NAMESPACE, floor,
    load::{merge, post},
};
use crate::control_plane::{ControlPlane, Identity};

/// Writes under way at the same time, as the scheduler has them.
const WRITES_AT_ONCE: usize = 64;
const VOLCANO: &str = "scheduling.volcano.sh/v1beta1";

struct Bare {
    client: Client,
    nodes: usize,
    room: Semaphore,
    pod_events: mpsc::UnboundedSender<Value>,
    group_events: mpsc::UnboundedSender<Value>,
}

/// Runs the load and the writes of a scheduler; everything but the decisions is as with one.
pub(super) async fn run(
    plane: &ControlPlane,
    size: SchedulerBench,
    sight: &mut Sight,
) -> Result<()> {
    let maker = plane.client(Identity::Admin)?;
    // The scheduler's own client, with its rights and on its one connection.
    let client = plane.client(Identity::GangScheduler)?;
    let (pod_events, of_pods) = mpsc::unbounded_channel();
    let (group_events, of_groups) = mpsc::unbounded_channel();
    let _told = [of_pods, of_groups].map(|queue| floor::tell(client.clone(), NAMESPACE, queue));
    let room = Semaphore::new(WRITES_AT_ONCE);
    let bare = Arc::new(Bare { client, nodes: size.nodes, room, pod_events, group_events });
    let mut made = std::pin::pin!(gangs::gangs(&maker, size.gangs, true));
    let mut replays = JoinSet::new();
    while let Some(gang) = made.try_next().await? {
        replays.spawn(replay(Arc::clone(&bare), gang));
    }
    while let Some(replayed) = replays.join_next().await {
        replayed??;
    }
    sight.until_bound(size.pods(), || Ok(())).await
}

/// The writes of one gang: it is let in, its pods are bound, it is said to be scheduled.
async fn replay(bare: Arc<Bare>, gang: Gang) -> Result<()> {
    let Gang { index, name, uid, pods } = &gang;
    let path = format!("/apis/{VOLCANO}/namespaces/{NAMESPACE}/podgroups/{name}");
    report(&bare, &path, uid, json!({"phase": "Inqueue"})).await?;
    let bindings = pods.iter().enumerate().map(|(member, (pod, uid))| {
        let node = node_name((index * SIZE + member) % bare.nodes);
        bind(&bare, pod, uid, node)
    });
    try_join_all(bindings).await?;
    let now = jiff::Timestamp::now();
    let condition = json!({
        "type": "Scheduled", "status": "True", "transitionID": format!("{:x}", now.as_nanosecond()),
        "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        "reason": "tasks in gang are ready to be scheduled",
    });
    report(&bare, &path, uid, json!({"phase": "Running", "conditions": [condition]})).await?;
    let subject = json!({"apiVersion": VOLCANO, "kind": "PodGroup", "name": name, "uid": uid});
    let _ = bare.group_events.send(event(name, subject, "pod group is ready"));
    Ok(())
}

async fn report(bare: &Bare, path: &str, uid: &str, mut status: Value) -> Result<()> {
    for count in ["running", "succeeded", "failed"] {
        status[count] = json!(0);
    }
    let _room = bare.room.acquire().await?;
    merge(&bare.client, path, &json!({"metadata": {"uid": uid}, "status": status})).await
}

async fn bind(bare: &Bare, pod: &str, uid: &str, node: String) -> Result<()> {
    let body = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {"name": pod, "namespace": NAMESPACE, "uid": uid},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    });
    let room = bare.room.acquire().await?;
    post(&bare.client, &format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}/binding"), &body)
        .await?;
    drop(room);
    let subject = json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid});
    let words = format!("Successfully assigned {NAMESPACE}/{pod} to {node}");
    let _ = bare.pod_events.send(event(pod, subject, &words));
    Ok(())
}

fn event(name: &str, mut subject: Value, message: &str) -> Value {
    let now = jiff::Timestamp::now();
    let time = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    subject["namespace"] = json!(NAMESPACE);
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("{name}.{:016x}", now.as_nanosecond()), "namespace": NAMESPACE},
        "involvedObject": subject, "type": "Normal", "reason": "Scheduled", "message": message,
        "source": {"component": "floor"}, "reportingComponent": "floor",
        "firstTimestamp": time, "lastTimestamp": time, "count": 1,
    })
}
