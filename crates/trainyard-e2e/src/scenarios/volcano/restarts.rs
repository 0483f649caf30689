//! How often a job is restarted, what is kept and what is told of it.

use anyhow::{Result, ensure};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::seen::text;
use crate::volcano::{Scene, policy, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/restarts":
        one_retry_is_the_first_run,
        the_last_run_keeps_what_has_ended,
        earlier_runs_keep_nothing,
        a_restarted_task_leaves_the_group_alone,
        pods_of_another_run_do_not_count,
    ]
}

async fn one_retry_is_the_first_run(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 2)).spec("maxRetry", 1);
    scene.run(job.policy(policy("PodFailed", "RestartJob")), 2).await?;
    scene.kubelet.exit("a-w-0", 1).await?;
    let seen = scene.phase("a", "Failed").await?;
    equal("retries", seen.vc("a").retries(), 1)?;
    let phases = ["Pending", "Running", "Restarting", "Failed"];
    equal("phases", seen.vc("a").phases(), phases)?;
    ensure!(!seen.vc("a").message().is_empty(), "no message: {}", seen.vc("a").status());
    Ok(())
}

async fn the_last_run_keeps_what_has_ended(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 3)).spec("maxRetry", 1);
    scene.run(job.policy(policy("PodFailed", "RestartJob")), 3).await?;
    scene.kubelet.exit("a-w-0", 0).await?;
    scene.kubelet.exit("a-w-1", 1).await?;
    scene.phase("a", "Failed").await?;
    scene.cleared("a", &["a-w-0", "a-w-1"]).await?;
    scene.counts("a", [0, 0, 1, 1, 0]).await.map(drop)
}

async fn earlier_runs_keep_nothing(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 2)).policy(policy("PodFailed", "RestartJob"));
    let before = scene.run(job, 2).await?;
    scene.kubelet.exit("a-w-0", 0).await?;
    scene.counts("a", [0, 1, 1, 0, 0]).await?;
    scene.kubelet.exit("a-w-1", 1).await?;
    scene.successors(&before, &["a-w-0", "a-w-1"]).await?;
    scene.runs("a", 2).await.map(drop)
}

async fn a_restarted_task_leaves_the_group_alone(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let workers = task("w", 2).policy(policy("PodFailed", "RestartTask"));
    let job = vcjob("a").task(task("ps", 1)).task(workers).plugin("svc", &[]);
    let before = scene.run(job, 3).await?;
    let group =
        |seen: &crate::seen::Seen| text(&seen.vc("a").group()["metadata"]["uid"]).to_owned();
    scene.kubelet.exit("a-w-1", 1).await?;
    scene.successors(&before, &["a-w-0", "a-w-1"]).await?;
    let seen = scene.runs("a", 3).await?;
    equal("the same group", group(&seen), group(&before))?;
    equal("the other task", seen.uid("a-ps-0"), before.uid("a-ps-0"))
}

async fn pods_of_another_run_do_not_count(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    let job = vcjob("a").task(task("w", 2)).policy(policy("PodEvicted", "RestartJob"));
    scene.submit(job).await?;
    scene.wait_pods(&["a-w-0", "a-w-1"]).await?;
    scene.kubelet.start_all(&["a-w-0", "a-w-1"]).await?;
    let before = scene.runs("a", 2).await?;
    scene.kubelet.delete_and_finish("a-w-0").await?;
    scene.phase("a", "Restarting").await?;
    // The last pod of the first run goes late: that is no eviction of the second one.
    scene.wait_until("it is told to go", |seen| seen.live_pods() != ["a-w-0", "a-w-1"]).await?;
    scene.kubelet.finish_termination("a-w-1").await?;
    scene.successors(&before, &["a-w-0", "a-w-1"]).await?;
    scene.kubelet.start_all(&["a-w-0", "a-w-1"]).await?;
    let seen = scene.runs("a", 2).await?;
    equal("retries", seen.vc("a").retries(), 1)?;
    scene.never_within(300, "it is restarted again", |s| s.vc("a").retries() != 1).await
}
