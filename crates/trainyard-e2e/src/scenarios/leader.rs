//! Several operators, one lease: exactly one acts.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tokio::time::Instant;
use trainyard_operator::{LeaderOptions, Options};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::scenarios::metrics::counted;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["leader": the_other_takes_over_after_a_crash, a_stop_hands_over, a_deposed_one_ends]
}

/// The operator's own namespace and lease: its rights on leases end there.
const HOME: &str = "kubeflow";
const LEASE: &str = "1ca428e5.training-operator.kubeflow.org";

fn lease(who: &str, seconds: u64) -> impl FnOnce(&mut Options) + use<> {
    let mut leader = LeaderOptions::new(HOME, LEASE, who);
    leader.lease_duration = Duration::from_secs(seconds);
    leader.renew_deadline = Duration::from_millis(seconds * 600);
    leader.retry_period = Duration::from_millis(200);
    move |options| options.leader = Some(leader)
}

async fn runs(world: &World, job: &str) -> Result<()> {
    world.submit(tfjob(job).workers(1)).await?;
    world.wait_conditions(job, &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn the_other_takes_over_after_a_crash(world: World) -> Result<()> {
    let _turn = world.turn().await;
    let _auto = world.kubelet.auto();
    let first = world.start_operator(lease("first", 3)).await?;
    runs(&world, "a").await?;
    let second = world.start_operator(lease("second", 3)).await?;
    runs(&world, "b").await?;
    let ns = &world.namespace;
    let created = "training_operator_jobs_created_total";
    equal("the first acts", counted(&first.metrics, created, ns), 2)?;
    equal("the second does not", counted(&second.metrics, created, ns), 0)?;
    first.crash().await;
    let crashed = Instant::now();
    runs(&world, "c").await?;
    let took = crashed.elapsed();
    ensure!(took < Duration::from_secs(10), "a lease of 3 s was taken over after {took:?}");
    equal("now the second acts", counted(&second.metrics, created, ns), 1)?;
    world.wait_until("old jobs are looked after", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("to their end", |seen| seen.is("a", "Succeeded")).await?;
    second.stop().await
}

async fn a_stop_hands_over(world: World) -> Result<()> {
    let _turn = world.turn().await;
    let _auto = world.kubelet.auto();
    let first = world.start_operator(lease("first", 60)).await?;
    runs(&world, "a").await?;
    let second = world.start_operator(lease("second", 60)).await?;
    first.stop().await?;
    let stopped = Instant::now();
    runs(&world, "b").await?;
    let took = stopped.elapsed();
    ensure!(took < Duration::from_secs(20), "a released lease was taken after {took:?}");
    second.stop().await
}

async fn a_deposed_one_ends(world: World) -> Result<()> {
    let _turn = world.turn().await;
    let _auto = world.kubelet.auto();
    let mut operator = world.start_operator(lease("first", 2)).await?;
    runs(&world, "a").await?;
    let path = format!("/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/{LEASE}");
    let thief = json!({"spec": {
        "holderIdentity": "somebody else", "leaseDurationSeconds": 3600,
        "renewTime": "2099-01-01T00:00:00.000000Z",
    }});
    world.rest.send(Method::PATCH, &path, Some(&thief)).await.context("taking the lease away")?;
    operator.ended().await?;
    world.submit(tfjob("b").workers(1)).await?;
    world
        .never_within(500, "it acts without the lease", |seen| !seen.status("b").is_null())
        .await?;
    world.rest.send(Method::DELETE, &path, None).await.context("removing the lease")?;
    Ok(())
}
