//! What is left of a job that has ended, under every policy: pods, and their logs.

use std::sync::Arc;

use anyhow::Result;

use crate::check::{contains, equal};
use crate::harness::{Case, cases, tried_once};
use crate::manifest::Manifest;
use crate::real_kubelet::jobs::{TOLD, ending, job};
use crate::real_kubelet::site::Scene;

/// What people lose here they have lost for good.
pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    let all = cases!["cleaning":
        none_keeps_every_pod_after_success,
        none_keeps_every_pod_after_failure,
        running_keeps_what_had_finished_after_success,
        running_keeps_what_had_finished_after_failure,
        all_keeps_no_pod_after_success,
        all_keeps_no_pod_after_failure,
        ten_single_workers_keep_pod_and_log_under_never,
        ten_single_workers_keep_pod_and_log_under_exit_code,
    ];
    tried_once(all)
}

/// A chief that ends as told, a worker that has ended before, and a parameter server that goes on.
fn mixed(policy: &str) -> Manifest {
    let worker = "echo worked; exit 0";
    job("a", &[("Chief", 1, TOLD), ("Worker", 1, worker), ("PS", 1, TOLD)])
        .restart("Never")
        .run_policy("cleanPodPolicy", policy)
}

/// Plays such a job; its services must go in any case.
async fn played(scene: &Scene, policy: &str, code: i32, pods: &[&str]) -> Result<()> {
    scene.create(mixed(policy)).await?;
    scene.wait("pod/a-worker-0", "jsonpath={.status.phase}=Succeeded").await?;
    scene.wait("pod/a-ps-0", "condition=Ready").await?;
    scene.wait("pod/a-chief-0", "condition=Ready").await?;
    scene.end("a-chief-0", code).await?;
    scene.ends("a", if code == 0 { "Succeeded" } else { "Failed" }).await?;
    scene.pods_become("a", pods).await?;
    if !pods.is_empty() {
        equal("the chief's log", scene.log("a-chief-0").await?.as_str(), "up\ntold\n")?;
        equal("the worker's log", scene.log("a-worker-0").await?.as_str(), "worked\n")?;
    }
    let none = |told: &str| told.trim().is_empty();
    scene.until(&["get", "services", "-o", "name"], "no service", none).await?;
    Ok(())
}

async fn none_keeps_every_pod_after_success(scene: &Scene) -> Result<()> {
    let pods = ["a-chief-0 Succeeded", "a-ps-0 Running", "a-worker-0 Succeeded"];
    played(scene, "None", 0, &pods).await?;
    equal("the log of what runs", scene.log("a-ps-0").await?.as_str(), "up\n")
}

async fn none_keeps_every_pod_after_failure(scene: &Scene) -> Result<()> {
    let pods = ["a-chief-0 Failed", "a-ps-0 Running", "a-worker-0 Succeeded"];
    played(scene, "None", 3, &pods).await
}

async fn running_keeps_what_had_finished_after_success(scene: &Scene) -> Result<()> {
    played(scene, "Running", 0, &["a-chief-0 Succeeded", "a-worker-0 Succeeded"]).await
}

async fn running_keeps_what_had_finished_after_failure(scene: &Scene) -> Result<()> {
    played(scene, "Running", 3, &["a-chief-0 Failed", "a-worker-0 Succeeded"]).await
}

async fn all_keeps_no_pod_after_success(scene: &Scene) -> Result<()> {
    played(scene, "All", 0, &[]).await
}

async fn all_keeps_no_pod_after_failure(scene: &Scene) -> Result<()> {
    played(scene, "All", 3, &[]).await
}

async fn ten_single_workers_keep_pod_and_log_under_never(scene: &Scene) -> Result<()> {
    ten_keep_pod_and_log(scene, "Never").await
}

async fn ten_single_workers_keep_pod_and_log_under_exit_code(scene: &Scene) -> Result<()> {
    ten_keep_pod_and_log(scene, "ExitCode").await
}

/// A kubelet says that the containers have ended before it says that the pod has: whoever takes such a pod for one
/// that runs deletes it, and its log with it.
async fn ten_keep_pod_and_log(scene: &Scene, policy: &str) -> Result<()> {
    let codes = [0, 1, 0, 2, 0, 1, 0, 1, 0, 1];
    for (number, code) in codes.iter().enumerate() {
        scene.create(ending(&format!("one-{number}"), policy, *code)).await?;
    }
    for (number, code) in codes.iter().enumerate() {
        let wanted = if *code == 0 { "Succeeded" } else { "Failed" };
        scene.ends(&format!("one-{number}"), wanted).await?;
    }
    // Whatever was to be deleted has been by now.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    for (number, code) in codes.iter().enumerate() {
        let (job, phase) =
            (format!("one-{number}"), if *code == 0 { "Succeeded" } else { "Failed" });
        equal(&job, scene.pods(&job).await?, [format!("{job}-worker-0 {phase}")])?;
        let log = scene.log(&format!("{job}-worker-0")).await?;
        contains("log", &log, &[&format!("ends with {code}")])?;
    }
    Ok(())
}
