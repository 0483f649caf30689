//! Claims that get their volumes with their pods: what the scheduler writes, and what it waits for.
//!
//! Where the server has nobody who binds claims and makes volumes, that is played here.

use std::time::Duration;

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::rest::{Resource, Rest};
use crate::seen::{Seen, text};
use crate::volcano::{Floor, Gang, SCENE};

const VOLUMES: &str = "/api/v1/persistentvolumes";
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";

pub(super) fn all() -> Vec<Case<Floor>> {
    cases!["scheduler/volumes":
        a_volume_that_is_there_is_bound_with_its_pod,
        a_volume_is_made_for_the_node_of_its_pod,
        a_gang_goes_elsewhere_where_its_volume_cannot_be_made,
        a_claim_that_is_not_bound_at_once_is_waited_for,
        what_is_not_honoured_is_refused_by_name,
    ]
}

/// A class of this floor whose claims wait for their first pod.
pub(super) async fn class(floor: &Floor, provisioner: &str) -> Result<String> {
    let name = floor.own("waits");
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
        "provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer",
    });
    let classes = "/apis/storage.k8s.io/v1/storageclasses";
    floor.rest.send(Method::POST, classes, Some(&class)).await?;
    Ok(name)
}

pub(super) async fn claim(floor: &Floor, name: &str, class: &str) -> Result<()> {
    claim_in_mode(floor, name, class, "Filesystem").await
}

async fn claim_in_mode(floor: &Floor, name: &str, class: &str, mode: &str) -> Result<()> {
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class, "volumeMode": mode,
            "resources": {"requests": {"storage": "1Gi"}}},
    });
    floor.create(Resource::Claims, &claim).await.map(drop)
}

fn volume(floor: &Floor, name: &str, class: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": floor.own(name), "labels": {SCENE: floor.namespace}},
        "spec": {
            "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": class, "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
            ]}]}},
        },
    })
}

/// Makes a volume that may be bound.
async fn available(floor: &Floor, volume: &Value) -> Result<()> {
    floor.rest.send(Method::POST, VOLUMES, Some(volume)).await?;
    let path = format!("{VOLUMES}/{}/status", text(&volume["metadata"]["name"]));
    let status = json!({"status": {"phase": "Available"}});
    floor.rest.send(Method::PATCH, &path, Some(&status)).await?;
    Ok(())
}

fn mounts(claim: &str) -> Value {
    json!([{"name": "disk", "persistentVolumeClaim": {"claimName": claim}}])
}

/// Binds claims to the volumes that are kept for them and makes volumes for claims that name a node,
/// until it is dropped.
pub(super) fn binder(floor: &Floor) -> JoinSet<()> {
    let (rest, scene) = (floor.rest.clone(), floor.namespace.clone());
    let mut running = JoinSet::new();
    running.spawn(async move {
        loop {
            // Somebody else may be faster; the next round looks again.
            if let Err(error) = bind_all(&rest, &scene).await {
                tracing::debug!(%error, "a claim was not bound");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    running
}

async fn bind_all(rest: &Rest, scene: &str) -> Result<()> {
    let claims = rest.list(Resource::Claims).await?;
    let volumes = rest.send(Method::GET, VOLUMES, None).await?;
    let items = |list: &Value| list["items"].as_array().cloned().unwrap_or_default();
    for claim in items(&claims) {
        let name = text(&claim["metadata"]["name"]);
        let annotations = &claim["metadata"]["annotations"];
        let volumes = items(&volumes);
        let own = volumes
            .iter()
            .find(|volume| volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]);
        let Some(volume) = own else {
            let node = annotations[SELECTED_NODE].as_str();
            if let Some(node) = node.filter(|_| claim["spec"]["volumeName"].is_null()) {
                rest.send(Method::POST, VOLUMES, Some(&made_for(&claim, node, scene))).await?;
            }
            continue;
        };
        let volume_name = text(&volume["metadata"]["name"]);
        if volume["metadata"]["labels"][SCENE] != *scene {
            // What others have made is to be seen on this floor.
            let label = json!({"metadata": {"labels": {SCENE: scene}}});
            let path = format!("{VOLUMES}/{volume_name}");
            rest.send(Method::PATCH, &path, Some(&label)).await?;
        }
        if annotations[BIND_COMPLETED].is_null() {
            let bound = json!({"metadata": {"annotations": {BIND_COMPLETED: "yes"}},
                "spec": {"volumeName": volume_name}});
            rest.merge(Resource::Claims, name, &bound).await?;
            let status = json!({"status": {"phase": "Bound"}});
            rest.merge(Resource::Claims, &format!("{name}/status"), &status).await?;
        }
    }
    Ok(())
}

/// The volume that a provisioner makes.
fn made_for(claim: &Value, node: &str, scene: &str) -> Value {
    let (spec, metadata) = (&claim["spec"], &claim["metadata"]);
    json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": format!("pvc-{}", text(&metadata["uid"])), "labels": {SCENE: scene}},
        "spec": {
            "capacity": spec["resources"]["requests"], "accessModes": spec["accessModes"],
            "storageClassName": spec["storageClassName"], "volumeMode": spec["volumeMode"],
            "hostPath": {"path": "/made"},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"], "name": metadata["name"],
                "uid": metadata["uid"]},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]},
            ]}]}},
        },
    })
}

async fn a_volume_that_is_there_is_bound_with_its_pod(floor: Floor) -> Result<()> {
    let [a, b] =
        [floor.node("a", json!({"cpu": "8"})).await?, floor.node("b", json!({"cpu": "2"})).await?];
    let class = class(&floor, "kubernetes.io/no-provisioner").await?;
    let _binder = binder(&floor);
    claim(&floor, "one", &class).await?;
    floor.gang(Gang::new("one", 2).pod("volumes", mounts("one"))).await?;
    floor.waits("one-0", "node(s) didn't find available persistent volumes to bind").await?;
    floor.stays_placed(&[]).await?;
    available(&floor, &volume(&floor, "disk-b", &class, &b)).await?;
    let seen = floor.placed(&["one-0", "one-1"]).await?;
    equal("beside its volume", seen.node_of("one-0"), b.as_str())?;
    equal("the other too", seen.node_of("one-1"), b.as_str())?;
    // The volume is the first claim's now.
    claim(&floor, "two", &class).await?;
    floor.gang(Gang::new("two", 1).pod("volumes", mounts("two"))).await?;
    floor.waits("two-0", "didn't find available persistent volumes to bind").await?;
    available(&floor, &volume(&floor, "disk-a", &class, &a)).await?;
    let seen = floor.placed(&["one-0", "one-1", "two-0"]).await?;
    equal("beside its volume", seen.node_of("two-0"), a.as_str())
}

async fn a_volume_is_made_for_the_node_of_its_pod(floor: Floor) -> Result<()> {
    let [_, b] =
        [floor.node("a", json!({"cpu": "1"})).await?, floor.node("b", json!({"cpu": "2"})).await?];
    let class = class(&floor, "disk.example.com").await?;
    let _binder = binder(&floor);
    claim(&floor, "data", &class).await?;
    floor.gang(Gang::new("one", 2).pod("volumes", mounts("data"))).await?;
    let seen = floor.placed(&["one-0", "one-1"]).await?;
    equal("where both have room", seen.node_of("one-0"), b.as_str())?;
    equal("together", seen.node_of("one-1"), b.as_str())
}

async fn a_gang_goes_elsewhere_where_its_volume_cannot_be_made(floor: Floor) -> Result<()> {
    let nodes =
        [floor.node("a", json!({"cpu": "2"})).await?, floor.node("b", json!({"cpu": "2"})).await?];
    let class = class(&floor, "disk.example.com").await?;
    // Our own server makes folders at once, wherever; for a device it waits as others do.
    claim_in_mode(&floor, "data", &class, "Block").await?;
    floor.gang(Gang::new("one", 2).pod("volumes", mounts("data"))).await?;
    let selected = |seen: &Seen| {
        let claim = seen.object(Resource::Claims, "data");
        text(&claim["metadata"]["annotations"][SELECTED_NODE]).to_owned()
    };
    let seen = floor.wait_until("a node is chosen", |seen| !selected(seen).is_empty()).await?;
    let first = selected(&seen);
    // Nobody is bound before the volume is there.
    floor.stays_placed(&[]).await?;
    let given_up = json!({"metadata": {"annotations": {SELECTED_NODE: null}}});
    floor.rest.merge(Resource::Claims, "data", &given_up).await?;
    let is_other = |seen: &Seen| ![String::new(), first.clone()].contains(&selected(seen));
    floor.wait_until("another node is chosen", is_other).await?;
    let _binder = binder(&floor);
    let seen = floor.placed(&["one-0", "one-1"]).await?;
    let other = nodes.iter().find(|node| **node != first).map(String::as_str);
    equal("where it could be made", Some(seen.node_of("one-0")), other)?;
    equal("together", seen.node_of("one-1"), seen.node_of("one-0"))
}

async fn a_claim_that_is_not_bound_at_once_is_waited_for(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "8"})).await?;
    // Without a class nobody makes a volume.
    claim(&floor, "data", "").await?;
    floor.gang(Gang::new("one", 1).pod("volumes", mounts("data"))).await?;
    floor.waits("one-0", "pod has unbound immediate PersistentVolumeClaims").await?;
    equal("constraint", &floor.explain("one").await?["constraint"], "claim")?;
    floor.stays_placed(&[]).await
}

async fn what_is_not_honoured_is_refused_by_name(floor: Floor) -> Result<()> {
    floor.node("a", json!({"cpu": "8"})).await?;
    let disk = json!([{"name": "disk", "iscsi":
        {"targetPortal": "192.0.2.1:3260", "iqn": "iqn.2001-04.com.example:disk", "lun": 0}}]);
    floor.gang(Gang::new("one", 1).pod("volumes", disk)).await?;
    floor.waits("one-0", "iscsi, rbd cannot be honoured by this scheduler").await?;
    equal("constraint", &floor.explain("one").await?["constraint"], "unsupported")?;
    floor.stays_placed(&[]).await
}
