//! Pods whose nodes cannot be reached: the job says which, since when.

use anyhow::Result;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::scenarios::lost_nodes::{Machine, unready};
use crate::seen::text;
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/lost_nodes":
        of_a_job_that_runs,
        of_a_pod_that_never_started,
    ]
}

async fn says(scene: &Scene, phase: &str, reason: &str, message: &str) -> Result<()> {
    let what = format!("{phase}, {reason}: {message}");
    let said = |seen: &crate::seen::Seen| {
        let state = &seen.vc("a").status()["state"];
        ["phase", "reason", "message"].map(|key| text(&state[key]).to_owned())
    };
    scene.wait_until(&what, |seen| said(seen) == [phase, reason, message]).await.map(drop)
}

async fn of_a_job_that_runs(scene: Scene) -> Result<()> {
    let (_operator, _door) = (scene.start_operator(|_| {}).await?, scene.admit_all());
    let machine = Machine::join(&scene).await?;
    scene.submit(vcjob("a").task(task("w", 2))).await?;
    scene.wait_pods(&["a-w-0", "a-w-1"]).await?;
    machine.takes("a-w-1").await?;
    scene.kubelet.start_all(&["a-w-0", "a-w-1"]).await?;
    scene.runs("a", 2).await?;
    unready(&scene, "a-w-1").await?;
    let since = machine.lose().await?;
    let message = format!("The node of pod a-w-1 cannot be reached since {since}.");
    says(&scene, "Running", "NodeUnreachable", &message).await?;
    let told = format!("Warning NodeUnreachable {message}");
    scene.wait_until("an event tells it", |seen| seen.vc("a").told(&told)).await?;
    machine.find().await?;
    says(&scene, "Running", "", "").await?;
    let seen = scene.runs("a", 2).await?;
    equal("nobody restarts it", seen.vc("a").retries(), 0)
}

async fn of_a_pod_that_never_started(scene: Scene) -> Result<()> {
    let (_operator, _door) = (scene.start_operator(|_| {}).await?, scene.admit_all());
    let machine = Machine::join(&scene).await?;
    scene.submit(vcjob("a").task(task("w", 2))).await?;
    scene.wait_pods(&["a-w-0", "a-w-1"]).await?;
    machine.takes("a-w-1").await?;
    scene.kubelet.start("a-w-0").await?;
    let since = machine.lose().await?;
    let message = format!("The node of pod a-w-1 cannot be reached since {since}.");
    says(&scene, "Pending", "NodeUnreachable", &message).await?;
    machine.find().await?;
    scene.kubelet.start("a-w-1").await?;
    scene.runs("a", 2).await.map(drop)
}
