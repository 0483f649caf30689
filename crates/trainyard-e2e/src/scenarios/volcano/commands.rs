//! Commands: carried out once, then gone.

use anyhow::Result;
use serde_json::json;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/commands":
        suspended_and_resumed,
        each_is_carried_out_once,
        meant_for_another_job_of_the_same_name,
    ]
}

async fn suspended_and_resumed(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let job = vcjob("a").task(task("ps", 1)).task(task("w", 2)).plugin("svc", &[]);
    scene.run(job, 3).await?;
    scene.command("a", "AbortJob").await?;
    scene.phase("a", "Aborted").await?;
    scene.cleared("a", &[]).await?;
    let what = "a suspended job gets objects";
    scene
        .never_within(300, what, |seen| !seen.pods().is_empty() || !seen.vc("a").is_cleared())
        .await?;
    scene.command("a", "ResumeJob").await?;
    let seen = scene.runs("a", 3).await?;
    equal("hosts", seen.vc("a").hosts().is_null(), false)?;
    equal("service", seen.service("a").is_null(), false)
}

async fn each_is_carried_out_once(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    let mut before = scene.run(vcjob("a").task(task("w", 1)).spec("maxRetry", 5), 1).await?;
    for retries in 1..3 {
        scene.command("a", "RestartJob").await?;
        scene.successors(&before, &["a-w-0"]).await?;
        before = scene.runs("a", 1).await?;
        equal("retries", before.vc("a").retries(), retries)?;
        equal("gone", before.names(Resource::Commands).is_empty(), true)?;
    }
    scene.settles().await?;
    scene.stays_silent().await?;
    let told = "Normal CommandIssued Start to execute command RestartJob, and clean it up to \
                make sure executed not more than once.";
    equal("told", scene.seen().vc("a").told(told), true)
}

async fn meant_for_another_job_of_the_same_name(scene: Scene) -> Result<()> {
    let (_door, _auto) = (scene.admit_all(), scene.kubelet.auto());
    scene.run(vcjob("a").task(task("w", 1)), 1).await?;
    let stray = json!({
        "apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command",
        "metadata": {"name": "stray"}, "action": "TerminateJob",
        "target": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "a",
            "uid": "00000000-0000-4000-8000-000000000000"},
    });
    scene.create(Resource::Commands, &stray).await?;
    let what = "the wrong job obeys";
    scene.never_within(400, what, |seen| seen.vc("a").phase() != "Running").await
}
