//! A node that is lost, and found again: what becomes of jobs of every kind. All live through the same outage.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::gangs::gang;
use super::nodes::{WORKERS, node_of, nothing_is_counted, on_each, replica, spread};
use super::volcano::{runs, told_workers};
use crate::check::{equal, fields};
use crate::harness::{Case, cases};
use crate::real_kubelet::devices::{devices, offer};
use crate::real_kubelet::history::{History, is_restarting};
use crate::real_kubelet::site::{NODES, OUT_OF_SERVICE, Scene};
use crate::seen::text;
use crate::volcano::{policy, vcjob};

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["lost":
        replica_of_a_lost_node_is_made_again_on_the_other,
        node_that_comes_back_runs_its_replicas_again,
        gang_that_lost_a_node_waits_for_room_and_says_so,
        volcano_job_restarts_as_its_policy_says,
        volcano_job_without_a_policy_has_its_pod_made_again,
        node_that_is_said_to_be_off_is_given_up_at_once,
    ]
}

/// How long the pods of some jobs stay on a node that nobody can reach.
const TOLERATION: i64 = 2;

async fn node_becomes(scene: &Scene, status: &str) -> Result<()> {
    let wanted = format!("--for=condition=Ready={status}");
    let words = ["wait", "--timeout=60s", &wanted, "node/node1"];
    scene.site.ok(&words).await.map(drop)
}

/// The power goes, and the cluster notices.
pub(super) async fn power_cut(scene: &Scene) -> Result<()> {
    scene.site.stop_node(1).await?;
    node_becomes(scene, "Unknown").await
}

/// The job says that this replica of it is away, and no other.
pub(super) async fn is_missed(scene: &Scene, pod: &str) -> Result<()> {
    let replica = replica(pod);
    let told = |row: &str| row.contains("Restarting") && row.contains(replica);
    scene.until(&["get", "tfjob", "a", "-o", "wide"], "which replica is away", told).await?;
    let job = scene.get("tfjob/a").await?;
    ensure!(is_restarting(&job), "it does not say so: {}", job["status"]);
    let away = &job["status"]["unavailableReplicas"];
    equal("replicas that are away", away.as_array().map_or(0, Vec::len), 1)?;
    fields("the one", away, &[("/0/replica", json!(replica))])?;
    ensure!(away[0]["since"].is_string(), "{away}");
    Ok(())
}

/// Ends a job all of whose replicas run again.
async fn goes_on(scene: &Scene) -> Result<()> {
    scene.runs("a").await?;
    nothing_is_counted(scene).await?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

async fn replica_of_a_lost_node_is_made_again_on_the_other(scene: &Scene) -> Result<()> {
    let quick = spread("a").restart("Never").run_policy("backoffLimit", 0);
    scene.create(quick.run_policy("nodeLossTolerationSeconds", TOLERATION)).await?;
    scene.runs("a").await?;
    let (lost, stays) = on_each(scene, WORKERS).await?;
    let (uid, before) = (scene.life(lost).await?.0, scene.life(stays).await?);
    let history = History::of(scene, "a").await?;
    power_cut(scene).await?;
    is_missed(scene, lost).await?;
    scene.is_replaced(lost, &uid).await?;
    equal("node", node_of(scene, lost).await?.as_str(), NODES[0])?;
    history.tells_of(replica(lost), &["NodeUnreachable"])?;
    scene.runs("a").await?;
    equal("the other worker", scene.life(stays).await?, before)?;
    scene.site.start_node(1).await?;
    goes_on(scene).await
}

/// Away for less time than its pods may miss it, it starts them again in place, as after a power cut.
async fn node_that_comes_back_runs_its_replicas_again(scene: &Scene) -> Result<()> {
    // Another story says that the node is off.
    let patient = json!([{"key": OUT_OF_SERVICE, "operator": "Exists"}]);
    let job = spread("a").restart("OnFailure").edit("Worker", |replica| {
        replica["template"]["spec"]["tolerations"] = patient;
    });
    scene.create(job).await?;
    scene.runs("a").await?;
    let (lost, stays) = on_each(scene, WORKERS).await?;
    let (uid, before) = (scene.life(lost).await?.0, scene.life(stays).await?);
    power_cut(scene).await?;
    is_missed(scene, lost).await?;
    let away = &scene.get("tfjob/a").await?["status"]["unavailableReplicas"];
    fields("the one that is away", away, &[("/0/reason", json!("NodeUnreachable"))])?;
    scene.site.start_node(1).await?;
    let again = |told: &str| told == "1 true";
    let path = "-o=jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}";
    scene.until(&["get", "pod", lost, path], "its next run", again).await?;
    equal("pod", scene.life(lost).await?.0, uid)?;
    equal("the other worker", scene.life(stays).await?, before)?;
    scene.runs("a").await?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

/// There is one device on each node: without the second node there is none for the second worker.
async fn gang_that_lost_a_node_waits_for_room_and_says_so(scene: &Scene) -> Result<()> {
    let device = devices(scene, [1, 1]).await?;
    let job = gang("a", 2, &device).restart("Never").run_policy("backoffLimit", 0);
    scene.create(job.run_policy("nodeLossTolerationSeconds", TOLERATION)).await?;
    scene.runs("a").await?;
    let (lost, stays) = on_each(scene, WORKERS).await?;
    let before = scene.life(stays).await?;
    power_cut(scene).await?;
    is_missed(scene, lost).await?;
    let waits = format!("pod/{lost}");
    scene.told(&waits, &["FailedScheduling", &device, "too little"]).await?;
    // It still says who is away, and its group that a part of it has no room.
    is_missed(scene, lost).await?;
    scene.wait("podgroup.scheduling.volcano.sh/a", "jsonpath={.status.phase}=Unknown").await?;
    equal("the other worker", scene.life(stays).await?, before)?;
    scene.site.start_node(1).await?;
    // A kubelet that has started anew knows of no devices.
    offer(scene, NODES[1], &device, 1).await?;
    scene.wait(&waits, "condition=Ready").await?;
    equal("node", node_of(scene, lost).await?.as_str(), NODES[1])?;
    goes_on(scene).await
}

/// A Volcano Job of two pods, one on each node: each has the only device there.
async fn volcano(scene: &Scene, policies: Value) -> Result<String> {
    let device = devices(scene, [1, 1]).await?;
    let patience = |key: &str| {
        json!({"key": format!("node.kubernetes.io/{key}"), "operator": "Exists",
               "effect": "NoExecute", "tolerationSeconds": TOLERATION})
    };
    let workers = told_workers(2)
        .container("resources", json!({"limits": {&device: 1}}))
        .pod("tolerations", json!([patience("unreachable"), patience("not-ready")]));
    scene.create(vcjob("a").task(workers).spec("policies", policies)).await?;
    runs(scene, "a").await?;
    Ok(device)
}

const PODS: [&str; 2] = ["a-w-0", "a-w-1"];

/// Ends a Volcano Job both of whose pods run; so many restarts must be counted.
async fn volcano_completes(scene: &Scene, restarts: &Value) -> Result<()> {
    runs(scene, "a").await?;
    let job = scene.get("job.batch.volcano.sh/a").await?;
    fields("job", &job, &[("/status/retryCount", restarts.clone())])?;
    for pod in PODS {
        scene.end(pod, 0).await?;
    }
    scene.wait("job.batch.volcano.sh/a", "jsonpath={.status.state.phase}=Completed").await
}

/// The tutorial's policy: the pod that is given up counts as evicted, and all start again where there is room.
async fn volcano_job_restarts_as_its_policy_says(scene: &Scene) -> Result<()> {
    let device = volcano(scene, json!([policy("PodEvicted", "RestartJob")])).await?;
    let (lost, stays) = on_each(scene, PODS).await?;
    let uids = [scene.life(lost).await?.0, scene.life(stays).await?.0];
    power_cut(scene).await?;
    let count = ["get", "vcjob", "a", "-o=jsonpath={.status.retryCount}"];
    scene.until(&count, "all start again", |count| count == "1").await?;
    offer(scene, NODES[0], &device, 2).await?;
    for (pod, uid) in [lost, stays].into_iter().zip(&uids) {
        scene.is_replaced(pod, uid).await?;
        equal("node", node_of(scene, pod).await?.as_str(), NODES[0])?;
    }
    scene.site.start_node(1).await?;
    volcano_completes(scene, &json!(1)).await
}

async fn volcano_job_without_a_policy_has_its_pod_made_again(scene: &Scene) -> Result<()> {
    let device = volcano(scene, json!([])).await?;
    let (lost, stays) = on_each(scene, PODS).await?;
    let (uid, before) = (scene.life(lost).await?.0, scene.life(stays).await?);
    power_cut(scene).await?;
    offer(scene, NODES[0], &device, 2).await?;
    scene.is_replaced(lost, &uid).await?;
    equal("node", node_of(scene, lost).await?.as_str(), NODES[0])?;
    equal("the other pod", scene.life(stays).await?, before)?;
    scene.site.start_node(1).await?;
    volcano_completes(scene, &Value::Null).await
}

/// Pods stay with a lost node for minutes, unless somebody says that it does not run.
async fn node_that_is_said_to_be_off_is_given_up_at_once(scene: &Scene) -> Result<()> {
    scene.create(spread("a").restart("Never").run_policy("backoffLimit", 0)).await?;
    scene.runs("a").await?;
    let (lost, stays) = on_each(scene, WORKERS).await?;
    let (uid, before) = (scene.life(lost).await?.0, scene.life(stays).await?);
    power_cut(scene).await?;
    is_missed(scene, lost).await?;
    // The others are about what happens without that word.
    scene.site.outage.all_others_wait().await?;
    let pod = scene.get(&format!("pod/{lost}")).await?;
    equal("its pod", text(&pod["metadata"]["uid"]), uid.as_str())?;
    ensure!(pod["metadata"]["deletionTimestamp"].is_null(), "it has been given up before");
    let taint = format!("{OUT_OF_SERVICE}=nodeshutdown:NoExecute");
    scene.site.ok(&["taint", "node", NODES[1], &taint]).await?;
    scene.is_replaced(lost, &uid).await?;
    equal("node", node_of(scene, lost).await?.as_str(), NODES[0])?;
    equal("the other worker", scene.life(stays).await?, before)?;
    scene.site.ok(&["taint", "node", NODES[1], &format!("{OUT_OF_SERVICE}-")]).await?;
    scene.site.start_node(1).await?;
    goes_on(scene).await
}
