//! Several schedulers, one lease: exactly one acts.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use trainyard_operator::LeaderOptions;
use trainyard_operator::scheduler::Options;

use crate::harness::{Case, cases};
use crate::volcano::{Floor, Gang, quick_scheduler};
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["scheduler/leader": the_other_takes_over_after_a_crash]
}

/// The scheduler's own namespace and lease: its rights on leases end there.
const HOME: &str = "kubeflow";
const LEASE: &str = "trainyard-scheduler";

fn with_lease(mut options: Options, who: &str) -> Options {
    let mut leader = LeaderOptions::new(HOME, LEASE, who);
    leader.lease_duration = Duration::from_secs(3);
    leader.renew_deadline = Duration::from_millis(1800);
    leader.retry_period = Duration::from_millis(200);
    options.leader = Some(leader);
    options
}

async fn the_other_takes_over_after_a_crash(world: World) -> Result<()> {
    let _turn = world.turn().await;
    let first = |options: &mut Options| *options = with_lease(options.clone(), "first");
    let mut floor = Floor::open_with(world, first).await?;
    floor.node("a", json!({"cpu": "4"})).await?;
    floor.gang(Gang::new("one", 2)).await?;
    floor.placed(&["one-0", "one-1"]).await?;
    let _second = floor.another_scheduler(with_lease(quick_scheduler(), "second"));
    floor.crash_scheduler().await;
    floor.gang(Gang::new("two", 2)).await?;
    floor.placed(&["one-0", "one-1", "two-0", "two-1"]).await.map(drop)
}
