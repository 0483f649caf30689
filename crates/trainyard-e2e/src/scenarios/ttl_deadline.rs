//! Limits in time: deletion after the end, the deadline of a job, the time it may take to start.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::seen::text;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["ttl_deadline":
        deleted_when_its_time_is_over,
        deleted_at_once,
        deleted_after_a_failure,
        a_time_to_live_given_later,
        a_time_to_live_below_spec,
        past_the_deadline,
        a_pending_job_is_past_its_deadline_too,
        a_deadline_of_zero,
        a_deadline_given_later,
        finished_pods_outlive_the_deadline,
        too_slow_to_start,
        nowhere_to_start,
        started_in_time,
    ]
}

const PAST: &str = "Job a has failed because it was active longer than specified deadline";
const FAILED: [&str; 3] = ["Created=True", "Running=False", "Failed=True"];

async fn wait_gone(world: &World) -> Result<()> {
    world
        .wait_until("job, pods and services are gone", |seen| {
            seen.job("a").is_null() && seen.pods().is_empty() && seen.services().is_empty()
        })
        .await?;
    let told = "Normal SuccessfulDeleteJob Deleted job: a";
    world.wait_until("the deletion is told", |seen| seen.told("a", told)).await?;
    Ok(())
}

async fn deleted_when_its_time_is_over(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(1).run_policy("ttlSecondsAfterFinished", 4);
    world.submit(job).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    let finished = Instant::now();
    wait_gone(&world).await?;
    // The time of completion is stored in whole seconds.
    let lived = finished.elapsed();
    ensure!(lived > Duration::from_secs(2), "deleted too early: {lived:?}");
    Ok(())
}

async fn deleted_at_once(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).run_policy("ttlSecondsAfterFinished", 0)).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    wait_gone(&world).await
}

async fn deleted_after_a_failure(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(2).restart("ExitCode").run_policy("ttlSecondsAfterFinished", 1);
    world.submit(job).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-1", 1).await?;
    wait_gone(&world).await
}

async fn a_time_to_live_given_later(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1)).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.patch_spec("a", json!({"runPolicy": {"ttlSecondsAfterFinished": 1}})).await?;
    wait_gone(&world).await
}

async fn a_time_to_live_below_spec(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).spec("ttlSecondsAfterFinished", 0)).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    wait_gone(&world).await
}

async fn wait_past(world: &World) -> Result<()> {
    let seen = world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    contains("message", text(&seen.condition("a", "Failed")["message"]), &[PAST])?;
    equal("kind", &seen.status("a")["failure"]["kind"], "DeadlineExceeded")?;
    ensure!(seen.status("a")["completionTime"].is_string(), "no completionTime");
    world
        .wait_until("it is told", |seen| {
            seen.events("a").iter().any(|event| event.contains(&format!("TFJobFailed {PAST}")))
        })
        .await?;
    Ok(())
}

async fn past_the_deadline(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a")
        .workers(2)
        .ps(1)
        .run_policy("activeDeadlineSeconds", 5)
        .run_policy("cleanPodPolicy", "None");
    world.submit(job).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    wait_past(&world).await?;
    world.wait_pods(&[]).await?;
    let seen = world.wait_services(&[]).await?;
    equal("conditions", seen.conditions("a"), FAILED)
}

async fn a_pending_job_is_past_its_deadline_too(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1).run_policy("activeDeadlineSeconds", 4)).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    wait_past(&world).await?;
    let seen = world.wait_pods(&[]).await?;
    equal("conditions", seen.conditions("a"), ["Created=True", "Failed=True"])
}

async fn a_deadline_of_zero(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).spec("activeDeadlineSeconds", 0)).await?;
    wait_past(&world).await?;
    world.wait_pods(&[]).await?;
    world.wait_services(&[]).await?;
    Ok(())
}

async fn a_deadline_given_later(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).run_policy("activeDeadlineSeconds", 3600)).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world.patch_spec("a", json!({"runPolicy": {"activeDeadlineSeconds": 1}})).await?;
    wait_past(&world).await
}

async fn finished_pods_outlive_the_deadline(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a")
        .workers(2)
        .spec("successPolicy", "AllWorkers")
        .run_policy("activeDeadlineSeconds", 5);
    world.submit(job).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("it is recorded", |seen| seen.completed("a", "Worker") == "0").await?;
    wait_past(&world).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    Ok(())
}

async fn too_slow_to_start(world: World) -> Result<()> {
    let _auto = world.kubelet.auto_finish();
    let job = tfjob("a")
        .workers(2)
        .run_policy("startTimeoutSeconds", 5)
        .run_policy("cleanPodPolicy", "None");
    world.submit(job).await?;
    world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start("a-worker-0").await?;
    let words = "Back-off pulling image \"example.com/train:1\"";
    world.kubelet.cannot_pull("a-worker-1", words).await?;
    let seen = world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    equal("kind", &seen.status("a")["failure"]["kind"], "StartTimeout")?;
    equal("pod", &seen.status("a")["failure"]["pod"], "a-worker-1")?;
    contains(
        "message",
        text(&seen.condition("a", "Failed")["message"]),
        &["a-worker-1", "ImagePullBackOff", "Back-off pulling image"],
    )?;
    world.wait_pods(&[]).await?;
    Ok(())
}

async fn nowhere_to_start(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1).run_policy("startTimeoutSeconds", 5)).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    let words = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.";
    world.kubelet.unschedulable("a-worker-0", words).await?;
    let seen = world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    contains(
        "message",
        text(&seen.condition("a", "Failed")["message"]),
        &["a-worker-0", "Unschedulable", "3 Insufficient nvidia.com/gpu"],
    )
}

async fn started_in_time(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(1).restart("ExitCode").run_policy("startTimeoutSeconds", 4);
    world.submit(job).await?;
    let before = world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    // A restart after the first start is not limited by it.
    world.never_within(4500, "the job fails", |seen| seen.is("a", "Failed")).await?;
    world.kubelet.exit("a-worker-0", 137).await?;
    world.wait_successor("a-worker-0", &before.uid("a-worker-0")).await?;
    world.wait_until("the job runs again", |seen| seen.is("a", "Running")).await?;
    Ok(())
}
