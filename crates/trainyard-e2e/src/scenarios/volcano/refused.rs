//! Pods that the API server refuses to create: said in the state in its words, while the job waits and
//! while it runs.

use anyhow::Result;
use serde_json::json;

use crate::harness::{Case, cases};
use crate::scenarios::refused::{QUOTA, Refusals};
use crate::seen::{Seen, text};
use crate::volcano::{Scene, task, vcjob};

pub(super) fn all() -> Vec<Case<Scene>> {
    cases!["volcano/refused":
        while_it_waits,
        while_it_runs,
    ]
}

fn says(seen: &Seen) -> [&str; 3] {
    let state = &seen.vc("a").status()["state"];
    ["phase", "reason", "message"].map(|key| text(&state[key]))
}

async fn is_refused(scene: &Scene, phase: &str) -> Result<()> {
    let told = [phase, "FailedCreate", QUOTA.1];
    scene.wait_until("the state has the server's words", |seen| says(seen) == told).await?;
    scene.never_within(1_500, "it comes and goes", |seen| says(seen) != told).await
}

async fn while_it_waits(scene: Scene) -> Result<()> {
    let (_door, _auto, refusals) = (scene.admit_all(), scene.kubelet.auto(), Refusals::default());
    refusals.begin_after(0, QUOTA);
    let client = refusals.client(scene.operator_client());
    let _operator = scene.start_operator_with(client, |_| ()).await?;
    scene.submit(vcjob("a").task(task("w", 2))).await?;
    is_refused(&scene, "Pending").await?;
    refusals.end();
    scene.runs("a", 2).await?;
    scene.wait_until("it says no more", |seen| says(seen) == ["Running", "", ""]).await.map(drop)
}

async fn while_it_runs(scene: Scene) -> Result<()> {
    let (_door, _auto, refusals) = (scene.admit_all(), scene.kubelet.auto(), Refusals::default());
    let client = refusals.client(scene.operator_client());
    let _operator = scene.start_operator_with(client, |_| ()).await?;
    scene.run(vcjob("a").task(task("w", 2)).spec("minAvailable", 1), 2).await?;
    refusals.begin_after(0, QUOTA);
    scene.kubelet.delete_and_finish("a-w-1").await?;
    is_refused(&scene, "Running").await?;
    refusals.end();
    scene.runs("a", 2).await?;
    refusals.begin_after(0, QUOTA);
    let mut tasks = scene.seen().vc("a").object()["spec"]["tasks"].clone();
    tasks[0]["replicas"] = 4.into();
    scene.edit("a", json!({"tasks": tasks})).await?;
    is_refused(&scene, "Running").await?;
    tasks[0]["replicas"] = 2.into();
    scene.edit("a", json!({"tasks": tasks})).await?;
    scene.wait_until("it is over", |seen| says(seen) == ["Running", "", ""]).await?;
    scene.settles().await?;
    scene.stays_silent().await
}
