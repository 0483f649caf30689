//! Suspending a job and taking it up again.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use crate::check::{equal, has_line};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["suspend":
        created_suspended,
        suspended_while_running,
        resumed,
        completed_work_is_kept,
        a_finished_job_stays_finished,
        no_restart_is_counted,
        the_deadline_starts_anew,
        suspended_while_restarting,
    ]
}

async fn suspend(world: &World, on: bool) -> Result<()> {
    world.patch_spec("a", json!({"runPolicy": {"suspend": on}})).await
}

async fn created_suspended(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(2).ps(1).run_policy("suspend", true)).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Suspended=True"]).await?;
    has_line(
        "condition",
        &seen.condition_lines("a"),
        "Suspended=True TFJobSuspended: TFJob a is suspended.",
    )?;
    let status = seen.status("a");
    ensure!(status["startTime"].is_null(), "a suspended job has not started: {status}");
    for kind in ["Worker", "PS"] {
        equal(kind, seen.counts("a", kind), [0, 0, 0])?;
    }
    world
        .never_within(300, "a suspended job gets objects", |seen| {
            !seen.pods().is_empty() || !seen.services().is_empty()
        })
        .await
}

async fn suspended_while_running(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).ps(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    suspend(&world, true).await?;
    let seen =
        world.wait_conditions("a", &["Created=True", "Running=False", "Suspended=True"]).await?;
    equal(
        "conditions",
        &seen.condition_lines("a")[1..],
        [
            "Running=False TFJobSuspended: TFJob a is suspended.",
            "Suspended=True TFJobSuspended: TFJob a is suspended.",
        ],
    )?;
    world.wait_pods(&[]).await?;
    let seen = world.wait_services(&[]).await?;
    equal("nothing is active", seen.counts("a", "Worker")[0], 0)?;
    equal("no failure", seen.is("a", "Failed"), false)?;
    let told = "Normal TFJobSuspended TFJob a is suspended.";
    world.wait_until("it is told", |seen| seen.told("a", told)).await?;
    world
        .never_within(400, "it is told twice", |seen| {
            seen.events("a").iter().filter(|event| *event == told).count() > 1
                || !seen.pods().is_empty()
        })
        .await
}

async fn resumed(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2)).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    suspend(&world, true).await?;
    world.wait_pods(&[]).await?;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    suspend(&world, false).await?;
    let seen =
        world.wait_conditions("a", &["Created=True", "Suspended=False", "Running=True"]).await?;
    has_line(
        "condition",
        &seen.condition_lines("a"),
        "Suspended=False TFJobResumed: TFJob a is resumed.",
    )?;
    let start = |status: &serde_json::Value| status["startTime"].clone();
    ensure!(
        start(before.status("a")) != start(seen.status("a")),
        "the clock starts anew: {}",
        seen.status("a")
    );
    equal("pods", seen.pods(), ["a-worker-0", "a-worker-1"])?;
    world.wait_services(&["a-worker-0", "a-worker-1"]).await?;
    let told = "Normal TFJobResumed TFJob a is resumed.";
    world.wait_until("it is told", |seen| seen.told("a", told)).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    Ok(())
}

async fn completed_work_is_kept(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).spec("successPolicy", "AllWorkers")).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("it is recorded", |seen| seen.completed("a", "Worker") == "0").await?;
    suspend(&world, true).await?;
    world.wait_pods(&[]).await?;
    suspend(&world, false).await?;
    world.wait_until("the job runs again", |seen| seen.is("a", "Running")).await?;
    equal("only what is left", world.seen().pods(), ["a-worker-1"])?;
    world.kubelet.exit("a-worker-1", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    Ok(())
}

async fn a_finished_job_stays_finished(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    let done = ["Created=True", "Running=False", "Succeeded=True"];
    world.wait_conditions("a", &done).await?;
    suspend(&world, true).await?;
    world
        .never_within(400, "a finished job is suspended", |seen| {
            seen.conditions("a") != done || seen.pods() != ["a-worker-0"]
        })
        .await
}

async fn no_restart_is_counted(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(2).restart("ExitCode").run_policy("backoffLimit", 0);
    world.submit(job).await?;
    for _ in 0..2 {
        world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
        suspend(&world, true).await?;
        world.wait_pods(&[]).await?;
        suspend(&world, false).await?;
    }
    let seen = world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    equal("restarts", seen.restarts("a"), 0)
}

async fn the_deadline_starts_anew(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).run_policy("activeDeadlineSeconds", 5)).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    suspend(&world, true).await?;
    world.wait_pods(&[]).await?;
    world.never_within(5500, "a suspended job is late", |seen| seen.is("a", "Failed")).await?;
    suspend(&world, false).await?;
    world.wait_until("the job runs again", |seen| seen.is("a", "Running")).await?;
    world.wait_until("its own time is over", |seen| seen.is("a", "Failed")).await?;
    Ok(())
}

async fn suspended_while_restarting(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(2).restart("ExitCode")).await?;
    world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start_all(&["a-worker-0", "a-worker-1"]).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    world.wait_successor("a-worker-1", &seen.uid("a-worker-1")).await?;
    suspend(&world, true).await?;
    let _auto = world.kubelet.auto();
    let seen = world.wait_until("it is suspended", |seen| seen.is("a", "Suspended")).await?;
    equal("not restarting any more", seen.is("a", "Restarting"), false)?;
    world.wait_pods(&[]).await?;
    suspend(&world, false).await?;
    let seen = world.wait_until("the job runs again", |seen| seen.is("a", "Running")).await?;
    equal("the restart before stays counted", seen.restarts("a"), 1)
}
