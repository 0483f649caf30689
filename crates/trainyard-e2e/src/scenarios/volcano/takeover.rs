//! The operator ends in the middle of a job and another one goes on.

use anyhow::Result;
use serde_json::json;
use trainyard_operator::VolcanoJobs;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::volcano::{Scene, policy, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/takeover":
        while_the_group_waits,
        a_running_job_runs_on,
        a_failure_while_nobody_looked,
        an_eviction_while_nobody_looked,
        a_completion_while_nobody_looked,
        a_timer_goes_on,
        a_command_given_meanwhile,
        left_to_volcano,
    ]
}

async fn while_the_group_waits(scene: Scene) -> Result<()> {
    let first = scene.start_operator(|_| {}).await?;
    scene.submit(vcjob("a").task(task("w", 2)).plugin("svc", &[])).await?;
    scene.wait_until("there is a group", |seen| !seen.vc("a").group().is_null()).await?;
    first.crash().await;
    scene.set_group("a", "Inqueue").await?;
    let (_second, _auto) = (scene.start_operator(|_| {}).await?, scene.kubelet.auto());
    scene.runs("a", 2).await.map(drop)
}

/// A job runs; then its operator is gone.
async fn left_alone(scene: &Scene, job: impl Into<serde_json::Value>, pods: i64) -> Result<()> {
    let first = scene.start_operator(|_| {}).await?;
    scene.run(job, pods).await?;
    first.crash().await;
    Ok(())
}

async fn a_running_job_runs_on(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    left_alone(&scene, vcjob("a").task(task("w", 2)).plugin("svc", &[]), 2).await?;
    let before = scene.seen();
    let _second = scene.start_operator(|_| {}).await?;
    scene.stays_silent().await?;
    let seen = scene.seen();
    equal("the same pods", seen.uid("a-w-0"), before.uid("a-w-0"))?;
    equal("status", seen.vc("a").status(), before.vc("a").status())
}

async fn a_failure_while_nobody_looked(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 1)).policy(policy("PodFailed", "RestartJob"));
    left_alone(&scene, job, 1).await?;
    let before = scene.seen();
    scene.kubelet.exit("a-w-0", 1).await?;
    let _second = scene.start_operator(|_| {}).await?;
    scene.successors(&before, &["a-w-0"]).await?;
    let seen = scene.runs("a", 1).await?;
    equal("retries", seen.vc("a").retries(), 1)
}

async fn an_eviction_while_nobody_looked(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 2)).policy(policy("PodEvicted", "RestartJob"));
    left_alone(&scene, job, 2).await?;
    let before = scene.seen();
    scene.kubelet.delete("a-w-1", Some(0)).await?;
    let _second = scene.start_operator(|_| {}).await?;
    scene.successors(&before, &["a-w-0", "a-w-1"]).await?;
    let seen = scene.runs("a", 2).await?;
    equal("retries", seen.vc("a").retries(), 1)
}

async fn a_completion_while_nobody_looked(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let workers = task("w", 2).policy(policy("TaskCompleted", "CompleteJob"));
    left_alone(&scene, vcjob("a").task(task("ps", 1)).task(workers), 3).await?;
    scene.kubelet.exit("a-w-0", 0).await?;
    scene.kubelet.exit("a-w-1", 0).await?;
    let _second = scene.start_operator(|_| {}).await?;
    scene.phase("a", "Completed").await?;
    scene.cleared("a", &["a-w-0", "a-w-1"]).await.map(drop)
}

async fn a_timer_goes_on(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let later = json!({"event": "PodFailed", "action": "TerminateJob", "timeout": "2s"});
    let first = scene.start_operator(|_| {}).await?;
    scene.run(vcjob("a").task(task("w", 2)).policy(later), 2).await?;
    scene.kubelet.exit("a-w-0", 1).await?;
    let told = "Normal ExecuteAction Execute action TerminateJob after 2s";
    scene.wait_until("it is told", |seen| seen.vc("a").told(told)).await?;
    first.crash().await;
    let _second = scene.start_operator(|_| {}).await?;
    let seen = scene.phase("a", "Terminated").await?;
    equal("told once", seen.vc("a").told_times(told), 1)
}

async fn a_command_given_meanwhile(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    left_alone(&scene, vcjob("a").task(task("w", 1)), 1).await?;
    let before = scene.seen();
    scene.command("a", "RestartJob").await?;
    let _second = scene.start_operator(|_| {}).await?;
    scene.successors(&before, &["a-w-0"]).await?;
    let seen = scene.runs("a", 1).await?;
    equal("retries", seen.vc("a").retries(), 1)?;
    equal("gone", seen.names(Resource::Commands).is_empty(), true)
}

async fn left_to_volcano(scene: Scene) -> Result<()> {
    let _operator =
        scene.start_operator(|options| options.volcano_jobs = VolcanoJobs::Never).await?;
    scene.submit(vcjob("a").task(task("w", 1)).plugin("svc", &[])).await?;
    let what = "a job of somebody else is touched";
    scene
        .never_within(500, what, |seen| {
            !seen.vc("a").status().is_null() || !seen.vc("a").is_cleared()
        })
        .await
}
