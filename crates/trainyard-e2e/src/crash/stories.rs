//! The stories that are played with every fault: short, and with one possible end.

use anyhow::Result;
use serde_json::json;
use trainyard_operator::Options;

use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::seen::Seen;
use crate::world::World;

/// Settings of the operators in stories.
pub(super) fn options(options: &mut Options) {
    options.planner.restart_backoff_ms = 50;
    options.planner.counts_delay_ms = 50;
}

/// All stories.
pub(super) fn all() -> Vec<Case<World>> {
    cases!["crash":
        started_and_succeeded,
        failed,
        restarted_once,
        failed_by_the_limit,
        evicted,
        deleted_by_somebody,
        restarted_in_place,
        suspended_and_resumed,
        scaled_up_and_down,
        deleted_after_its_time,
        past_its_deadline,
        everything_cleaned,
        whole_job_restarted,
        with_tensorboard,
        completed_pod_deleted,
        dynamic_worker_lost,
    ]
}

async fn runs(world: &World) -> Result<std::sync::Arc<Seen>> {
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await
}

/// The pods are all started: what a story does next meets no pod that is still waiting.
async fn all_run(world: &World, count: usize) -> Result<std::sync::Arc<Seen>> {
    runs(world).await?;
    world
        .wait_until("all pods run", |seen| {
            let pods = seen.live_pods();
            pods.len() == count
                && pods.iter().all(|pod| seen.pod(pod)["status"]["phase"] == "Running")
        })
        .await
}

async fn started_and_succeeded(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).ps(1)).await?;
    all_run(&world, 3).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.wait_services(&[]).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    Ok(())
}

async fn failed(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2)).await?;
    all_run(&world, 2).await?;
    world.kubelet.exit("a-worker-1", 1).await?;
    world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    world.wait_services(&[]).await?;
    world.wait_pods(&["a-worker-1"]).await?;
    Ok(())
}

async fn restarted_once(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).restart("ExitCode").run_policy("backoffLimit", 1)).await?;
    let before = all_run(&world, 2).await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    all_run(&world, 2).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.wait_services(&[]).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    Ok(())
}

async fn failed_by_the_limit(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).restart("ExitCode").run_policy("backoffLimit", 1)).await?;
    let before = all_run(&world, 2).await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    all_run(&world, 2).await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    world.wait_services(&[]).await?;
    world.wait_pods(&["a-worker-1"]).await?;
    Ok(())
}

async fn evicted(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).restart("OnFailure").run_policy("backoffLimit", 0)).await?;
    let before = all_run(&world, 2).await?;
    world.kubelet.evict("a-worker-1", true).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    all_run(&world, 2).await?;
    world.wait_until("it is told", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    Ok(())
}

async fn deleted_by_somebody(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).restart("ExitCode").run_policy("backoffLimit", 0)).await?;
    let before = all_run(&world, 2).await?;
    world.kubelet.delete("a-worker-1", None).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    all_run(&world, 2).await?;
    world.wait_until("it is counted", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    Ok(())
}

async fn restarted_in_place(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).restart("OnFailure").run_policy("backoffLimit", 3)).await?;
    all_run(&world, 1).await?;
    world.kubelet.restart_in_place("a-worker-0", 1).await?;
    world.wait_until("one is counted", |seen| seen.restarts("a") == 1).await?;
    world.kubelet.restart_in_place("a-worker-0", 2).await?;
    world.wait_until("two are counted", |seen| seen.restarts("a") == 2).await?;
    world.kubelet.restart_in_place("a-worker-0", 3).await?;
    world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    world.wait_services(&[]).await?;
    world.wait_pods(&[]).await?;
    Ok(())
}

async fn suspended_and_resumed(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).ps(1)).await?;
    all_run(&world, 2).await?;
    world.patch_spec("a", json!({"runPolicy": {"suspend": true}})).await?;
    world.wait_until("it is suspended", |seen| seen.is("a", "Suspended")).await?;
    world.wait_pods(&[]).await?;
    world.wait_services(&[]).await?;
    world.patch_spec("a", json!({"runPolicy": {"suspend": false}})).await?;
    all_run(&world, 2).await?;
    world.wait_services(&["a-ps-0", "a-worker-0"]).await?;
    world.wait_until("it is counted", |seen| seen.counts("a", "PS") == [1, 0, 0]).await?;
    Ok(())
}

async fn scaled_up_and_down(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1)).await?;
    all_run(&world, 1).await?;
    world.set_replicas("a", "Worker", 3).await?;
    all_run(&world, 3).await?;
    world.wait_until("all are counted", |seen| seen.counts("a", "Worker") == [3, 0, 0]).await?;
    world.set_replicas("a", "Worker", 1).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    world.wait_services(&["a-worker-0"]).await?;
    world.wait_until("one is counted", |seen| seen.counts("a", "Worker") == [1, 0, 0]).await?;
    Ok(())
}

async fn deleted_after_its_time(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).run_policy("ttlSecondsAfterFinished", 0)).await?;
    all_run(&world, 2).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world
        .wait_until("all is gone", |seen| {
            seen.job("a").is_null() && seen.pods().is_empty() && seen.services().is_empty()
        })
        .await?;
    Ok(())
}

async fn past_its_deadline(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(2).run_policy("activeDeadlineSeconds", 4);
    world.submit(job).await?;
    all_run(&world, 2).await?;
    world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    world.wait_pods(&[]).await?;
    world.wait_services(&[]).await?;
    Ok(())
}

async fn everything_cleaned(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").chief().workers(1).ps(1).run_policy("cleanPodPolicy", "All");
    world.submit(job).await?;
    all_run(&world, 3).await?;
    world.kubelet.exit("a-chief-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.wait_pods(&[]).await?;
    world.wait_services(&[]).await?;
    Ok(())
}

async fn whole_job_restarted(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(2).restart("ExitCode").run_policy("restartScope", "Job");
    world.submit(job).await?;
    let before = all_run(&world, 2).await?;
    world.wait_until("both are counted", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    for pod in ["a-worker-0", "a-worker-1"] {
        world.wait_successor(pod, &before.uid(pod)).await?;
    }
    all_run(&world, 2).await?;
    world.wait_until("both are counted", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    Ok(())
}

async fn with_tensorboard(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).spec("tensorBoard", json!({"logDir": "/logs"}))).await?;
    all_run(&world, 2).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.wait_services(&["a-tensorboard-0"]).await?;
    Ok(())
}

async fn completed_pod_deleted(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).spec("successPolicy", "AllWorkers")).await?;
    all_run(&world, 2).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("it is recorded", |seen| seen.completed("a", "Worker") == "0").await?;
    world.kubelet.delete("a-worker-0", Some(0)).await?;
    world.kubelet.exit("a-worker-1", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.wait_services(&[]).await?;
    Ok(())
}

async fn dynamic_worker_lost(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).ps(1).spec("enableDynamicWorker", true)).await?;
    all_run(&world, 3).await?;
    world.kubelet.exit("a-worker-1", 1).await?;
    world.wait_until("it is counted", |seen| seen.counts("a", "Worker") == [1, 0, 1]).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.wait_services(&[]).await?;
    world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    Ok(())
}
