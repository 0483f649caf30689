//! What the operator counts: every turn of a job once.

use std::time::Duration;

use anyhow::{Result, ensure};
use trainyard_operator::Metrics;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::rest::Resource;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["metrics": every_turn_once, no_write_too_many]
}

/// The value of a counter for a namespace; 0 when it is not there.
pub(super) fn counted(metrics: &Metrics, name: &str, namespace: &str) -> i64 {
    let wanted = format!("\"{namespace}\"");
    metrics
        .encode()
        .lines()
        .filter(|line| line.starts_with(name) && line.contains(&wanted))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok())
        .map(|value| format!("{value:.0}").parse().unwrap_or(-1))
        .sum()
}

async fn every_turn_once(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let operator = world.start_operator(|_| ()).await?;
    for name in ["a", "b", "c"] {
        world.submit(tfjob(name).workers(2).restart("ExitCode")).await?;
    }
    let before = world
        .wait_until("all run", |seen| ["a", "b", "c"].iter().all(|job| seen.is(job, "Running")))
        .await?;
    world.kubelet.exit("a-worker-1", 137).await?;
    world.wait_successor("a-worker-1", &before.uid("a-worker-1")).await?;
    world.wait_until("it runs again", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.kubelet.exit("b-worker-0", 0).await?;
    world.kubelet.exit("c-worker-0", 1).await?;
    world
        .wait_until("all end", |seen| ["a", "b", "c"].iter().all(|job| seen.finished(job)))
        .await?;
    let ns = &world.namespace;
    let turns = [
        ("training_operator_jobs_created_total", 3),
        ("training_operator_jobs_successful_total", 2),
        ("training_operator_jobs_failed_total", 1),
        ("training_operator_jobs_restarted_total", 1),
    ];
    // A turn is counted when its write is acknowledged; we may have seen the write before.
    let told = turns.map(|(name, _)| name);
    let all = || told.map(|name| counted(&operator.metrics, name, ns));
    for _ in 0..100 {
        if all() == turns.map(|(_, wanted)| wanted) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    equal("turns", all(), turns.map(|(_, wanted)| wanted))?;
    operator.stop().await?;
    // A new operator sees old jobs and counts none of them again.
    let operator = world.start_operator(|_| ()).await?;
    world.submit(tfjob("d").workers(1)).await?;
    world.wait_until("it runs", |seen| seen.is("d", "Running")).await?;
    let created = counted(&operator.metrics, "training_operator_jobs_created_total", ns);
    equal("created under the new operator", created, 1)
}

/// Two creations per replica and at most three status writes until a job of five replicas runs.
async fn no_write_too_many(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let _operator = world.start_operator(|options| options.planner.counts_delay_ms = 1_000).await?;
    world.submit(tfjob("a").workers(4).ps(1)).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    let seen =
        world.wait_until("all are counted", |seen| seen.counts("a", "Worker") == [4, 0, 0]).await?;
    let writes = seen.versions(Resource::Jobs, "a") - 1;
    ensure!(writes <= 3, "{writes} status writes until the job runs");
    equal("pods", seen.ever(Resource::Pods), 5)?;
    equal("services", seen.ever(Resource::Services), 5)?;
    for name in seen.services() {
        equal("writes of a service", seen.versions(Resource::Services, name), 1)?;
    }
    Ok(())
}
