//! What is left of a finished job: the pod policies, and services that go in any case.

use anyhow::Result;
use trainyard_api::CleanPodPolicy;

use crate::check::{equal, has_line};
use crate::harness::{Case, cases};
use crate::manifest::{Manifest, tfjob};
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["clean":
        running_is_the_default,
        pending_pods_go_too,
        policy_all,
        policy_none,
        policy_below_spec,
        policy_of_the_run_policy_wins,
        policy_all_after_a_failure,
        policy_changed_after_the_end,
        nothing_more_is_written,
        deletions_are_told,
    ]
}

pub(super) fn own_operator() -> Vec<Case<World>> {
    cases!["clean": default_policy_of_the_operator]
}

/// Two workers and a parameter server; worker 0 succeeds and ends the job.
async fn succeed(world: &World, job: Manifest) -> Result<()> {
    world.submit(job.workers(2).ps(1)).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.wait_services(&[]).await?;
    Ok(())
}

const ALL: [&str; 3] = ["a-ps-0", "a-worker-0", "a-worker-1"];

async fn running_is_the_default(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    succeed(&world, tfjob("a")).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    Ok(())
}

async fn pending_pods_go_too(world: World) -> Result<()> {
    let _auto = world.kubelet.auto_finish();
    world.submit(tfjob("a").chief().workers(2)).await?;
    world.wait_pods(&["a-chief-0", "a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start("a-chief-0").await?;
    world.kubelet.creates("a-worker-0").await?;
    world.kubelet.exit("a-chief-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.wait_pods(&["a-chief-0"]).await?;
    Ok(())
}

async fn policy_all(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    succeed(&world, tfjob("a").run_policy("cleanPodPolicy", "All")).await?;
    world.wait_pods(&[]).await?;
    Ok(())
}

async fn policy_none(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    succeed(&world, tfjob("a").run_policy("cleanPodPolicy", "None")).await?;
    world.never_within(400, "a pod goes", |seen| seen.live_pods() != ALL).await
}

async fn policy_below_spec(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    succeed(&world, tfjob("a").spec("cleanPodPolicy", "None")).await?;
    world.never_within(400, "a pod goes", |seen| seen.live_pods() != ALL).await
}

async fn policy_of_the_run_policy_wins(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").spec("cleanPodPolicy", "None").run_policy("cleanPodPolicy", "All");
    succeed(&world, job).await?;
    world.wait_pods(&[]).await?;
    Ok(())
}

async fn policy_all_after_a_failure(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(2).run_policy("cleanPodPolicy", "All")).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-1", 1).await?;
    let seen = world.wait_pods(&[]).await?;
    equal("what is known of the failure stays", &seen.status("a")["failure"]["exitCode"], 1)?;
    world.wait_services(&[]).await?;
    Ok(())
}

async fn policy_changed_after_the_end(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    succeed(&world, tfjob("a").run_policy("cleanPodPolicy", "None")).await?;
    world.patch_spec("a", serde_json::json!({"runPolicy": {"cleanPodPolicy": "All"}})).await?;
    world.wait_pods(&[]).await?;
    Ok(())
}

async fn nothing_more_is_written(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    succeed(&world, tfjob("a")).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    let told = "Normal SuccessfulDeletePod Deleted pod: a-worker-1";
    world
        .wait_until("all is told", |seen| {
            seen.told("a", told) && seen.told("a", "Normal TFJobSucceeded")
        })
        .await?;
    world.stays_silent().await
}

async fn deletions_are_told(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    succeed(&world, tfjob("a")).await?;
    for line in [
        "Normal SuccessfulDeletePod Deleted pod: a-worker-1",
        "Normal SuccessfulDeletePod Deleted pod: a-ps-0",
        "Normal SuccessfulDeleteService Deleted service: a-worker-0",
        "Normal SuccessfulDeleteService Deleted service: a-ps-0",
    ] {
        let seen = world.wait_until(line, |seen| seen.told("a", line)).await?;
        has_line("events", &seen.events("a"), line)?;
    }
    Ok(())
}

async fn default_policy_of_the_operator(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let _operator = world
        .start_operator(|options| options.planner.default_clean_pod_policy = CleanPodPolicy::None)
        .await?;
    succeed(&world, tfjob("a")).await?;
    world.never_within(400, "a pod goes", |seen| seen.live_pods() != ALL).await
}
