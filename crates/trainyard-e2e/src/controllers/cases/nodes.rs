//! Nodes that live, fall silent, come back and go.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check;
use crate::controllers::ground::{Ground, delete, node_path, ready, until};
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!(
        "nodes": silent_nodes_are_marked,
        pods_are_evicted_in_time,
        evictions_are_called_off,
        a_gone_node_takes_its_pods,
        cordon_is_a_taint,
        a_lost_nodes_pods_are_removed,
    )
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

/// The taints as `key:effect`.
fn taints(node: &Value) -> Vec<String> {
    let all = node["spec"]["taints"].as_array().into_iter().flatten();
    let mut all: Vec<String> = all
        .map(|taint| {
            let text = |field: &str| taint[field].as_str().unwrap_or_default().to_owned();
            format!("{}:{}", text("key").trim_start_matches("node.kubernetes.io/"), text("effect"))
        })
        .collect();
    all.sort();
    all
}

const LOST: [&str; 2] = ["unreachable:NoExecute", "unreachable:NoSchedule"];

async fn silent_nodes_are_marked(ground: &Ground) -> Result<()> {
    let rest = ground.cluster();
    let mut node = ground.node("silent").await?;
    let path = node_path(&node.name);
    // The server taints new nodes until they have told that they are ready.
    until(&rest, &path, "without taints", |node| taints(node).is_empty()).await?;
    let mut place = ground.place("silent").await?;
    place.node.clone_from(&node.name);
    place.pod("a", &json!({})).await?;
    place.runs("a", "10.7.5.1", true).await?;
    node.fall_silent();
    let unknown = |node: &Value| condition(node, "Ready")["status"] == "Unknown";
    let seen = until(&rest, &path, "unknown", unknown).await?;
    check::fields(
        "the condition",
        condition(&seen, "Ready"),
        &[
            ("/reason", json!("NodeStatusUnknown")),
            ("/message", json!("Kubelet stopped posting node status.")),
        ],
    )?;
    check::equal(
        "one it never told",
        &condition(&seen, "MemoryPressure")["reason"],
        "NodeStatusNeverUpdated",
    )?;
    until(&rest, &path, "tainted", |node| taints(node) == LOST).await?;
    let not_ready = |pod: &Value| condition(pod, "Ready")["status"] == "False";
    place.until("pods/a", "not ready", not_ready).await?;
    check::equal("the event", place.until_event("a", "NodeNotReady").await?, "Node is not ready")?;
    node.wake(ground);
    ready(&rest, &node.name, "True").await?;
    until(&rest, &path, "without taints again", |node| taints(node).is_empty()).await?;
    ready(&rest, &node.name, "False").await?;
    let down = ["not-ready:NoExecute", "not-ready:NoSchedule"];
    until(&rest, &path, "not ready", |node| taints(node) == down).await.map(|_| ())
}

/// Tolerations of what happens to nodes, for so long.
fn tolerating(seconds: i64) -> Value {
    let one = |key: &str| {
        json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists",
            "effect": "NoExecute", "tolerationSeconds": seconds})
    };
    json!({"tolerations": [one("not-ready"), one("unreachable")]})
}

async fn pods_are_evicted_in_time(ground: &Ground) -> Result<()> {
    let rest = ground.cluster();
    let node = ground.node("evicts").await?;
    let mut place = ground.place("evicts").await?;
    place.node.clone_from(&node.name);
    until(&rest, &node_path(&node.name), "clean", |node| taints(node).is_empty()).await?;
    for (name, seconds) in [("soon", 1), ("late", 300)] {
        place.pod(name, &tolerating(seconds)).await?;
        place.runs(name, "10.7.6.1", true).await?;
    }
    ready(&rest, &node.name, "False").await?;
    let going = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
    let pod = place.until("pods/soon", "evicted", going).await?;
    check::fields(
        "the condition",
        condition(&pod, "DisruptionTarget"),
        &[
            ("/reason", json!("DeletionByTaintManager")),
            ("/message", json!("Taint manager: deleting due to NoExecute taint")),
        ],
    )?;
    let message = place.until_event("soon", "TaintManagerEviction").await?;
    check::equal("the event", message, format!("Marking for deletion Pod {}/soon", place.name))?;
    ensure!(!going(&place.look("pods/late").await?), "the patient one is evicted");
    Ok(())
}

async fn evictions_are_called_off(ground: &Ground) -> Result<()> {
    let rest = ground.cluster();
    let node = ground.node("recovers").await?;
    let mut place = ground.place("recovers").await?;
    place.node.clone_from(&node.name);
    let path = node_path(&node.name);
    until(&rest, &path, "clean", |node| taints(node).is_empty()).await?;
    place.pod("a", &tolerating(8)).await?;
    place.runs("a", "10.7.7.1", true).await?;
    ready(&rest, &node.name, "False").await?;
    until(&rest, &path, "tainted", |node| !taints(node).is_empty()).await?;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ready(&rest, &node.name, "True").await?;
    let message = place.until_event("a", "TaintManagerEviction").await?;
    check::equal("the event", message, format!("Cancelling deletion of Pod {}/a", place.name))?;
    tokio::time::sleep(std::time::Duration::from_secs(8)).await;
    let pod = place.look("pods/a").await?;
    ensure!(pod["metadata"]["deletionTimestamp"].is_null(), "{pod:#}");
    Ok(())
}

async fn a_gone_node_takes_its_pods(ground: &Ground) -> Result<()> {
    let rest = ground.cluster();
    let node = ground.node("gone").await?;
    let mut place = ground.place("gone").await?;
    place.node.clone_from(&node.name);
    place.pod("a", &json!({})).await?;
    place.runs("a", "10.7.8.1", true).await?;
    // A finalizer lets us see what was written before it went.
    let hold = |list: Value| json!({"metadata": {"finalizers": list}});
    place.change("pods/a", &hold(json!(["tests.trainyard.dev/hold"]))).await?;
    delete(&rest, &node_path(&node.name), &json!({})).await?;
    let failed = |pod: &Value| pod["status"]["phase"] == "Failed";
    let pod = place.until("pods/a", "failed", failed).await?;
    check::fields(
        "the condition",
        condition(&pod, "DisruptionTarget"),
        &[
            ("/reason", json!("DeletionByPodGC")),
            ("/message", json!("PodGC: node no longer exists")),
        ],
    )?;
    place.change("pods/a", &hold(json!([]))).await?;
    place.until_gone("pods/a").await
}

async fn cordon_is_a_taint(ground: &Ground) -> Result<()> {
    let rest = ground.cluster();
    let node = ground.node("cordoned").await?;
    let path = node_path(&node.name);
    let cordon = |yes: bool| json!({"spec": {"unschedulable": yes}});
    rest.send(http::Method::PATCH, &path, Some(&cordon(true))).await?;
    let wanted = ["unschedulable:NoSchedule"];
    until(&rest, &path, "tainted", |node| taints(node) == wanted).await?;
    rest.send(http::Method::PATCH, &path, Some(&cordon(false))).await?;
    until(&rest, &path, "free", |node| taints(node).is_empty()).await.map(|_| ())
}

async fn a_lost_nodes_pods_are_removed(ground: &Ground) -> Result<()> {
    let node = ground.node("lost").await?;
    let mut place = ground.place("lost").await?;
    place.node.clone_from(&node.name);
    place.pod("a", &json!({})).await?;
    place.runs("a", "10.7.9.1", true).await?;
    place.delete("pods/a", &json!({})).await?;
    tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    let pod = place.look("pods/a").await?;
    ensure!(!pod.is_null(), "removed while its node lives");
    node.fall_silent();
    place.until_gone("pods/a").await
}
