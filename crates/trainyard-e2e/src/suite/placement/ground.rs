//! The nodes, and what is on them and around them.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use super::NAMESPACE;
use super::rows::claim;
use crate::rest::Rest;
use crate::seen::text;

/// `a` has devices, `b` a taint, `c` is cordoned, `d` is small, `e` has no zone and drives pods out,
/// `f` has what takes more than it says.
pub(super) const NODES: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
pub(super) const VOLUMES: &str = "/api/v1/persistentvolumes";
/// Another namespace with pods.
const ELSEWHERE: &str = "elsewhere";
const STORAGE: &str = "/apis/storage.k8s.io/v1";
const DRIVER: &str = "disk.example.com";
const IMAGE: &str = "example.com/c:1";

async fn post(rest: &Rest, path: &str, object: Value) -> Result<()> {
    rest.send(Method::POST, path, Some(&object)).await?;
    Ok(())
}

/// Makes the namespaces, the nodes, and pods that are there already.
pub(super) async fn furnish(rest: &Rest) -> Result<()> {
    for (name, team) in [(NAMESPACE, "x"), (ELSEWHERE, "y")] {
        let namespace = json!({"metadata": {"name": name, "labels": {"team": team}}});
        post(rest, "/api/v1/namespaces", namespace).await?;
    }
    for name in NODES {
        node(rest, name).await?;
    }
    classes(rest).await?;
    storage(rest).await?;
    neighbours(rest).await?;
    consumers(rest).await
}

/// A node that is full of a pod that a scheduler has placed, which any priority may take.
pub(super) async fn full_node(rest: &Rest, name: &str, scheduler: &str) -> Result<()> {
    let has = json!({"cpu": "1", "memory": "1Gi", "pods": "10"});
    make_node(rest, name, json!({"name": name}), json!([]), &has, &json!({})).await?;
    let pod = json!({
        "metadata": {"name": format!("{name}-filler")},
        "spec": {"nodeName": name, "schedulerName": scheduler, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": IMAGE,
                "resources": {"requests": {"cpu": "1"}}}]},
    });
    post(rest, &pods(NAMESPACE), pod).await
}

fn pods(namespace: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/pods")
}

/// A pod that has its node.
fn there(name: &str, node: &str, app: &str, more: &Value) -> Value {
    let mut spec = json!({"nodeName": node, "containers": [
        {"name": "c", "image": IMAGE, "resources": {"requests": {"cpu": "10m"}}}]});
    for (key, value) in more.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({"metadata": {"name": name, "labels": {"app": app}}, "spec": spec})
}

/// Pods that others want to be near, or not, and that want that of others.
async fn neighbours(rest: &Rest) -> Result<()> {
    let away = |app: &str, more: &Value| {
        let mut term =
            json!({"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "name"});
        for (key, value) in more.as_object().into_iter().flatten() {
            term[key] = value.clone();
        }
        json!({"affinity": {"podAntiAffinity":
            {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
    };
    let plain = json!({});
    let serves = json!({"containers": [{"name": "c", "image": IMAGE,
        "ports": [{"containerPort": 80, "hostPort": 8080}]}]});
    for pod in [
        there("db-a", "a", "db", &plain),
        there("db-d", "d", "db", &plain),
        there("web", "a", "web", &serves),
        there("hermit", "d", "hermit", &away("loner", &plain)),
        there("anchor-a", "a", "anchor", &plain),
        there("anchor-d", "d", "anchor", &plain),
        there("anchor-b", "b", "anchor", &plain),
        there("lane-a-1", "a", "lane", &plain),
        there("lane-a-2", "a", "lane", &plain),
        there("lane-d-1", "d", "lane", &plain),
        there("lane-d-2", "d", "lane", &plain),
    ] {
        post(rest, &pods(NAMESPACE), pod).await?;
    }
    let team = json!({"namespaceSelector": {"matchLabels": {"team": "x"}}});
    for pod in
        [there("far", "a", "far", &plain), there("hater", "d", "hater", &away("unloved", &team))]
    {
        post(rest, &pods(ELSEWHERE), pod).await?;
    }
    Ok(())
}

/// Pods that have what others would need.
async fn consumers(rest: &Rest) -> Result<()> {
    let requests = |resource: &str, amount: &str| {
        json!({"containers": [{"name": "c", "image": IMAGE,
            "resources": {"requests": {resource: amount}}}]})
    };
    let uses = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "taken"}}]});
    let disk = json!({"volumes": [{"name": "v", "cinder": {"volumeID": "one"}}]});
    for pod in [
        there("user", "a", "user", &uses),
        there("attached", "a", "attached", &disk),
        there("large", "f", "large", &requests("memory", "160Gi")),
        there("grown", "f", "grown", &requests("cpu", "1")),
    ] {
        post(rest, &pods(NAMESPACE), pod).await?;
    }
    let actuated = json!({"name": "c", "image": IMAGE, "imageID": "", "ready": true,
        "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        "allocatedResources": {"cpu": "700"}, "resources": {"requests": {"cpu": "700"}}});
    let status = json!({"status": {"phase": "Running", "containerStatuses": [actuated]}});
    let path = format!("{}/grown/status", pods(NAMESPACE));
    rest.send(Method::PATCH, &path, Some(&status)).await?;
    // Of a pod whose claim to a device is not there kube-scheduler says nothing at all.
    let device = json!({"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
        "metadata": {"name": "gpu"}, "spec": {"devices": {"requests":
            [{"name": "one", "exactly": {"deviceClassName": "nobody-s"}}]}}});
    let path = format!("/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims");
    post(rest, &path, device).await
}

/// Classes of priority and of runtimes.
async fn classes(rest: &Rest) -> Result<()> {
    let priorities = "/apis/scheduling.k8s.io/v1/priorityclasses";
    for (name, policy) in [("urgent", "PreemptLowerPriority"), ("meek", "Never")] {
        let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": 1000, "preemptionPolicy": policy});
        post(rest, priorities, class).await?;
    }
    let heavy = json!({"overhead": {"podFixed": {"cpu": "3"}}});
    let picky = json!({"scheduling": {"nodeSelector": {"zone": "y"},
        "tolerations": [{"key": "gpu", "operator": "Exists"}]}});
    for (name, mut class) in [("heavy", heavy), ("picky", picky)] {
        class["apiVersion"] = "node.k8s.io/v1".into();
        class["kind"] = "RuntimeClass".into();
        class["metadata"] = json!({"name": name});
        class["handler"] = name.into();
        post(rest, "/apis/node.k8s.io/v1/runtimeclasses", class).await?;
    }
    Ok(())
}

async fn storage(rest: &Rest) -> Result<()> {
    let class = |name: &str, provisioner: &str, mode: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})
    };
    let mut zoned = class("zoned", DRIVER, "WaitForFirstConsumer");
    zoned["allowedTopologies"] =
        json!([{"matchLabelExpressions": [{"key": "zone", "values": ["x"]}]}]);
    let none = "kubernetes.io/no-provisioner";
    for class in [
        zoned,
        class("spacious", "space.example.com", "WaitForFirstConsumer"),
        class("local", none, "WaitForFirstConsumer"),
        class("now", none, "Immediate"),
    ] {
        post(rest, &format!("{STORAGE}/storageclasses"), class).await?;
    }
    let driver = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver",
        "metadata": {"name": "space.example.com"}, "spec": {"storageCapacity": true}});
    post(rest, &format!("{STORAGE}/csidrivers"), driver).await?;
    for (node, capacity) in [("a", "10Gi"), ("d", "100Mi")] {
        let space = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSIStorageCapacity",
            "metadata": {"name": format!("on-{node}")}, "storageClassName": "spacious",
            "nodeTopology": {"matchLabels": {"name": node}}, "capacity": capacity});
        let path = format!("{STORAGE}/namespaces/{NAMESPACE}/csistoragecapacities");
        post(rest, &path, space).await?;
    }
    // What `a` can have of these disks it has, and `d` can have none.
    for (node, driver, count) in [("a", "cinder.csi.openstack.org", 1), ("d", DRIVER, 0)] {
        let limits = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode",
            "metadata": {"name": node}, "spec": {"drivers":
                [{"name": driver, "nodeID": node, "allocatable": {"count": count}}]}});
        post(rest, &format!("{STORAGE}/csinodes"), limits).await?;
    }
    taken(rest).await
}

/// A claim for one pod, and its volume.
async fn taken(rest: &Rest) -> Result<()> {
    let mut claim = claim("taken", "local");
    claim["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    claim["spec"]["volumeName"] = "taken-v".into();
    let mut disk = volume("taken", "taken-v", None);
    disk["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    post(rest, VOLUMES, disk).await?;
    let claims = format!("/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims");
    post(rest, &claims, claim).await
}

/// A volume of a pod, on one node or on all.
pub(super) fn volume(pod: &str, name: &str, node: Option<&str>) -> Value {
    let mut volume = json!({
        "apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": {"for": pod}},
        "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local", "hostPath": {"path": "/disk"}},
    });
    if let Some(node) = node {
        volume["spec"]["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "name", "operator": "In", "values": [node]}]}]}});
    }
    volume
}

async fn node(rest: &Rest, name: &str) -> Result<()> {
    let zone = match name {
        "a" | "d" => Some("x"),
        "b" | "c" | "f" => Some("y"),
        _ => None,
    };
    let mut labels = json!({"name": name, "kubernetes.io/hostname": name,
        "cores": if name == "d" { "2" } else { "64" }});
    if let Some(zone) = zone {
        labels["zone"] = zone.into();
        labels["topology.kubernetes.io/zone"] = zone.into();
    }
    if let Some(lane) = ["b", "a", "d"].iter().position(|one| *one == name) {
        labels["lane"] = lane.to_string().into();
    }
    let taints = match name {
        "b" => json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
        "e" => json!([{"key": "old", "effect": "NoExecute"}]),
        _ => json!([{"key": "busy", "effect": "PreferNoSchedule"}]),
    };
    let cpu = if name == "d" { "2" } else { "1000" };
    let mut has = json!({"cpu": cpu, "memory": "200Gi", "pods": "500"});
    if name == "a" {
        has["example.com/gpu"] = "100".into();
    }
    let features =
        if name == "f" { json!(["RestartAllContainersOnContainerExits"]) } else { json!([]) };
    make_node(rest, name, labels, taints, &has, &json!({"declaredFeatures": features})).await?;
    if name == "c" {
        let cordon = json!({"spec": {"unschedulable": true}});
        rest.send(Method::PATCH, "/api/v1/nodes/c", Some(&cordon)).await?;
    }
    Ok(())
}

async fn make_node(
    rest: &Rest,
    name: &str,
    labels: Value,
    taints: Value,
    has: &Value,
    says: &Value,
) -> Result<()> {
    let node = json!({"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": labels}, "spec": {"taints": taints}});
    let made = rest.send(Method::POST, "/api/v1/nodes", Some(&node)).await?;
    let mut status = json!({"capacity": has, "allocatable": has,
        "conditions": [{"type": "Ready", "status": "True"}]});
    for (key, value) in says.as_object().into_iter().flatten() {
        status[key] = value.clone();
    }
    let path = format!("/api/v1/nodes/{}", text(&made["metadata"]["name"]));
    let status = json!({"status": status});
    rest.send(Method::PATCH, &format!("{path}/status"), Some(&status)).await?;
    // Admission takes every new node for one that is not ready.
    let taints = json!({"spec": {"taints": node["spec"]["taints"]}});
    rest.send(Method::PATCH, &path, Some(&taints)).await?;
    Ok(())
}
