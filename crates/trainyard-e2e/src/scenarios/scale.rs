//! Replicas are added and taken away while a job runs.

use anyhow::{Result, ensure};
use http::Method;
use serde_json::json;

use crate::check::{equal, no_line};
use crate::harness::{Case, cases};
use crate::manifest::{Manifest, tfjob};
use crate::rest::Resource;
use crate::seen::text;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["scale":
        up,
        down,
        parameter_servers_down,
        to_zero_and_back,
        no_replica_at_all_waits,
        through_the_subresource,
        a_type_is_added,
        a_type_is_taken_away,
        down_with_a_silent_kubelet,
        up_after_down_is_a_fresh_replica,
    ]
}

const RUNNING: [&str; 2] = ["Created=True", "Running=True"];

async fn running(world: &World, job: Manifest) -> Result<()> {
    world.submit(job).await?;
    world.wait_conditions("a", &RUNNING).await?;
    Ok(())
}

async fn up(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).ps(1)).await?;
    let before = world.seen();
    world.set_replicas("a", "Worker", 3).await?;
    let names = ["a-ps-0", "a-worker-0", "a-worker-1", "a-worker-2"];
    world.wait_services(&names).await?;
    let seen = world.wait_pods(&names).await?;
    equal("old pods stay", seen.uid("a-worker-0"), before.uid("a-worker-0"))?;
    let seen =
        world.wait_until("all are counted", |seen| seen.counts("a", "Worker") == [3, 0, 0]).await?;
    equal("it runs all the while", seen.conditions("a"), RUNNING)
}

async fn down(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(4)).await?;
    let before = world.seen();
    world.set_replicas("a", "Worker", 2).await?;
    let names = ["a-worker-0", "a-worker-1"];
    world.wait_services(&names).await?;
    world.wait_pods(&names).await?;
    let seen =
        world.wait_until("two are counted", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    equal("the others stay", seen.uid("a-worker-1"), before.uid("a-worker-1"))?;
    equal("no failure", seen.conditions("a"), RUNNING)?;
    equal("no restart", seen.restarts("a"), 0)?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    no_line("restarts", &world.seen().events("a"), "Warning TFJobRestarting")
}

async fn parameter_servers_down(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).ps(3)).await?;
    world.set_replicas("a", "PS", 1).await?;
    world.wait_services(&["a-ps-0", "a-worker-0"]).await?;
    let seen = world.wait_pods(&["a-ps-0", "a-worker-0"]).await?;
    equal("no failure", seen.conditions("a"), RUNNING)
}

async fn to_zero_and_back(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(2).ps(1)).await?;
    world.set_replicas("a", "Worker", 0).await?;
    world.wait_services(&["a-ps-0"]).await?;
    world.wait_pods(&["a-ps-0"]).await?;
    world.never_within(300, "an empty job ends", |seen| seen.finished("a")).await?;
    world.set_replicas("a", "Worker", 2).await?;
    world.wait_pods(&["a-ps-0", "a-worker-0", "a-worker-1"]).await?;
    world.wait_until("both are counted", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    Ok(())
}

async fn no_replica_at_all_waits(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(0)).await?;
    world.wait_conditions("a", &["Created=True"]).await?;
    world
        .never_within(300, "something happens", |seen| {
            seen.conditions("a") != ["Created=True"]
                || !seen.pods().is_empty()
                || !seen.services().is_empty()
        })
        .await?;
    world.set_replicas("a", "Worker", 1).await?;
    world.wait_conditions("a", &RUNNING).await?;
    Ok(())
}

async fn through_the_subresource(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1)).await?;
    world.scale("a", 3).await?;
    world.wait_pods(&["a-worker-0", "a-worker-1", "a-worker-2"]).await?;
    world.wait_until("all are counted", |seen| seen.counts("a", "Worker") == [3, 0, 0]).await?;
    let path = format!("{}/a/scale", world.rest.path(Resource::Jobs));
    let scale = world.rest.send(Method::GET, &path, None).await?;
    equal("asked for", &scale["spec"]["replicas"], 3)?;
    equal("there", &scale["status"]["replicas"], 3)?;
    let selector = text(&scale["status"]["selector"]);
    let path = format!(
        "{}?labelSelector={}",
        world.rest.path(Resource::Pods),
        selector.replace('=', "%3D").replace(',', "%2C").replace('/', "%2F")
    );
    ensure!(!selector.is_empty(), "no selector for autoscalers: {scale}");
    let pods = world.rest.send(Method::GET, &path, None).await?;
    equal("pods by the selector", pods["items"].as_array().map(Vec::len), Some(3))
}

async fn a_type_is_added(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1)).await?;
    let evaluator = tfjob("a").evaluators(1).json();
    let specs = evaluator["spec"]["tfReplicaSpecs"].clone();
    world.patch_spec("a", json!({"tfReplicaSpecs": specs})).await?;
    world.wait_services(&["a-evaluator-0", "a-worker-0"]).await?;
    world.wait_pods(&["a-evaluator-0", "a-worker-0"]).await?;
    world.wait_until("it is counted", |seen| seen.counts("a", "Evaluator") == [1, 0, 0]).await?;
    Ok(())
}

async fn a_type_is_taken_away(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(1).ps(2)).await?;
    world.patch_spec("a", json!({"tfReplicaSpecs": {"PS": null}})).await?;
    world.wait_services(&["a-worker-0"]).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    let seen =
        world.wait_until("its counts go", |seen| seen.counts("a", "PS") == [0, 0, 0]).await?;
    equal("no failure", seen.conditions("a"), RUNNING)
}

async fn down_with_a_silent_kubelet(world: World) -> Result<()> {
    world.submit(tfjob("a").workers(2)).await?;
    world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    world.kubelet.start_all(&["a-worker-0", "a-worker-1"]).await?;
    world.wait_conditions("a", &RUNNING).await?;
    world.set_replicas("a", "Worker", 1).await?;
    world
        .wait_until("the surplus pod is being deleted", |seen| seen.live_pods() == ["a-worker-0"])
        .await?;
    // A terminating pod that still runs is no failure of the job.
    world.never_within(400, "the job fails", |seen| seen.conditions("a") != RUNNING).await?;
    world.kubelet.finish_termination_with("a-worker-1", 137).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    equal("still", world.seen().conditions("a"), RUNNING)
}

async fn up_after_down_is_a_fresh_replica(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    running(&world, tfjob("a").workers(2)).await?;
    let before = world.seen().uid("a-worker-1");
    world.set_replicas("a", "Worker", 1).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    world.set_replicas("a", "Worker", 2).await?;
    let seen = world.wait_pods(&["a-worker-0", "a-worker-1"]).await?;
    ensure!(seen.uid("a-worker-1") != before, "a new pod under the old name");
    world.wait_until("both are counted", |seen| seen.counts("a", "Worker") == [2, 0, 0]).await?;
    Ok(())
}
