//! The load: nodes that are only objects, and gangs as PodGroups with pods, as Volcano Jobs, or as
//! pods alone. Must not know who schedules them.

use anyhow::Result;
use futures::{Stream, StreamExt as _, TryStreamExt as _, stream};
use kube::Client;
use serde_json::{Value, json};

use super::SIZE;
use crate::bench::{
    NAMESPACE, WIDTH,
    load::{make_namespace, post},
};

/// Names the PodGroup of a pod.
pub(super) const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
/// Processors of a node, and the most that a pod asks for.
pub(super) const NODE_CPUS: usize = 64;
pub(super) const POD_CPUS: usize = 2;
/// Gangs that are made at the same time; of each the group comes first, then all pods at once.
const GANGS_AT_ONCE: usize = 2;

/// A gang that has been made.
#[derive(Debug)]
pub(super) struct Gang {
    pub(super) index: usize,
    pub(super) name: String,
    pub(super) uid: String,
    /// Names and identities.
    pub(super) pods: Vec<(String, String)>,
}

/// The gang of a pod, which is named after it.
pub(super) fn gang_of(pod: &str) -> &str {
    let end = pod.match_indices('-').nth(1).map_or(pod.len(), |(at, _)| at);
    pod.get(..end).unwrap_or(pod)
}

/// Makes the namespace and the nodes.
pub(super) async fn prepare(client: &Client, nodes: usize) -> Result<()> {
    make_namespace(client, NAMESPACE).await?;
    let posts = stream::iter(0..nodes)
        .map(|index| async move { post(client, "/api/v1/nodes", &node(index)).await.map(drop) });
    posts.buffer_unordered(WIDTH).try_collect().await
}

/// Name of a node.
pub(super) fn node_name(index: usize) -> String {
    format!("node-{index:05}")
}

fn node(index: usize) -> Value {
    let name = node_name(index);
    let has = json!({"cpu": NODE_CPUS.to_string(), "memory": "256Gi", "pods": "110"});
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
        }},
        "status": {
            "capacity": has, "allocatable": has,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    })
}

/// Makes gangs one after the other; without groups there are only their pods, for the stock
/// scheduler.
pub(super) fn gangs(
    client: &Client,
    count: usize,
    has_groups: bool,
) -> impl Stream<Item = Result<Gang>> {
    let gangs = stream::iter(0..count).map(move |index| make(client, index, has_groups));
    gangs.buffer_unordered(GANGS_AT_ONCE)
}

async fn make(client: &Client, index: usize, has_groups: bool) -> Result<Gang> {
    let name = format!("gang-{index:04}");
    let uid = if has_groups {
        let path = format!("/apis/scheduling.volcano.sh/v1beta1/namespaces/{NAMESPACE}/podgroups");
        identity(&post(client, &path, &group(&name, index)).await?)
    } else {
        String::new()
    };
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let posts = stream::iter(0..SIZE).map(|member| {
        let (path, group) = (&path, has_groups.then_some(&*name));
        let pod_name = format!("{name}-{member}");
        async move {
            let stored = post(client, path, &pod(&pod_name, index, group)).await?;
            Ok::<_, anyhow::Error>((pod_name, identity(&stored)))
        }
    });
    let pods = posts.buffer_unordered(WIDTH / GANGS_AT_ONCE).try_collect().await?;
    Ok(Gang { index, name, uid, pods })
}

fn identity(stored: &Value) -> String {
    stored["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn group(name: &str, index: usize) -> Value {
    let cpu = format!("{}m", millicpus(index) * SIZE);
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {
            "minMember": SIZE, "queue": "default",
            "minResources": {"cpu": cpu, "memory": format!("{}Gi", 2 * SIZE)},
        },
        "status": {"phase": "Pending"},
    })
}

fn pod(name: &str, index: usize, group: Option<&str>) -> Value {
    let mut spec = pod_spec(index);
    let mut metadata = json!({"name": name});
    if let Some(group) = group {
        spec["schedulerName"] = json!("volcano");
        metadata["annotations"] = json!({GROUP_NAME: group});
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

fn pod_spec(index: usize) -> Value {
    let asks = json!({"cpu": format!("{}m", millicpus(index)), "memory": "2Gi"});
    json!({
        "restartPolicy": "Never",
        "containers": [{
            "name": "tensorflow", "image": "tensorflow/tensorflow:2.21.0",
            "command": ["python", "/opt/model.py", "--epochs=3"],
            "resources": {"requests": asks},
        }],
    })
}

/// Ten sizes of pod.
const fn millicpus(index: usize) -> usize {
    1_000 + index % 10 * 100
}

/// Submits the same gangs as Volcano Jobs, with everything said that a webhook would fill in.
pub(super) async fn submit_jobs(client: &Client, count: usize) -> Result<()> {
    let path = format!("/apis/batch.volcano.sh/v1alpha1/namespaces/{NAMESPACE}/jobs");
    let path = &path;
    let posts = stream::iter(0..count)
        .map(|index| async move { post(client, path, &job(index)).await.map(drop) });
    posts.buffered(WIDTH).try_collect().await
}

fn job(index: usize) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
        "metadata": {"name": format!("gang-{index:04}")},
        "spec": {
            "schedulerName": "volcano", "queue": "default", "minAvailable": SIZE, "maxRetry": 3,
            "tasks": [{
                "name": "worker", "replicas": SIZE, "minAvailable": SIZE,
                "template": {"spec": pod_spec(index)},
            }],
        },
    })
}
