//! The API server goes away and comes back. These need the control plane itself.

use anyhow::{Result, ensure};
use tokio::sync::OwnedMutexGuard;

use crate::check::equal;
use crate::control_plane::ControlPlane;
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::rest::Resource;
use crate::world::World;

/// A control plane that nobody else stops or starts.
type Plane = OwnedMutexGuard<ControlPlane>;

/// All of them.
pub(crate) fn all() -> Vec<Case<(World, Plane)>> {
    cases!["outage": nothing_is_lost_and_nothing_done_twice, in_the_middle_of_many_jobs]
}

async fn nothing_is_lost_and_nothing_done_twice(world: World, mut plane: Plane) -> Result<()> {
    let auto = world.kubelet.auto();
    let operator = world.start_operator(|_| ()).await?;
    world.submit(tfjob("a").workers(2).ps(1).restart("ExitCode")).await?;
    let before = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    plane.stop_api_server();
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    plane.start_api_server().await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    world.wait_until("the restart is counted", |seen| seen.restarts("a") == 1).await?;
    let seen = world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    equal("one restart", seen.restarts("a"), 1)?;
    equal("pods ever", seen.ever(Resource::Pods), 4)?;
    equal("services ever", seen.ever(Resource::Services), 3)?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.wait_services(&[]).await?;
    ensure!(operator.health.is_live(), "the operator did not survive");
    drop(auto);
    operator.stop().await
}

async fn in_the_middle_of_many_jobs(world: World, mut plane: Plane) -> Result<()> {
    let _auto = world.kubelet.auto();
    let operator = world.start_operator(|_| ()).await?;
    let names: Vec<String> = (0..10).map(|number| format!("job-{number}")).collect();
    for name in &names {
        world.submit(tfjob(name).workers(3)).await?;
    }
    plane.stop_api_server();
    plane.start_api_server().await?;
    let seen = world
        .wait_until("all jobs run", |seen| names.iter().all(|name| seen.is(name, "Running")))
        .await?;
    equal("pods ever", seen.ever(Resource::Pods), 30)?;
    equal("services ever", seen.ever(Resource::Services), 30)?;
    operator.stop().await
}
