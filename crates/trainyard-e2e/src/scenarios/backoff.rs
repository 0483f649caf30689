//! `backoffLimit`: how many restarts a job is granted, and what happens after the last.

use anyhow::Result;

use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::manifest::{Manifest, tfjob};
use crate::seen::text;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["backoff":
        the_failure_after_the_last_restart,
        zero_grants_none,
        counted_over_all_replicas,
        restarts_in_place_reach_the_limit,
        a_crash_loop_reaches_the_limit,
        disruptions_are_not_counted,
        without_restarts_it_says_nothing,
        everything_that_runs_is_stopped,
        a_limit_below_spec_counts,
        a_raised_limit_goes_on,
    ]
}

const REACHED: &str = "Job a has failed because it has reached the specified backoff limit";

async fn running(world: &World, job: Manifest) -> Result<()> {
    world.submit(job).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

/// Ends the running pod with 137 and waits for its running successor.
async fn fail_once(world: &World, pod: &str) -> Result<()> {
    let before = world
        .wait_until("the pod runs", |seen| seen.pod(pod)["status"]["phase"] == "Running")
        .await?;
    world.kubelet.exit(pod, 137).await?;
    world.wait_successor(pod, &before.uid(pod)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn wait_reached(world: &World) -> Result<()> {
    let seen = world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    contains("message", text(&seen.condition("a", "Failed")["message"]), &[REACHED])?;
    equal("reason", &seen.condition("a", "Failed")["reason"], "TFJobFailed")?;
    equal("kind", &seen.status("a")["failure"]["kind"], "BackoffLimitExceeded")?;
    let told = format!("Normal TFJobFailed {REACHED}");
    let warned = format!("Warning TFJobFailed {REACHED}");
    world.wait_until("it is told", |seen| seen.told("a", &told) || seen.told("a", &warned)).await?;
    Ok(())
}

async fn the_failure_after_the_last_restart(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(2).restart("ExitCode").run_policy("backoffLimit", 2))
        .await?;
    fail_once(&world, "a-worker-1").await?;
    fail_once(&world, "a-worker-1").await?;
    equal("two restarts", world.seen().restarts("a"), 2)?;
    world.kubelet.exit("a-worker-1", 137).await?;
    wait_reached(&world).await?;
    let seen = world.seen();
    equal("no third", seen.restarts("a"), 2)?;
    equal("which pod", &seen.status("a")["failure"]["pod"], "a-worker-1")?;
    equal("its code", &seen.status("a")["failure"]["exitCode"], 137)?;
    equal("its signal", &seen.status("a")["failure"]["signal"], "SIGKILL")
}

async fn zero_grants_none(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).restart("ExitCode").run_policy("backoffLimit", 0))
        .await?;
    world.kubelet.exit("a-worker-0", 137).await?;
    wait_reached(&world).await?;
    equal("no restart", world.seen().restarts("a"), 0)
}

async fn counted_over_all_replicas(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(2).ps(1).restart("ExitCode").run_policy("backoffLimit", 2);
    running(&world, job).await?;
    fail_once(&world, "a-worker-0").await?;
    fail_once(&world, "a-ps-0").await?;
    world.kubelet.exit("a-worker-1", 143).await?;
    wait_reached(&world).await
}

async fn restarts_in_place_reach_the_limit(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(2).restart("OnFailure").run_policy("backoffLimit", 3);
    running(&world, job).await?;
    world.kubelet.restart_in_place("a-worker-0", 1).await?;
    world.kubelet.restart_in_place("a-worker-1", 1).await?;
    let seen = world.wait_until("two are counted", |seen| seen.restarts("a") == 2).await?;
    equal("goes on", seen.finished("a"), false)?;
    world.kubelet.restart_in_place("a-worker-1", 2).await?;
    wait_reached(&world).await
}

async fn a_crash_loop_reaches_the_limit(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(1).restart("OnFailure").run_policy("backoffLimit", 2);
    running(&world, job).await?;
    world.kubelet.crash_loop("a-worker-0", 1).await?;
    world.wait_until("one is counted", |seen| seen.restarts("a") == 1).await?;
    world.kubelet.crash_loop("a-worker-0", 2).await?;
    wait_reached(&world).await
}

async fn disruptions_are_not_counted(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(1).restart("OnFailure").run_policy("backoffLimit", 0);
    running(&world, job).await?;
    for marked in [true, false] {
        let before = world
            .wait_until("the worker runs", |seen| {
                seen.pod("a-worker-0")["status"]["phase"] == "Running"
            })
            .await?;
        world.kubelet.evict("a-worker-0", marked).await?;
        world.wait_successor("a-worker-0", &before.uid("a-worker-0")).await?;
        let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
        equal("not counted", seen.restarts("a"), 0)?;
    }
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    Ok(())
}

async fn without_restarts_it_says_nothing(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).restart("Never").run_policy("backoffLimit", 3)).await?;
    world.kubelet.exit("a-worker-0", 137).await?;
    let seen = world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    equal("kind", &seen.status("a")["failure"]["kind"], "ReplicaFailed")
}

async fn everything_that_runs_is_stopped(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a")
        .workers(3)
        .ps(1)
        .restart("ExitCode")
        .run_policy("backoffLimit", 0)
        .run_policy("cleanPodPolicy", "None");
    running(&world, job).await?;
    world.kubelet.exit("a-worker-1", 0).await?;
    world.wait_until("it is recorded", |seen| seen.completed("a", "Worker") == "1").await?;
    world.kubelet.exit("a-worker-2", 137).await?;
    wait_reached(&world).await?;
    // Those that have ended follow the pod policy, so that their logs can be read.
    world.wait_pods(&["a-worker-1", "a-worker-2"]).await?;
    world.wait_services(&[]).await?;
    Ok(())
}

async fn a_limit_below_spec_counts(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).restart("ExitCode").spec("backoffLimit", 0)).await?;
    world.kubelet.exit("a-worker-0", 137).await?;
    wait_reached(&world).await
}

async fn a_raised_limit_goes_on(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).restart("ExitCode").run_policy("backoffLimit", 1))
        .await?;
    fail_once(&world, "a-worker-0").await?;
    let spec = serde_json::json!({"runPolicy": {"backoffLimit": 2}});
    world.patch_spec("a", spec).await?;
    fail_once(&world, "a-worker-0").await?;
    world.kubelet.exit("a-worker-0", 137).await?;
    wait_reached(&world).await
}
