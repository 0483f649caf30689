//! When a job is complete and when it has failed.

use anyhow::{Result, ensure};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/success":
        all_have_succeeded,
        enough_have_succeeded,
        too_few_have_succeeded,
        a_task_has_too_few,
        the_first_successes_are_enough,
        not_even_those_came,
        running_before_all_have_started,
    ]
}

async fn all_have_succeeded(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 2)), 2).await?;
    scene.kubelet.exit("a-w-0", 0).await?;
    scene.counts("a", [0, 1, 1, 0, 0]).await?;
    scene.kubelet.exit("a-w-1", 0).await?;
    let seen = scene.phase("a", "Completed").await?;
    equal("phases", seen.vc("a").phases(), ["Pending", "Running", "Completed"])?;
    scene.cleared("a", &["a-w-0", "a-w-1"]).await?;
    scene.counts("a", [0, 0, 2, 0, 0]).await.map(drop)
}

async fn enough_have_succeeded(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").min(1).task(task("w", 2)), 2).await?;
    scene.kubelet.exit("a-w-0", 1).await?;
    scene.kubelet.exit("a-w-1", 0).await?;
    let seen = scene.phase("a", "Completed").await?;
    equal("counts", seen.vc("a").counts(), [0, 0, 1, 1, 0])
}

async fn too_few_have_succeeded(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 2)), 2).await?;
    scene.kubelet.exit("a-w-0", 0).await?;
    scene.kubelet.exit("a-w-1", 7).await?;
    let seen = scene.phase("a", "Failed").await?;
    ensure!(!seen.vc("a").message().is_empty(), "no message: {}", seen.vc("a").status());
    scene.cleared("a", &["a-w-0", "a-w-1"]).await?;
    scene.counts("a", [0, 0, 1, 1, 0]).await.map(drop)
}

async fn a_task_has_too_few(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").min(2).task(task("ps", 1).min(1)).task(task("w", 3).min(1));
    scene.run(job, 4).await?;
    scene.kubelet.exit("a-ps-0", 1).await?;
    for pod in ["a-w-0", "a-w-1", "a-w-2"] {
        scene.kubelet.exit(pod, 0).await?;
    }
    let seen = scene.phase("a", "Failed").await?;
    equal("three of two succeeded, but not the right ones", seen.vc("a").count("succeeded"), 3)
}

async fn the_first_successes_are_enough(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 3)).spec("minSuccess", 1), 3).await?;
    scene.kubelet.exit("a-w-1", 0).await?;
    let seen = scene.phase("a", "Completed").await?;
    equal("retries", seen.vc("a").retries(), 0)?;
    scene.cleared("a", &["a-w-1"]).await.map(drop)
}

async fn not_even_those_came(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").min(1).task(task("w", 3)).spec("minSuccess", 2), 3).await?;
    scene.kubelet.exit("a-w-0", 0).await?;
    scene.kubelet.exit("a-w-1", 1).await?;
    scene.kubelet.exit("a-w-2", 1).await?;
    scene.phase("a", "Failed").await.map(drop)
}

async fn running_before_all_have_started(scene: Scene) -> Result<()> {
    let _door = scene.admit_all();
    scene.submit(vcjob("a").min(1).task(task("w", 2))).await?;
    scene.wait_pods(&["a-w-0", "a-w-1"]).await?;
    scene.kubelet.start("a-w-1").await?;
    let seen = scene.phase("a", "Running").await?;
    equal("one of them waits", seen.vc("a").counts(), [1, 1, 0, 0, 0])
}
