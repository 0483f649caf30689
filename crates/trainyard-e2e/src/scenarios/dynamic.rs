//! Dynamic workers: they come and go without harm to the job.

use anyhow::Result;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::manifest::{Manifest, tfjob};
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["dynamic":
        runs_with_the_first_worker,
        a_lost_worker_is_no_failure,
        a_final_exit_code_is_no_failure,
        a_lost_parameter_server_is,
        workers_come_and_go,
        a_retryable_worker_comes_back,
    ]
}

fn dynamic() -> Manifest {
    tfjob("a").workers(2).ps(1).spec("enableDynamicWorker", true)
}

async fn runs_with_the_first_worker(world: World) -> Result<()> {
    world.submit(dynamic()).await?;
    world.wait_pods(&["a-ps-0", "a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start("a-worker-1").await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn a_lost_worker_is_no_failure(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(dynamic()).await?;
    world.wait_until("all run", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    world.kubelet.exit("a-worker-1", 1).await?;
    let seen = world
        .wait_until("its failure is counted", |seen| seen.counts("a", "Worker") == [1, 0, 1])
        .await?;
    equal("the job goes on", seen.conditions("a"), ["Created=True", "Running=True"])?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    Ok(())
}

async fn a_final_exit_code_is_no_failure(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(dynamic().restart("ExitCode")).await?;
    world.wait_until("all run", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    world.kubelet.exit("a-worker-1", 1).await?;
    world
        .wait_until("its failure is counted", |seen| seen.counts("a", "Worker") == [1, 0, 1])
        .await?;
    world.never_within(300, "the job fails", |seen| seen.is("a", "Failed")).await
}

async fn a_lost_parameter_server_is(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(dynamic()).await?;
    world.wait_until("all run", |seen| seen.counts("a", "PS") == [1, 0, 0]).await?;
    world.kubelet.exit("a-ps-0", 1).await?;
    world.wait_until("the job fails", |seen| seen.is("a", "Failed")).await?;
    Ok(())
}

async fn workers_come_and_go(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(dynamic()).await?;
    world.wait_until("all run", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    world.set_replicas("a", "Worker", 4).await?;
    let seen = world.wait_until("four run", |seen| seen.counts("a", "Worker") == [4, 0, 0]).await?;
    let ns = &world.namespace;
    let want = format!(
        "{{\"cluster\":{{\"worker\":{{\"3\":\"a-worker-3.{ns}.svc:2222\"}},\
         \"ps\":[\"a-ps-0.{ns}.svc:2222\"]}},\"task\":{{\"type\":\"worker\",\"index\":3}}}}"
    );
    equal("a newcomer knows itself", seen.env("a-worker-3", "TF_CONFIG"), Some(want.as_str()))?;
    world.set_replicas("a", "Worker", 1).await?;
    let seen = world.wait_pods(&["a-ps-0", "a-worker-0"]).await?;
    equal("no failure", seen.conditions("a"), ["Created=True", "Running=True"])
}

async fn a_retryable_worker_comes_back(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(dynamic().restart("ExitCode")).await?;
    let before =
        world.wait_until("all run", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    world.kubelet.exit("a-worker-1", 143).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    world.wait_until("all run", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    Ok(())
}
