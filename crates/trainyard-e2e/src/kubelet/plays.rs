//! The played kubelet held to the sequences of real ones: it publishes each of them, state by state.
//!
//! A sequence without a case fails a test.

use anyhow::Result;
use serde_json::{Value, json};

use super::sequence::{Recorder, is_played};
use super::{Kubelet, NODE};
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::world::World;

/// The pod of every case.
const POD: &str = "p";

/// One case for each sequence, named after it.
pub(crate) fn all() -> Vec<Case<World>> {
    cases!["kubelet":
        success,
        failure,
        restart_in_place,
        crash_loop,
        init_container,
        failed_init_container,
        image_that_cannot_be_pulled,
        deletion_with_grace,
        deletion_before_the_start,
        eviction_by_the_api,
        eviction_by_the_kubelet,
        eviction_whose_end_nobody_saw,
        eviction_for_node_pressure,
        node_shutdown,
        preemption,
        node_loss,
        node_reboot,
        node_reboot_without_restart,
        rejection_at_admission,
    ]
}

fn pod(policy: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD},
        "spec": {
            "restartPolicy": policy,
            "containers": [{"name": "tensorflow", "image": "example.com/train:1"}],
        },
    })
}

/// The same, put on a node by whoever makes it.
fn placed() -> Value {
    let mut pod = pod("Never");
    pod["spec"]["nodeName"] = NODE.into();
    pod
}

/// Makes the pod, plays its life, and compares what was seen of it.
async fn plays(
    world: &World,
    name: &str,
    pod: Value,
    life: impl AsyncFnOnce(&Kubelet) -> Result<()>,
) -> Result<()> {
    let recorder = Recorder::start(&world.rest, POD).await?;
    world.create(Resource::Pods, &pod).await?;
    life(&world.kubelet).await?;
    is_played(name, &recorder).await
}

/// The same of a pod that has started.
async fn goes_on(
    world: &World,
    name: &str,
    pod: Value,
    life: impl AsyncFnOnce(&Kubelet) -> Result<()>,
) -> Result<()> {
    plays(world, name, pod, async |kubelet| {
        kubelet.start(POD).await?;
        life(kubelet).await
    })
    .await
}

async fn success(world: World) -> Result<()> {
    goes_on(&world, "success", pod("Never"), async |kubelet| kubelet.exit(POD, 0).await).await
}

async fn failure(world: World) -> Result<()> {
    goes_on(&world, "failure", pod("Never"), async |kubelet| kubelet.exit(POD, 3).await).await
}

async fn restart_in_place(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| kubelet.restart_in_place(POD, 1).await;
    goes_on(&world, "restart_in_place", pod("OnFailure"), life).await
}

async fn crash_loop(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| kubelet.crash_loop(POD, 1).await;
    goes_on(&world, "crash_loop", pod("OnFailure"), life).await
}

/// A pod with an init container.
fn with_init() -> Value {
    let mut pod = pod("Never");
    pod["spec"]["initContainers"] = json!([{"name": "fetch", "image": "example.com/fetch:2"}]);
    pod
}

async fn init_container(world: World) -> Result<()> {
    goes_on(&world, "init_container", with_init(), async |_| Ok(())).await
}

async fn failed_init_container(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| kubelet.init_fails(POD, 4, "").await;
    plays(&world, "failed_init_container", with_init(), life).await
}

async fn image_that_cannot_be_pulled(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| kubelet.cannot_pull(POD, "Back-off pulling image").await;
    plays(&world, "image_that_cannot_be_pulled", pod("Never"), life).await
}

async fn deletion_with_grace(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| kubelet.delete_and_finish(POD).await;
    goes_on(&world, "deletion_with_grace", pod("Never"), life).await
}

async fn deletion_before_the_start(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| {
        kubelet.cannot_pull(POD, "Back-off pulling image").await?;
        kubelet.delete_and_finish(POD).await
    };
    plays(&world, "deletion_before_the_start", pod("Never"), life).await
}

async fn eviction_by_the_api(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| {
        kubelet.drain(POD).await?;
        kubelet.finish_termination(POD).await
    };
    goes_on(&world, "eviction_by_the_api", pod("Never"), life).await
}

async fn eviction_by_the_kubelet(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| kubelet.evict_for_its_storage(POD).await;
    goes_on(&world, "eviction_by_the_kubelet", pod("Never"), life).await
}

async fn eviction_whose_end_nobody_saw(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| kubelet.evict_unseen(POD).await;
    goes_on(&world, "eviction_whose_end_nobody_saw", pod("Never"), life).await
}

async fn eviction_for_node_pressure(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| kubelet.evict(POD, true).await;
    goes_on(&world, "eviction_for_node_pressure", pod("Never"), life).await
}

async fn node_shutdown(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| kubelet.shut_down(POD).await;
    goes_on(&world, "node_shutdown", pod("Never"), life).await
}

async fn preemption(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| {
        kubelet.preempt(POD).await?;
        kubelet.finish_termination(POD).await
    };
    goes_on(&world, "preemption", pod("Never"), life).await
}

async fn node_loss(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| kubelet.node_lost(POD).await;
    goes_on(&world, "node_loss", placed(), life).await
}

async fn node_reboot(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| {
        kubelet.lose_contact(POD).await?;
        kubelet.reboot(POD).await
    };
    goes_on(&world, "node_reboot", pod("OnFailure"), life).await
}

async fn node_reboot_without_restart(world: World) -> Result<()> {
    let life = async |kubelet: &Kubelet| {
        kubelet.lose_contact(POD).await?;
        kubelet.reboot(POD).await
    };
    goes_on(&world, "node_reboot_without_restart", pod("Never"), life).await
}

async fn rejection_at_admission(world: World) -> Result<()> {
    let message =
        "Node didn't have enough resource: cpu, requested: 64000, used: 0, capacity: 2000";
    let life = async |kubelet: &Kubelet| kubelet.reject(POD, "OutOfcpu", message).await;
    plays(&world, "rejection_at_admission", placed(), life).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubelet::sequence::tests::names;

    #[test]
    fn every_sequence_of_a_real_kubelet_is_played() {
        let name = |case: &Case<World>| case.name.rsplit('/').next().unwrap().to_owned();
        let mut played: Vec<_> = all().iter().map(name).collect();
        played.sort();
        assert_eq!(played, names());
    }
}
