//! Policies that go by the code with which a pod failed.

use anyhow::Result;
use serde_json::json;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/exit_codes":
        the_code_that_is_named,
        another_code_is_left_alone,
        the_first_container_that_failed_counts,
        a_code_of_a_task_before_an_event_of_the_job,
    ]
}

async fn the_code_that_is_named(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let on = json!([{"exitCode": 3, "action": "RestartJob"}]);
    let before = scene.run(vcjob("a").task(task("w", 2)).spec("policies", on), 2).await?;
    scene.kubelet.exit("a-w-1", 3).await?;
    scene.successors(&before, &["a-w-0", "a-w-1"]).await?;
    let seen = scene.runs("a", 2).await?;
    equal("retries", seen.vc("a").retries(), 1)
}

async fn another_code_is_left_alone(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let on = json!([{"exitCode": 3, "action": "RestartJob"}]);
    scene.run(vcjob("a").task(task("w", 2)).spec("policies", on), 2).await?;
    scene.kubelet.exit("a-w-1", 4).await?;
    scene.counts("a", [0, 1, 0, 1, 0]).await?;
    let what = "it is restarted";
    scene.never_within(300, what, |seen| seen.vc("a").phase() != "Running").await
}

async fn the_first_container_that_failed_counts(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let containers = json!([
        {"name": "proxy", "image": "example.com/proxy:1"},
        {"name": "tensorflow", "image": "example.com/train:1"},
    ]);
    let on = json!([{"exitCode": 3, "action": "CompleteJob"}]);
    let workers = task("w", 1).pod("containers", containers);
    scene.run(vcjob("a").task(workers).spec("policies", on), 1).await?;
    scene.kubelet.exit("a-w-0", 3).await?;
    scene.phase("a", "Completed").await.map(drop)
}

async fn a_code_of_a_task_before_an_event_of_the_job(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let workers = task("w", 2).policies(json!([{"exitCode": 137, "action": "RestartPod"}]));
    let job = vcjob("a").task(workers).policy(json!({
        "event": "PodFailed", "action": "TerminateJob",
    }));
    let before = scene.run(job, 2).await?;
    scene.kubelet.oom("a-w-0").await?;
    scene.successors(&before, &["a-w-0"]).await?;
    scene.runs("a", 2).await?;
    scene.kubelet.exit("a-w-0", 1).await?;
    scene.phase("a", "Terminated").await.map(drop)
}
