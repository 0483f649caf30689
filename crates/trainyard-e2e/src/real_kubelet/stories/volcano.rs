//! Volcano Jobs of programs that end in every way, with real kubelets below them.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::json;
use trainyard_testbed::cluster::image;

use crate::check::{contains, equal, fields};
use crate::harness::{Case, cases};
use crate::real_kubelet::jobs::TOLD;
use crate::real_kubelet::site::Scene;
use crate::seen::text;
use crate::volcano::{Task, policy, task, vcjob};

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["volcano":
        failed_pod_restarts_the_job_until_its_retries_are_over,
        exit_code_of_a_real_program_chooses_the_policy,
        completed_task_ends_the_job_and_logs_stay,
        job_is_suspended_and_resumed,
        job_is_scaled_up_and_down,
        deleted_pod_restarts_the_job_once,
    ]
}

/// So many pods of a task `w` that wait for a word.
pub(super) fn told_workers(count: i64) -> Task {
    of_busybox("w", count, TOLD)
}

fn of_busybox(name: &str, count: i64, script: &str) -> Task {
    task(name, count)
        .container("image", image::BUSYBOX)
        .container("command", json!(["sh", "-c", script]))
        .pod("terminationGracePeriodSeconds", 3)
}

/// Waits until a job runs.
pub(super) async fn runs(scene: &Scene, job: &str) -> Result<()> {
    becomes(scene, job, "Running").await
}

async fn becomes(scene: &Scene, job: &str, phase: &str) -> Result<()> {
    let wanted = format!("jsonpath={{.status.state.phase}}={phase}");
    scene.wait(&format!("job.batch.volcano.sh/{job}"), &wanted).await
}

async fn failed_pod_restarts_the_job_until_its_retries_are_over(scene: &Scene) -> Result<()> {
    let script = "echo ends with 3; sleep 1; exit 3";
    let job = vcjob("a").task(of_busybox("w", 2, script)).spec("maxRetry", 2);
    scene.create(job.policy(policy("PodFailed", "RestartJob"))).await?;
    becomes(scene, "a", "Failed").await?;
    let job = scene.get("job.batch.volcano.sh/a").await?;
    fields("job", &job, &[("/status/retryCount", json!(2))])?;
    ensure!(!text(&job["status"]["state"]["message"]).is_empty(), "{}", job["status"]);
    // What had failed in the last run stays, with what it said; what ran beside it goes.
    let failed = "--field-selector=status.phase=Failed";
    let path = "-o=jsonpath={range .items[*]}{.metadata.name}{.metadata.deletionTimestamp} {end}";
    let is_one =
        |told: &str| ["a-w-0", "a-w-1"].iter().any(|pod| told.split(' ').any(|word| word == *pod));
    let told = scene.until(&["get", "pods", failed, path], "what has failed", is_one).await?;
    let pod = told.split(' ').find(|word| ["a-w-0", "a-w-1"].contains(word)).unwrap_or_default();
    equal("log", scene.log(pod).await?.as_str(), "ends with 3\n")
}

async fn exit_code_of_a_real_program_chooses_the_policy(scene: &Scene) -> Result<()> {
    let policies = json!([
        {"exitCode": 137, "action": "RestartJob"},
        {"exitCode": 3, "action": "TerminateJob"},
    ]);
    scene.create(vcjob("a").task(told_workers(2)).spec("policies", policies)).await?;
    runs(scene, "a").await?;
    let (uid, _) = scene.life("a-w-0").await?;
    scene.end("a-w-1", 137).await?;
    scene.is_replaced("a-w-0", &uid).await?;
    runs(scene, "a").await?;
    scene.end("a-w-1", 3).await?;
    becomes(scene, "a", "Terminated").await?;
    let job = scene.get("job.batch.volcano.sh/a").await?;
    fields("job", &job, &[("/status/retryCount", json!(1))])
}

async fn completed_task_ends_the_job_and_logs_stay(scene: &Scene) -> Result<()> {
    let workers = of_busybox("w", 2, "echo worked").policy(policy("TaskCompleted", "CompleteJob"));
    scene.create(vcjob("a").task(of_busybox("ps", 1, TOLD)).task(workers).min(3)).await?;
    becomes(scene, "a", "Completed").await?;
    scene.wait("pod/a-ps-0", "delete").await?;
    for pod in ["a-w-0", "a-w-1"] {
        scene.wait(&format!("pod/{pod}"), "jsonpath={.status.phase}=Succeeded").await?;
        equal("log", scene.log(pod).await?.as_str(), "worked\n")?;
    }
    let table = scene.ok(&["get", "vcjob"]).await?;
    contains("table", &table, &["a ", "Completed"])
}

async fn job_is_suspended_and_resumed(scene: &Scene) -> Result<()> {
    scene.create(vcjob("a").task(told_workers(2))).await?;
    runs(scene, "a").await?;
    let (uid, _) = scene.life("a-w-0").await?;
    let place = ["vcjob/a", "-n", &scene.namespace];
    scene.site.trainyard(&[&["suspend"], &place[..]].concat()).await?;
    becomes(scene, "a", "Aborted").await?;
    let none = |told: &str| told.trim().is_empty();
    scene.until(&["get", "pods", "-o", "name"], "no pod", none).await?;
    scene.site.trainyard(&[&["resume"], &place[..]].concat()).await?;
    runs(scene, "a").await?;
    ensure!(scene.life("a-w-0").await?.0 != uid, "the pod was not stopped");
    scene.end("a-w-0", 0).await?;
    scene.end("a-w-1", 0).await?;
    becomes(scene, "a", "Completed").await
}

/// The tutorial's policy restarts what loses a pod; whoever scales down loses none.
async fn job_is_scaled_up_and_down(scene: &Scene) -> Result<()> {
    let job = vcjob("a").task(told_workers(1)).min(1);
    scene.create(job.policy(policy("PodEvicted", "RestartJob"))).await?;
    runs(scene, "a").await?;
    let first = scene.life("a-w-0").await?;
    let scale = async |replicas: &str| {
        let place = ["vcjob/a", "-n", &scene.namespace, "--task", "w", "--replicas", replicas];
        scene.site.trainyard(&[&["scale"], &place[..]].concat()).await
    };
    scale("3").await?;
    for pod in ["a-w-1", "a-w-2"] {
        scene.wait(&format!("pod/{pod}"), "create").await?;
        scene.wait(&format!("pod/{pod}"), "condition=Ready").await?;
    }
    scale("1").await?;
    for pod in ["a-w-1", "a-w-2"] {
        scene.wait(&format!("pod/{pod}"), "delete").await?;
    }
    equal("the one that stays", scene.life("a-w-0").await?, first)?;
    let job = scene.get("job.batch.volcano.sh/a").await?;
    fields("job", &job, &[("/status/retryCount", json!(null))])?;
    scene.end("a-w-0", 0).await?;
    becomes(scene, "a", "Completed").await
}

/// All pods go when one is deleted: those that follow are no further deletions.
async fn deleted_pod_restarts_the_job_once(scene: &Scene) -> Result<()> {
    let job = vcjob("a").task(told_workers(8)).policy(policy("PodEvicted", "RestartJob"));
    scene.create(job).await?;
    runs(scene, "a").await?;
    let uids = scene.uids().await?;
    equal("pods", uids.len(), 8)?;
    scene.ok(&["delete", "pod", "a-w-3"]).await?;
    scene.are_replaced(&uids).await?;
    runs(scene, "a").await?;
    let job = scene.get("job.batch.volcano.sh/a").await?;
    fields("job", &job, &[("/status/retryCount", json!(1))])
}
