//! Nodes that are drained, one after the other; and jobs that are spread over both.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;

use super::outages::OPERATOR;
use crate::check::{contains, equal, fields};
use crate::harness::{Case, cases};
use crate::manifest::Manifest;
use crate::real_kubelet::history::History;
use crate::real_kubelet::jobs::{TOLD, job};
use crate::real_kubelet::site::{NODES, Scene};
use crate::seen::text;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["nodes":
        drained_node_gives_its_replicas_to_the_other,
        drain_that_takes_the_operator_along_loses_nothing,
    ]
}

/// Two workers that go to different nodes if they can, and stay on a lost one as long as pods do by default.
pub(super) fn spread(name: &str) -> Manifest {
    let mut affinity = super::life::apart(name, "worker");
    let rule = "requiredDuringSchedulingIgnoredDuringExecution";
    let term = affinity["podAntiAffinity"][rule][0].take();
    affinity = json!({"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 100, "podAffinityTerm": term}],
    }});
    job(name, &[("Worker", 2, TOLD)]).edit("Worker", |replica| {
        let spec = &mut replica["template"]["spec"];
        spec["affinity"] = affinity;
        // Whichever scheduler the tier has: the story is about nodes.
        spec["schedulerName"] = "default-scheduler".into();
    })
}

/// The node of a pod.
pub(super) async fn node_of(scene: &Scene, pod: &str) -> Result<String> {
    Ok(text(&scene.get(&format!("pod/{pod}")).await?["spec"]["nodeName"]).to_owned())
}

/// Of two pods the one on the second node, and the other one.
pub(super) async fn on_each<'a>(scene: &Scene, pods: [&'a str; 2]) -> Result<(&'a str, &'a str)> {
    let nodes = tokio::try_join!(node_of(scene, pods[0]), node_of(scene, pods[1]))?;
    ensure!(nodes.0 != nodes.1, "both are on {}", nodes.0);
    Ok(if nodes.0 == NODES[1] { (pods[0], pods[1]) } else { (pods[1], pods[0]) })
}

/// The workers of a job that is spread.
pub(super) const WORKERS: [&str; 2] = ["a-worker-0", "a-worker-1"];

/// A replica as a status names it, of the job `a`.
pub(super) fn replica(pod: &str) -> &str {
    pod.trim_start_matches("a-")
}

/// The second node is drained: its worker has a successor, the job says meanwhile who is away, and nothing is
/// counted. `kubectl drain` must tell of this, too.
async fn moves(scene: &Scene, told: &str) -> Result<()> {
    let (moved, stays) = on_each(scene, WORKERS).await?;
    let (uid, before) = (scene.life(moved).await?.0, scene.life(stays).await?);
    let history = History::of(scene, "a").await?;
    let words =
        ["drain", NODES[1], "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=100s"];
    let drained = scene.site.ok(&words).await?;
    let evicted = format!("pod/{moved} evicted");
    contains("drain", &drained, &["node/node1 cordoned", &evicted, "node/node1 drained", told])?;
    scene.is_replaced(moved, &uid).await?;
    equal("node", node_of(scene, moved).await?.as_str(), NODES[0])?;
    scene.site.ok(&["uncordon", NODES[1]]).await?;
    scene.runs("a").await?;
    history.tells_of(replica(moved), &["EvictionByEvictionAPI", "Deleted"])?;
    equal("the other worker", scene.life(stays).await?, before)?;
    nothing_is_counted(scene).await?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

/// The job has not been restarted, and nobody of it is away any more.
pub(super) async fn nothing_is_counted(scene: &Scene) -> Result<()> {
    let none = [("/status/restarts", json!(null)), ("/status/unavailableReplicas", json!(null))];
    fields("job", &scene.get("tfjob/a").await?, &none)
}

async fn drained_node_gives_its_replicas_to_the_other(scene: &Scene) -> Result<()> {
    scene.create(spread("a").restart("Never").run_policy("backoffLimit", 0)).await?;
    scene.runs("a").await?;
    moves(scene, "").await
}

/// The operator's pod and a worker are evicted together; the operator finds out elsewhere.
async fn drain_that_takes_the_operator_along_loses_nothing(scene: &Scene) -> Result<()> {
    scene.create(spread("a").restart("Never").run_policy("backoffLimit", 0)).await?;
    scene.runs("a").await?;
    operator_goes_to(scene, NODES[1]).await?;
    moves(scene, "pod/trainyard-operator").await
}

/// Has the operator run on a node, which it may leave.
async fn operator_goes_to(scene: &Scene, node: &str) -> Result<()> {
    let others = NODES.into_iter().filter(|other| *other != node);
    for other in others.clone() {
        scene.site.ok(&["cordon", other]).await?;
    }
    let deleted = ["-n", "kubeflow", "delete", "pods", OPERATOR];
    let mut moved = scene.site.ok(&deleted).await.map(drop);
    if moved.is_ok() {
        moved = scene.site.is_rolled_out("trainyard-operator").await;
    }
    for other in others {
        scene.site.ok(&["uncordon", other]).await?;
    }
    moved?;
    let path = "-o=jsonpath={.items[*].spec.nodeName}";
    let there = scene.site.ok(&["-n", "kubeflow", "get", "pods", OPERATOR, path]).await?;
    equal("the operator's node", there.trim(), node)
}
