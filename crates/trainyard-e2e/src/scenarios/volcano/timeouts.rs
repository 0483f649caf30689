//! Actions that wait for their time, and what makes them void.

use anyhow::Result;
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/timeouts":
        a_failure_is_acted_upon_later,
        a_pod_that_waits_too_long,
        a_pod_that_starts_in_time,
        an_evicted_pod_that_is_back_in_time,
        another_action_on_the_job_makes_it_void,
    ]
}

fn after(event: &str, action: &str, timeout: &str) -> Value {
    json!({"event": event, "action": action, "timeout": timeout})
}

async fn a_failure_is_acted_upon_later(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 2)).policy(after("PodFailed", "RestartJob", "1500ms"));
    let before = scene.run(job, 2).await?;
    scene.kubelet.exit("a-w-0", 1).await?;
    let told = "Normal ExecuteAction Execute action RestartJob after 1.5s";
    scene.wait_until("it is told", |seen| seen.vc("a").told(told)).await?;
    let what = "it is restarted at once";
    scene.never_within(700, what, |seen| seen.vc("a").phase() != "Running").await?;
    scene.successors(&before, &["a-w-0", "a-w-1"]).await?;
    let seen = scene.runs("a", 2).await?;
    equal("retries", seen.vc("a").retries(), 1)
}

async fn a_pod_that_waits_too_long(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let job = vcjob("a").task(task("w", 2)).policy(after("PodPending", "TerminateJob", "2s"));
    scene.submit(job).await?;
    scene.wait_pods(&["a-w-0", "a-w-1"]).await?;
    scene.kubelet.start("a-w-0").await?;
    let what = "it ends at once";
    scene.never_within(700, what, |seen| seen.vc("a").phase() != "Pending").await?;
    let _auto = scene.kubelet.auto_finish();
    scene.phase("a", "Terminated").await.map(drop)
}

async fn a_pod_that_starts_in_time(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 2)).policy(after("PodPending", "TerminateJob", "1s"));
    scene.run(job, 2).await?;
    let what = "it ends all the same";
    scene.never_within(1500, what, |seen| seen.vc("a").phase() != "Running").await
}

async fn an_evicted_pod_that_is_back_in_time(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 2)).policy(after("PodEvicted", "TerminateJob", "1500ms"));
    let before = scene.run(job, 2).await?;
    scene.kubelet.delete("a-w-1", None).await?;
    scene.successors(&before, &["a-w-1"]).await?;
    scene.runs("a", 2).await?;
    let what = "it ends all the same";
    scene.never_within(2000, what, |seen| seen.vc("a").phase() != "Running").await
}

async fn another_action_on_the_job_makes_it_void(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 2)).policy(after("PodFailed", "TerminateJob", "1500ms"));
    let before = scene.run(job, 2).await?;
    scene.kubelet.exit("a-w-0", 1).await?;
    let told = "Normal ExecuteAction Execute action TerminateJob after";
    scene.wait_until("it is told", |seen| seen.vc("a").told(told)).await?;
    scene.command("a", "RestartJob").await?;
    scene.successors(&before, &["a-w-0", "a-w-1"]).await?;
    scene.runs("a", 2).await?;
    let what = "it ends all the same";
    scene.never_within(2000, what, |seen| seen.vc("a").phase() != "Running").await
}
