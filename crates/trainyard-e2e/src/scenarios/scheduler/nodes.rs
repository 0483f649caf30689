//! Which nodes a pod may use, and what comes and goes among them.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::Resource;
use crate::volcano::{Floor, Gang, SCENE};

pub(super) fn all() -> Vec<Case<Floor>> {
    cases!["scheduler/nodes":
        a_cordoned_node_is_left_alone,
        taints_and_tolerations,
        selectors_and_affinity,
        ports_of_the_host,
        devices,
        gangs_lie_together,
        what_others_have_bound_counts,
        a_refused_pod_is_no_loss,
        a_lost_node_takes_nobody,
        a_new_node_is_used_at_once,
        where_the_volume_is,
        a_claim_that_is_not_there,
    ]
}

async fn a_cordoned_node_is_left_alone(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "4"})).await?;
    floor.edit_node("a", json!({"spec": {"unschedulable": true}})).await?;
    floor.gang(Gang::new("one", 1)).await?;
    floor.waits("one-0", "unschedulable").await?;
    floor.stays_placed(&[]).await?;
    floor.edit_node("a", json!({"spec": {"unschedulable": false, "taints": []}})).await?;
    floor.placed(&["one-0"]).await.map(drop)
}

async fn taints_and_tolerations(floor: Floor) -> Result<()> {
    let taints = json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]);
    floor.node_with("a", json!({"cpu": "4"}), json!({}), taints).await?;
    floor.gang(Gang::new("plain", 1)).await?;
    let tolerations = json!([{"key": "gpu", "operator": "Exists"}]);
    floor.gang(Gang::new("meant", 1).pod("tolerations", tolerations)).await?;
    floor.placed(&["meant-0"]).await?;
    floor.waits("plain-0", "untolerated taint").await?;
    floor.stays_placed(&["meant-0"]).await
}

async fn selectors_and_affinity(floor: Floor) -> Result<()> {
    let [a, b] = [
        floor.node_with("a", json!({"cpu": "4"}), json!({"zone": "x"}), json!([])).await?,
        floor.node_with("b", json!({"cpu": "4"}), json!({"zone": "y"}), json!([])).await?,
    ];
    let near = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [
            {"key": "zone", "operator": "NotIn", "values": ["x"]},
        ]}],
    }}});
    floor.gang(Gang::new("one", 1).pod("nodeSelector", json!({"zone": "x"}))).await?;
    floor.gang(Gang::new("two", 1).pod("affinity", near)).await?;
    floor.gang(Gang::new("three", 1).pod("nodeSelector", json!({"zone": "z"}))).await?;
    let seen = floor.placed(&["one-0", "two-0"]).await?;
    equal("by selector", seen.node_of("one-0"), a.as_str())?;
    equal("by affinity", seen.node_of("two-0"), b.as_str())?;
    floor.waits("three-0", "2 node(s) didn't match Pod's node affinity/selector").await.map(drop)
}

async fn ports_of_the_host(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "4"})).await?;
    let ports = json!([{"containerPort": 2222, "hostPort": 2222}]);
    floor.gang(Gang::new("one", 1).pod("ports", ports.clone())).await?;
    floor.placed(&["one-0"]).await?;
    floor.gang(Gang::new("two", 1).pod("ports", ports)).await?;
    floor.waits("two-0", "node(s) didn't have free ports for the requested pod ports").await?;
    floor.node("b", json!({"cpu": "4"})).await?;
    floor.placed(&["one-0", "two-0"]).await.map(drop)
}

async fn devices(floor: Floor) -> Result<()> {
    let [_, gpu] = [
        floor.node("a", json!({"cpu": "4"})).await?,
        floor.node("b", json!({"cpu": "4", "nvidia.com/gpu": "2"})).await?,
    ];
    let asks = json!({"cpu": "1", "nvidia.com/gpu": "1"});
    let with_gpus = |name: &str, pods| {
        Gang::new(name, pods).asks(asks.clone()).limits(json!({"nvidia.com/gpu": "1"}))
    };
    floor.gang(with_gpus("one", 2)).await?;
    let seen = floor.placed(&["one-0", "one-1"]).await?;
    equal("where they are", seen.node_of("one-1"), gpu.as_str())?;
    floor.gang(with_gpus("two", 1)).await?;
    floor.waits("two-0", "Insufficient nvidia.com/gpu").await?;
    let why = floor.explain("two").await?;
    equal("short of", &why["shortages"][0]["resource"], "nvidia.com/gpu")?;
    equal("who has it", &why["holders"][0]["pods"], 2)
}

async fn gangs_lie_together(floor: Floor) -> Result<()> {
    for name in ["a", "b", "c"] {
        floor.node(name, json!({"cpu": "4"})).await?;
    }
    floor.gang(Gang::new("one", 3)).await?;
    let seen = floor.placed(&["one-0", "one-1", "one-2"]).await?;
    equal("the second beside the first", seen.node_of("one-1"), seen.node_of("one-0"))?;
    equal("the third too", seen.node_of("one-2"), seen.node_of("one-0"))
}

async fn what_others_have_bound_counts(floor: Floor) -> Result<()> {
    let node = floor.node("a", json!({"cpu": "2"})).await?;
    let other = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "other"},
        "spec": {"schedulerName": "somebody-else", "containers": [{"name": "tensorflow",
            "image": "example.com/train:1", "resources": {"requests": {"cpu": "1"}}}]},
    });
    floor.create(Resource::Pods, &other).await?;
    floor.kubelet.bind("other", &node).await?;
    floor.wait_until("it is bound", |seen| seen.node_of("other") == node).await?;
    floor.gang(Gang::new("one", 2)).await?;
    floor.waits("one-0", "Insufficient cpu").await?;
    floor.stays_placed(&["other"]).await?;
    floor.kubelet.delete("other", Some(0)).await?;
    floor.placed(&["one-0", "one-1"]).await.map(drop)
}

async fn a_refused_pod_is_no_loss(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "2"})).await?;
    floor.gang(Gang::new("one", 1)).await?;
    floor.placed(&["one-0"]).await?;
    let message = "Node didn't have enough resource: cpu";
    floor.kubelet.reject("one-0", "OutOfcpu", message).await?;
    floor.placed(&[]).await?;
    // What the pod asked for is free again; the node is used again after a while, not at once.
    floor.gang(Gang::new("two", 2)).await?;
    floor.node("b", json!({"cpu": "2"})).await?;
    floor.placed(&["two-0", "two-1"]).await.map(drop)
}

async fn a_lost_node_takes_nobody(floor: Floor) -> Result<()> {
    let [_, b] =
        [floor.node("a", json!({"cpu": "2"})).await?, floor.node("b", json!({"cpu": "1"})).await?];
    floor.gang(Gang::new("one", 2)).await?;
    floor.placed(&["one-0", "one-1"]).await?;
    floor.lose_node("a").await?;
    floor.gang(Gang::new("two", 1)).await?;
    let seen = floor.placed(&["one-0", "one-1", "two-0"]).await?;
    equal("on the other", seen.node_of("two-0"), b.as_str())?;
    floor.gang(Gang::new("three", 1)).await?;
    floor.waits("three-0", "node.kubernetes.io/unreachable").await.map(drop)
}

async fn a_new_node_is_used_at_once(floor: Floor) -> Result<()> {
    floor.gang(Gang::new("one", 2)).await?;
    floor.waits("one-0", "no").await?;
    floor.node("a", json!({"cpu": "1"})).await?;
    floor.stays_placed(&[]).await?;
    floor.node("b", json!({"cpu": "1"})).await?;
    floor.placed(&["one-0", "one-1"]).await.map(drop)
}

/// A volume that only one node reaches, and a claim that has it.
async fn volume_on(floor: &Floor, node: &str) -> Result<()> {
    let volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": floor.own("disk"), "labels": {SCENE: floor.namespace}},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": "none", "local": {"path": "/disk"},
            "claimRef": {"namespace": floor.namespace, "name": "disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
            ]}]}},
        },
    });
    let volumes = "/api/v1/persistentvolumes";
    floor.rest.send(Method::POST, volumes, Some(&volume)).await?;
    floor.create(Resource::Claims, &claim(floor)).await.map(drop)
}

fn claim(floor: &Floor) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        // Not every server has somebody who binds it.
        "metadata": {"name": "disk", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "volumeName": floor.own("disk"), "resources": {"requests": {"storage": "1Gi"}}},
    })
}

fn mounts_it() -> Value {
    json!([{"name": "disk", "persistentVolumeClaim": {"claimName": "disk"}}])
}

async fn where_the_volume_is(floor: Floor) -> Result<()> {
    let [_, b] =
        [floor.node("a", json!({"cpu": "8"})).await?, floor.node("b", json!({"cpu": "2"})).await?];
    volume_on(&floor, &b).await?;
    floor.gang(Gang::new("one", 2).pod("volumes", mounts_it())).await?;
    let seen = floor.placed(&["one-0", "one-1"]).await?;
    equal("beside its volume", seen.node_of("one-0"), b.as_str())?;
    floor.gang(Gang::new("two", 1).pod("volumes", mounts_it())).await?;
    floor.waits("two-0", "1 node(s) had volume node affinity conflict").await.map(drop)
}

async fn a_claim_that_is_not_there(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "8"})).await?;
    floor.gang(Gang::new("one", 1).pod("volumes", mounts_it())).await?;
    floor.waits("one-0", "persistentvolumeclaim \"disk\" not found").await?;
    equal("constraint", &floor.explain("one").await?["constraint"], "claim")?;
    floor.stays_placed(&[]).await
}
