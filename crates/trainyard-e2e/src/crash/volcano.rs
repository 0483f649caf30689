//! The stories of Volcano Jobs that are played with every fault: short, and with one possible end.

use anyhow::Result;
use serde_json::json;

use crate::harness::{Case, cases};
use crate::volcano::{Scene, policy, task, vcjob};
use crate::world::World;

/// What the names of these stories begin with.
pub(super) const PREFIX: &str = "crash/volcano";

/// All stories.
pub(super) fn all() -> Vec<Case<World>> {
    let stories: Vec<Case<Scene>> = cases!["crash/volcano":
        completed,
        evicted_and_restarted,
        failed_for_good,
        suspended_and_resumed,
    ];
    let open = async |world: World, _: &str| Ok(Scene::over(world));
    stories.into_iter().map(|story| story.over(open)).collect()
}

async fn completed(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let workers = task("w", 1).policy(policy("TaskCompleted", "CompleteJob"));
    let claim = json!({"accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}}});
    let job = vcjob("a")
        .task(task("ps", 1))
        .task(workers)
        .plugin("svc", &[])
        .spec("volumes", json!([{"mountPath": "/data", "volumeClaim": claim}]));
    scene.run(job, 2).await?;
    scene.kubelet.exit("a-w-0", 0).await?;
    scene.phase("a", "Completed").await?;
    scene.cleared("a", &["a-w-0"]).await.map(drop)
}

async fn evicted_and_restarted(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 2)).policy(policy("PodEvicted", "RestartJob"));
    let before = scene.run(job, 2).await?;
    scene.kubelet.delete("a-w-1", None).await?;
    scene.successors(&before, &["a-w-0", "a-w-1"]).await?;
    scene.runs("a", 2).await.map(drop)
}

async fn failed_for_good(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("w", 2)).spec("maxRetry", 1);
    scene.run(job.policy(policy("PodFailed", "RestartJob")), 2).await?;
    scene.kubelet.exit("a-w-1", 1).await?;
    scene.phase("a", "Failed").await?;
    scene.cleared("a", &["a-w-1"]).await.map(drop)
}

async fn suspended_and_resumed(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 1)).plugin("svc", &[]), 1).await?;
    scene.command("a", "AbortJob").await?;
    scene.phase("a", "Aborted").await?;
    scene.cleared("a", &[]).await?;
    scene.command("a", "ResumeJob").await?;
    scene.runs("a", 1).await.map(drop)
}
