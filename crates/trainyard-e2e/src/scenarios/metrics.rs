//! What the operator counts: every turn of a job once.

use anyhow::Result;
use trainyard_operator::Metrics;

use super::{Scenario, scenarios};
use crate::check::equal;
use crate::manifest::tfjob;
use crate::world::World;

pub(super) fn all() -> Vec<Scenario> {
    scenarios!["metrics": every_turn_once]
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
    for (name, wanted) in [
        ("training_operator_jobs_created_total", 3),
        ("training_operator_jobs_successful_total", 2),
        ("training_operator_jobs_failed_total", 1),
        ("training_operator_jobs_restarted_total", 1),
    ] {
        equal(name, counted(&operator.metrics, name, ns), wanted)?;
    }
    operator.stop().await?;
    // A new operator sees old jobs and counts none of them again.
    let operator = world.start_operator(|_| ()).await?;
    world.submit(tfjob("d").workers(1)).await?;
    world.wait_until("it runs", |seen| seen.is("d", "Running")).await?;
    let created = counted(&operator.metrics, "training_operator_jobs_created_total", ns);
    equal("created under the new operator", created, 1)
}
