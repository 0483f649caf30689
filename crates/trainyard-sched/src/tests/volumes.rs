//! Claims and volumes: which nodes they allow, what is bound before the pods are, and what happens
//! when that fails.

use std::collections::BTreeMap;

use serde_json::{Value, from_value, json};

use super::world::{World, member, node_delta};
use crate::{BindClaim, ClaimWritten, Config, Decision, Delta, StorageDelta};

mod binding;
mod claims;
mod places;

const SELECTED: &str = "volume.kubernetes.io/selected-node";

/// A cluster with nodes of a zone each, and three classes: `csi` makes volumes when they are needed,
/// `local` has those that are there, `now` binds at once.
fn world(nodes: &[&str]) -> World {
    let mut world = World::with(Config { knows_volumes: true, ..Config::default() });
    for name in nodes {
        world.state.apply(node_delta(node(name, "8")));
    }
    for (name, provisioner, mode) in [
        ("csi", "disk.example.com", "WaitForFirstConsumer"),
        ("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        ("now", "disk.example.com", "Immediate"),
    ] {
        class(
            &mut world,
            json!({"metadata": {"name": name}, "provisioner": provisioner,
            "volumeBindingMode": mode}),
        );
    }
    world
}

fn node(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": format!("zone-{name}")}},
        "status": {"allocatable": {"cpu": cpu, "pods": "110"}},
    })
}

fn apply(world: &mut World, delta: StorageDelta) {
    world.state.apply(Delta::Storage(Box::new(delta)));
}

fn class(world: &mut World, value: Value) {
    apply(world, StorageDelta::Class(from_value(value).unwrap()));
}

fn claim_value(name: &str, class: &str) -> Value {
    json!({
        "metadata": {"namespace": "n", "name": name, "uid": format!("uid-{name}"),
            "resourceVersion": "1", "annotations": {}},
        "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}}},
        "status": {"phase": "Pending"},
    })
}

fn put_claim(world: &mut World, value: &Value) {
    apply(world, StorageDelta::Claim(from_value(value.clone()).unwrap()));
}

fn claim(world: &mut World, name: &str, class: &str) {
    put_claim(world, &claim_value(name, class));
}

fn volume_value(name: &str, at: &str, size: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {"disk": name}},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [at]},
            ]}]}}},
        "status": {"phase": "Available"},
    })
}

fn put_volume(world: &mut World, value: Value) {
    apply(world, StorageDelta::Volume(Box::new(from_value(value).unwrap())));
}

/// A claim has its volume.
fn bind(world: &mut World, name: &str, class: &str, volume: &str) {
    let mut value = claim_value(name, class);
    value["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    value["spec"]["volumeName"] = json!(volume);
    value["status"]["phase"] = json!("Bound");
    put_claim(world, &value);
}

/// A gang of which each member mounts the claim of its name, or all of them the one that is given.
fn gang(world: &mut World, name: &str, size: usize, shared: Option<&str>) {
    world.gang_with(name, 0, &json!({"minMember": size}), &json!({}));
    let now = world.now;
    for index in 0..size {
        let pod = format!("{name}-{index}");
        let mut value = member(&pod, name, now, &json!({"cpu": "1"}));
        let mounted = shared.unwrap_or(&pod);
        value["spec"]["volumes"] =
            json!([{"name": "v", "persistentVolumeClaim": {"claimName": mounted}}]);
        world.pod(value);
    }
}

fn bindings(decisions: &[Decision]) -> BTreeMap<String, BindClaim> {
    let binds = decisions.iter().filter_map(|decision| match decision {
        Decision::BindClaim(bind) => Some((bind.name.clone(), (**bind).clone())),
        _ => None,
    });
    binds.collect()
}

fn chosen(decisions: &[Decision]) -> BTreeMap<String, String> {
    let all = bindings(decisions).into_iter();
    all.filter_map(|(claim, bind)| Some((claim, bind.volume?.name))).collect()
}

fn written(world: &mut World, bind: &BindClaim, version: Option<u64>) {
    let BindClaim { namespace, name, uid, .. } = bind.clone();
    world.state.apply(Delta::ClaimWritten(ClaimWritten { namespace, name, uid, version }));
}
