//! Who decides that a job has succeeded, and that success is final.

use anyhow::{Result, ensure};

use crate::check::{equal, no_line};
use crate::harness::{Case, cases};
use crate::manifest::{Manifest, tfjob};
use crate::seen::Seen;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["success":
        the_normal_course,
        worker_zero_decides,
        another_worker_does_not,
        all_workers_when_asked,
        the_chief_decides,
        the_master_decides,
        the_chief_outranks_all_workers,
        a_chief_of_zero_is_absent,
        parameter_servers_never_do,
        nobody_decides,
        evaluators_never_do,
        a_completed_index_is_not_run_again,
        success_is_final,
        a_change_after_the_end_is_answered,
        all_workers_scaled_to_what_is_done,
    ]
}

pub(super) fn own_operator() -> Vec<Case<World>> {
    cases!["success": one_verdict_for_two_ends, a_failure_after_success_is_none]
}

const RUNNING: [&str; 2] = ["Created=True", "Running=True"];
const SUCCEEDED: [&str; 3] = ["Created=True", "Running=False", "Succeeded=True"];

async fn running(world: &World, job: Manifest) -> Result<()> {
    world.submit(job).await?;
    world.wait_conditions("a", &RUNNING).await?;
    Ok(())
}

async fn the_normal_course(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1)).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    let seen = world.wait_conditions("a", &SUCCEEDED).await?;
    let ns = &world.namespace;
    equal(
        "conditions",
        seen.condition_lines("a"),
        [
            "Created=True TFJobCreated: TFJob a is created.".to_owned(),
            "Running=False TFJobRunning: TFJob a is running.".to_owned(),
            format!("Succeeded=True TFJobSucceeded: TFJob {ns}/a successfully completed."),
        ],
    )?;
    let status = seen.status("a");
    ensure!(status["completionTime"].is_string(), "no completionTime: {status}");
    ensure!(status["failure"].is_null(), "a failure is told: {status}");
    let told = format!("Normal TFJobSucceeded TFJob {ns}/a successfully completed.");
    world.wait_until("success is told", |seen| seen.told("a", &told)).await?;
    world.wait_services(&[]).await?;
    world.wait_until("success is counted", |seen| seen.counts("a", "Worker") == [0, 1, 0]).await?;
    Ok(())
}

/// `kubectl wait` believes a condition only of a status that answers the present generation.
async fn a_change_after_the_end_is_answered(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1)).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    world.wait_services(&[]).await?;
    world.set_replicas("a", "Worker", 3).await?;
    let answered = |seen: &Seen| {
        let generation = &seen.job("a")["metadata"]["generation"];
        generation == 2 && seen.status("a")["observedGeneration"] == *generation
    };
    world.wait_until("the change is answered", answered).await?;
    let told = "Warning TFJobAlreadyFinished";
    world.wait_until("it is said to do nothing", |seen| seen.told("a", told)).await?;
    world.stays_silent().await?;
    let seen = world.seen();
    equal("the conditions", seen.conditions("a"), SUCCEEDED)?;
    equal("the pods", seen.pods(), ["a-worker-0"])
}

async fn worker_zero_decides(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(3).ps(1)).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    // The others are stopped and no failure of the job.
    world.wait_pods(&["a-worker-0"]).await?;
    equal("still", world.seen().conditions("a"), SUCCEEDED)
}

async fn another_worker_does_not(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(2)).await?;
    world.kubelet.exit("a-worker-1", 0).await?;
    let seen =
        world.wait_until("it is recorded", |seen| seen.completed("a", "Worker") == "1").await?;
    equal("goes on", seen.conditions("a"), RUNNING)?;
    world.never_within(200, "the job ends", |seen| seen.finished("a")).await
}

async fn all_workers_when_asked(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(3).spec("successPolicy", "AllWorkers")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.kubelet.exit("a-worker-2", 0).await?;
    let seen =
        world.wait_until("two are recorded", |seen| seen.completed("a", "Worker") == "0,2").await?;
    equal("goes on", seen.conditions("a"), RUNNING)?;
    world.kubelet.exit("a-worker-1", 0).await?;
    let seen = world.wait_conditions("a", &SUCCEEDED).await?;
    equal("all", seen.completed("a", "Worker"), "0-2")
}

async fn the_chief_decides(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").chief().workers(2)).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.kubelet.exit("a-worker-1", 0).await?;
    let seen = world
        .wait_until("workers are counted", |seen| seen.counts("a", "Worker") == [0, 2, 0])
        .await?;
    equal("workers do not decide", seen.conditions("a"), RUNNING)?;
    world.kubelet.exit("a-chief-0", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    Ok(())
}

async fn the_master_decides(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").replicas("Master", 1).workers(1)).await?;
    world.kubelet.exit("a-master-0", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    Ok(())
}

async fn the_chief_outranks_all_workers(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").chief().workers(2).spec("successPolicy", "AllWorkers")).await?;
    world.kubelet.exit("a-chief-0", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    Ok(())
}

async fn a_chief_of_zero_is_absent(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").replicas("Chief", 0).workers(2)).await?;
    equal("pods", world.seen().pods(), ["a-worker-0", "a-worker-1"])?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    Ok(())
}

async fn parameter_servers_never_do(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).ps(2)).await?;
    world.kubelet.exit("a-ps-0", 0).await?;
    world.kubelet.exit("a-ps-1", 0).await?;
    let seen =
        world.wait_until("both are counted", |seen| seen.counts("a", "PS") == [0, 2, 0]).await?;
    equal("goes on", seen.conditions("a"), RUNNING)?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    Ok(())
}

/// A job in which nobody decides is done when everybody is.
async fn nobody_decides(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").ps(2)).await?;
    world.kubelet.exit("a-ps-0", 0).await?;
    let seen =
        world.wait_until("it is counted", |seen| seen.counts("a", "PS") == [1, 1, 0]).await?;
    equal("goes on", seen.conditions("a"), RUNNING)?;
    world.kubelet.exit("a-ps-1", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    Ok(())
}

async fn evaluators_never_do(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).evaluators(1)).await?;
    world.kubelet.exit("a-evaluator-0", 0).await?;
    let seen = world
        .wait_until("it is counted", |seen| seen.counts("a", "Evaluator") == [0, 1, 0])
        .await?;
    equal("goes on", seen.conditions("a"), RUNNING)?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    Ok(())
}

async fn a_completed_index_is_not_run_again(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(2).restart("OnFailure").spec("successPolicy", "AllWorkers");
    running(&world, job).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("it is recorded", |seen| seen.completed("a", "Worker") == "0").await?;
    world.kubelet.delete("a-worker-0", Some(0)).await?;
    world.wait_pods(&["a-worker-1"]).await?;
    world
        .never_within(400, "worker 0 runs again", |seen| !seen.pod("a-worker-0").is_null())
        .await?;
    equal("still counted", world.seen().counts("a", "Worker"), [1, 1, 0])?;
    world.kubelet.exit("a-worker-1", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    Ok(())
}

async fn success_is_final(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job = tfjob("a").workers(2).ps(1).run_policy("cleanPodPolicy", "None");
    running(&world, job).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    world.wait_services(&[]).await?;
    world.kubelet.exit("a-ps-0", 1).await?;
    world.kubelet.exit("a-worker-1", 1).await?;
    world
        .never_within(400, "the verdict changes", |seen| {
            seen.is("a", "Failed") || !seen.is("a", "Succeeded")
        })
        .await?;
    world.kubelet.delete("a-worker-1", Some(0)).await?;
    world
        .never_within(400, "a pod of a finished job comes back", |seen| {
            !seen.pod("a-worker-1").is_null()
        })
        .await
}

async fn all_workers_scaled_to_what_is_done(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(3).spec("successPolicy", "AllWorkers")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.kubelet.exit("a-worker-1", 0).await?;
    world.wait_until("they are recorded", |seen| seen.completed("a", "Worker") == "0-1").await?;
    world.set_replicas("a", "Worker", 2).await?;
    world.wait_until("nothing is left to do", |seen| seen.is("a", "Succeeded")).await?;
    no_line("no failure", &world.seen().events("a"), "Normal TFJobFailed")
}

/// Chief and parameter server end while nobody looks; both are seen in one pass.
async fn one_verdict_for_two_ends(world: World) -> Result<()> {
    let auto = world.kubelet.auto();
    let operator = world.start_operator(|_| ()).await?;
    running(&world, tfjob("a").chief().ps(1)).await?;
    operator.crash().await;
    world.kubelet.exit("a-ps-0", 1).await?;
    world.kubelet.exit("a-chief-0", 0).await?;
    let _operator = world.start_operator(|_| ()).await?;
    world.wait_until("the job ends", |seen| seen.finished("a")).await?;
    world
        .never_within(400, "two verdicts", |seen| {
            seen.is("a", "Succeeded") && seen.is("a", "Failed")
        })
        .await?;
    drop(auto);
    Ok(())
}

/// A worker that has completed is recorded; what happens to its pod later is no failure.
async fn a_failure_after_success_is_none(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let _operator = world.start_operator(|_| ()).await?;
    running(&world, tfjob("a").workers(2).spec("successPolicy", "AllWorkers")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("it is recorded", |seen| seen.completed("a", "Worker") == "0").await?;
    world.kubelet.drain("a-worker-0").await?;
    world.never_within(300, "the job fails", |seen| seen.is("a", "Failed")).await?;
    world.kubelet.exit("a-worker-1", 0).await?;
    world.wait_conditions("a", &SUCCEEDED).await?;
    Ok(())
}
