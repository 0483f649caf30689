//! A replica ends and its policy lets it run again.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use tokio::time::Instant;

use crate::check::{equal, has_line, no_line};
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::seen::text;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["restart":
        policies_of_pods,
        a_failed_pod_gets_a_successor,
        a_parameter_server_is_restarted,
        in_place_restarts_are_counted,
        restarts_of_a_pod_that_is_deleted_at_once_are_counted,
        always_never_completes,
        successors_wait_longer_each_time,
        restarting_hides_no_failure,
        two_replicas_at_once,
        a_completed_worker_stays_completed,
        all_replicas_with_scope_job,
        scope_job_counts_one_restart,
    ]
}

async fn policies_of_pods(world: World) -> Result<()> {
    for (name, policy, wanted) in [
        ("a", "Always", "Always"),
        ("b", "OnFailure", "OnFailure"),
        ("c", "Never", "Never"),
        ("d", "ExitCode", "Never"),
    ] {
        world.submit(tfjob(name).workers(1).restart(policy)).await?;
        let pod = format!("{name}-worker-0");
        let seen = world.wait_until("the pod is there", |seen| !seen.pod(&pod).is_null()).await?;
        equal(policy, &seen.pod(&pod)["spec"]["restartPolicy"], wanted)?;
    }
    Ok(())
}

async fn a_failed_pod_gets_a_successor(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(2).restart("ExitCode")).await?;
    world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start_all(&["a-worker-0", "a-worker-1"]).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Restarting=True"]).await?;
    has_line(
        "why",
        &seen.condition_lines("a"),
        "Restarting=True TFJobRestarting: job a is restarting because Worker replica(s) failed.",
    )?;
    let seen = world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    equal("the other worker stays", seen.uid("a-worker-0"), before.uid("a-worker-0"))?;
    equal(
        "the service stays",
        &seen.service("a-worker-1")["metadata"]["uid"],
        &before.service("a-worker-1")["metadata"]["uid"],
    )?;
    equal("counted", seen.restarts("a"), 1)?;
    equal(
        "same TF_CONFIG",
        seen.env("a-worker-1", "TF_CONFIG"),
        before.env("a-worker-1", "TF_CONFIG"),
    )?;
    world.kubelet.start("a-worker-1").await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    let seen = world
        .wait_until("the restart is told", |seen| seen.told("a", "Warning TFJobRestarting"))
        .await?;
    has_line(
        "event",
        &seen.events("a"),
        "Warning TFJobRestarting job a is restarting because Worker replica(s) failed.",
    )?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_conditions("a", &["Created=True", "Running=False", "Succeeded=True"]).await?;
    Ok(())
}

async fn a_parameter_server_is_restarted(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).ps(2).restart("ExitCode")).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-ps-1", 143).await?;
    world.wait_successor("a-ps-1", &before.uid("a-ps-1")).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal("restarts", seen.restarts("a"), 1)?;
    let told = "Warning TFJobRestarting job a is restarting because PS replica(s) failed.";
    world.wait_until("the restart is told", |seen| seen.told("a", told)).await?;
    Ok(())
}

async fn in_place_restarts_are_counted(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).ps(1).restart("OnFailure")).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.restart_in_place("a-worker-0", 2).await?;
    let seen = world.wait_until("both are counted", |seen| seen.restarts("a") == 2).await?;
    equal("the pod stays", seen.uid("a-worker-0"), before.uid("a-worker-0"))?;
    world.kubelet.restart_in_place("a-worker-0", 3).await?;
    world.wait_until("the third too", |seen| seen.restarts("a") == 3).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    Ok(())
}

/// Counts are held back a little; a pod that is deleted by force takes its status along.
async fn restarts_of_a_pod_that_is_deleted_at_once_are_counted(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(2).restart("OnFailure")).await?;
    world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start_all(&["a-worker-0", "a-worker-1"]).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.restart_in_place("a-worker-0", 1).await?;
    world.kubelet.delete("a-worker-0", Some(0)).await?;
    world.wait_successor("a-worker-0", &seen.uid("a-worker-0")).await?;
    world.wait_until("it is counted", |seen| seen.restarts("a") == 1).await?;
    world.kubelet.start("a-worker-0").await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.never_within(1_500, "it is counted again", |seen| seen.restarts("a") != 1).await
}

async fn always_never_completes(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).restart("Always")).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.restart_in_place("a-worker-0", 1).await?;
    world.wait_until("it is counted", |seen| seen.restarts("a") == 1).await?;
    world.never_within(300, "the job ends", |seen| seen.finished("a")).await?;
    Ok(())
}

async fn successors_wait_longer_each_time(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).restart("ExitCode")).await?;
    let mut waited = Vec::new();
    for round in 1..=3 {
        let seen = world
            .wait_until("the worker runs", |seen| {
                seen.is("a", "Running") && seen.pod("a-worker-0")["status"]["phase"] == "Running"
            })
            .await?;
        let uid = seen.uid("a-worker-0");
        let ended = Instant::now();
        world.kubelet.exit("a-worker-0", 137).await?;
        let seen = world.wait_successor("a-worker-0", &uid).await?;
        waited.push(ended.elapsed());
        equal("restarts", seen.restarts("a"), round)?;
    }
    // At once, then 200 ms, then 400 ms: what the shared operator was told.
    ensure!(waited[1] >= Duration::from_millis(190), "second successor too early: {waited:?}");
    ensure!(waited[2] >= Duration::from_millis(390), "third successor too early: {waited:?}");
    Ok(())
}

async fn restarting_hides_no_failure(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(1).ps(1).restart("ExitCode").restart_of("PS", "Never")).await?;
    world.wait_pods(&["a-ps-0", "a-worker-0"]).await?;
    world.kubelet.start_all(&["a-ps-0", "a-worker-0"]).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-0", 137).await?;
    world.wait_successor("a-worker-0", &seen.uid("a-worker-0")).await?;
    world.kubelet.exit("a-ps-0", 1).await?;
    let seen = world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    equal("which pod", &seen.status("a")["failure"]["pod"], "a-ps-0")?;
    ensure!(seen.status("a")["completionTime"].is_string(), "no completionTime");
    Ok(())
}

async fn two_replicas_at_once(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(3).restart("ExitCode")).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    world.kubelet.exit("a-worker-2", 143).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    world.wait_successor("a-worker-2", &before.uid("a-worker-2")).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal("both are counted", seen.restarts("a"), 2)?;
    equal("worker 0 stays", seen.uid("a-worker-0"), before.uid("a-worker-0"))?;
    Ok(())
}

async fn a_completed_worker_stays_completed(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(2).restart("ExitCode").spec("successPolicy", "AllWorkers");
    world.submit(job).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("it is recorded", |seen| seen.completed("a", "Worker") == "0").await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal("worker 0 is not run again", seen.uid("a-worker-0"), before.uid("a-worker-0"))?;
    world.kubelet.exit("a-worker-1", 0).await?;
    let seen = world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    equal("completed", seen.completed("a", "Worker"), "0-1")?;
    Ok(())
}

async fn all_replicas_with_scope_job(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(2).ps(1).restart("OnFailure").run_policy("restartScope", "Job");
    world.submit(job).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    let names = ["a-ps-0", "a-worker-0", "a-worker-1"];
    for name in names {
        let policy = &before.pod(name)["spec"]["restartPolicy"];
        equal("no kubelet restarts in place", policy, "Never")?;
    }
    world.kubelet.exit("a-worker-1", 1).await?;
    for name in names {
        world.wait_successor(name, &before.uid(name)).await?;
    }
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal("attempt", &seen.status("a")["attempt"], 1)?;
    for name in names {
        let label = &seen.pod(name)["metadata"]["labels"]["trainyard.dev/attempt"];
        equal("attempt of the pod", text(label), "1")?;
    }
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    no_line("failures", &world.seen().events("a"), "Normal TFJobFailed")?;
    Ok(())
}

async fn scope_job_counts_one_restart(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a")
        .workers(3)
        .restart("ExitCode")
        .run_policy("restartScope", "Job")
        .run_policy("backoffLimit", json!(1));
    world.submit(job).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-2", 137).await?;
    for name in ["a-worker-0", "a-worker-1", "a-worker-2"] {
        world.wait_successor(name, &before.uid(name)).await?;
    }
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal("one failure, one restart", seen.restarts("a"), 1)?;
    world.kubelet.exit("a-worker-0", 137).await?;
    let seen = world.wait_until("the limit is reached", |seen| seen.is("a", "Failed")).await?;
    equal("why", &seen.status("a")["failure"]["kind"], "BackoffLimitExceeded")?;
    Ok(())
}
