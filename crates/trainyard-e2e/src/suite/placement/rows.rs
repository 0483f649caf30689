//! The nodes, what is on them, and the pods whose fields are compared.

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::rest::Rest;

/// `a` has devices, `b` a taint, `c` is cordoned, `d` is small, `e` has no zone and drives pods out.
pub(super) const NODES: [&str; 5] = ["a", "b", "c", "d", "e"];
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
const VOLUMES: &str = "/api/v1/persistentvolumes";

/// Pods that say one thing.
pub(super) struct Row {
    pub(super) name: String,
    /// The field that ours refuses by name.
    pub(super) refused: Option<&'static str>,
    pub(super) labels: Value,
    spec: Value,
    volume: Option<Mounted>,
}

/// What a pod mounts.
#[derive(Clone, Copy)]
enum Mounted {
    /// A claim that has its volume on one node.
    Bound,
    /// A claim that has its volume in zone `x` by a label.
    Labelled,
    /// A claim that waits, and volumes on two nodes.
    Waiting,
    /// A claim that waits, of a class that makes volumes in zone `x`.
    Made,
    /// A claim that nobody binds.
    Immediate,
    /// A claim that is not there.
    Missing,
    /// A claim for one pod that another pod has.
    Taken,
}

impl Row {
    fn new(name: &str, spec: Value) -> Self {
        let labels = json!({"row": name});
        Self { name: name.to_owned(), refused: None, labels, spec, volume: None }
    }

    fn label(mut self, key: &str, value: &str) -> Self {
        self.labels[key] = value.into();
        self
    }

    fn refused(mut self, field: &'static str) -> Self {
        self.refused = Some(field);
        self
    }

    fn mounts(name: &str, volume: Mounted) -> Self {
        Self { volume: Some(volume), ..Self::new(name, json!({})) }
    }

    /// The specification of a pod by that name.
    pub(super) fn spec(&self, pod: &str) -> Value {
        let mut spec = self.spec.clone();
        if spec["containers"].is_null() {
            spec["containers"] = json!([container("10m")]);
        }
        if self.name == "port" && pod.ends_with("theirs") {
            // Pods of one row are not to be in each other's way.
            spec["containers"][0]["ports"][0]["hostIP"] = "127.0.0.8".into();
        }
        if let Some(volume) = self.volume {
            let claim = if matches!(volume, Mounted::Taken) { "taken" } else { pod };
            spec["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]);
        }
        spec
    }

    /// What has to be there for a pod by that name: where, and what.
    pub(super) fn objects(&self, pod: &str) -> Vec<(String, Value)> {
        let claims = format!("/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims");
        let waiting = |class: &str| (claims.clone(), claim(pod, class));
        match self.volume {
            None | Some(Mounted::Missing | Mounted::Taken) => Vec::new(),
            Some(Mounted::Bound) => bound(pod, volume(pod, &format!("{pod}-v"), Some("d"))),
            Some(Mounted::Labelled) => {
                let mut volume = volume(pod, &format!("{pod}-v"), None);
                volume["metadata"]["labels"]["topology.kubernetes.io/zone"] = "x".into();
                bound(pod, volume)
            }
            Some(Mounted::Waiting) => {
                let of = |node| volume(pod, &format!("{pod}-{node}"), Some(node));
                let mut claim = claim(pod, "local");
                claim["spec"]["selector"] = json!({"matchLabels": {"for": pod}});
                [of("a"), of("b")]
                    .map(|volume| (VOLUMES.to_owned(), volume))
                    .into_iter()
                    .chain([(claims.clone(), claim)])
                    .collect()
            }
            Some(Mounted::Made) => vec![waiting("zoned")],
            Some(Mounted::Immediate) => vec![waiting("now")],
        }
    }
}

fn container(cpu: &str) -> Value {
    json!({"name": "c", "image": "example.com/c:1", "resources": {"requests": {"cpu": cpu}}})
}

fn claim(name: &str, class: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
        "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "resources": {"requests": {"storage": "1Gi"}}},
    })
}

fn volume(pod: &str, name: &str, node: Option<&str>) -> Value {
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

/// A volume and the claim that asks for it by name.
fn bound(pod: &str, volume: Value) -> Vec<(String, Value)> {
    let mut claim = claim(pod, "local");
    claim["spec"]["volumeName"] = volume["metadata"]["name"].clone();
    let claims = format!("/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims");
    vec![(VOLUMES.to_owned(), volume), (claims, claim)]
}

fn near(kind: &str, app: &str, topology: &str) -> Value {
    json!({"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology}]}}})
}

fn node_term(key: &str, operator: &str, values: &[&str]) -> Value {
    json!({"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
        {"nodeSelectorTerms": [{"matchExpressions":
            [{"key": key, "operator": operator, "values": values}]}]}}}})
}

fn with_init(init: &Value, cpu: &str) -> Value {
    json!({"initContainers": init, "containers": [container(cpu)]})
}

/// All rows.
pub(super) fn all() -> Vec<Row> {
    [of_resources(), of_nodes(), of_pods(), of_volumes(), refused()].into_iter().flatten().collect()
}

fn of_resources() -> Vec<Row> {
    let mut sidecar = container("2");
    sidecar["name"] = "side".into();
    sidecar["restartPolicy"] = "Always".into();
    let mut before = container("3");
    before["name"] = "before".into();
    let device = json!({"containers": [{"name": "c", "image": "example.com/c:1", "resources":
        {"limits": {"example.com/gpu": "1"}, "requests": {"example.com/gpu": "1"}}}]});
    let port = json!({"containers": [{"name": "c", "image": "example.com/c:1",
        "ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "127.0.0.9"}]}]});
    vec![
        Row::new("plain", json!({})),
        Row::new("gated", json!({"schedulingGates": [{"name": "example.com/wait"}]})),
        Row::new("cpu", json!({"containers": [container("3")]})),
        Row::new("init", with_init(&json!([before]), "10m")),
        Row::new("sidecar", with_init(&json!([sidecar]), "500m")),
        Row::new(
            "whole",
            json!({"containers": [container("10m")], "resources": {"requests": {"cpu": "3"}}}),
        ),
        Row::new("device", device),
        Row::new("port", port),
    ]
}

fn of_nodes() -> Vec<Row> {
    let toleration = |value: Value| json!({"tolerations": [value]});
    vec![
        Row::new("selector", json!({"nodeSelector": {"zone": "x"}})),
        Row::new("in", node_term("zone", "In", &["y", "z"])),
        Row::new("not-in", node_term("zone", "NotIn", &["y"])),
        Row::new("exists", node_term("zone", "Exists", &[])),
        Row::new("more", node_term("cores", "Gt", &["8"])),
        Row::new("tolerant", toleration(json!({"key": "gpu", "operator": "Exists"}))),
        Row::new("exact", toleration(json!({"key": "gpu", "value": "no", "effect": "NoSchedule"}))),
        Row::new("anywhere", toleration(json!({"operator": "Exists"}))),
    ]
}

fn of_pods() -> Vec<Row> {
    let spread = json!({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "db"}}}]});
    let mut soft = spread.clone();
    soft["topologySpreadConstraints"][0]["whenUnsatisfiable"] = "ScheduleAnyway".into();
    vec![
        Row::new("near", near("podAffinity", "db", "zone")),
        Row::new("beside", near("podAffinity", "db", "name")),
        Row::new("apart", near("podAntiAffinity", "db", "name")),
        Row::new("unwelcome", json!({})).label("app", "loner"),
        Row::new("spread", spread),
        Row::new("spread-wish", soft),
    ]
}

fn of_volumes() -> Vec<Row> {
    vec![
        Row::mounts("bound", Mounted::Bound),
        Row::mounts("labelled", Mounted::Labelled),
        Row::mounts("waiting", Mounted::Waiting),
        Row::mounts("made", Mounted::Made),
        Row::mounts("immediate", Mounted::Immediate),
        Row::mounts("missing", Mounted::Missing),
        Row::mounts("taken", Mounted::Taken),
    ]
}

fn refused() -> Vec<Row> {
    let selected = json!({"affinity": {"podAntiAffinity":
        {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone",
            "labelSelector": {}, "namespaceSelector": {"matchLabels": {"a": "b"}}}]}}});
    let disk = json!({"volumes": [{"name": "d", "rbd":
        {"monitors": ["192.0.2.1:6789"], "image": "i"}}]});
    let claims = json!({
        "containers": [{"name": "c", "image": "example.com/c:1",
            "resources": {"claims": [{"name": "gpu"}]}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": "nobody"}],
    });
    vec![
        Row::new("by-namespace", selected).refused("namespaceSelector"),
        Row::new("disk", disk).refused("rbd"),
        Row::new("claims", claims).refused("spec.resourceClaims"),
    ]
}

/// Makes the namespace, the nodes, and pods that are there already.
pub(super) async fn furnish(rest: &Rest) -> Result<()> {
    let post = async |path: &str, object: Value| rest.send(Method::POST, path, Some(&object)).await;
    post("/api/v1/namespaces", json!({"metadata": {"name": NAMESPACE}})).await?;
    for name in NODES {
        node(rest, name).await?;
    }
    storage(rest).await?;
    let pods = format!("/api/v1/namespaces/{NAMESPACE}/pods");
    let there = |name: &str, node: &str, app: &str, more: Value| {
        let mut spec = json!({"nodeName": node, "containers": [container("10m")]});
        for (key, value) in more.as_object().into_iter().flatten() {
            spec[key] = value.clone();
        }
        json!({"metadata": {"name": name, "labels": {"app": app}}, "spec": spec})
    };
    let serves = json!({"containers": [{"name": "c", "image": "example.com/c:1",
        "ports": [{"containerPort": 80, "hostPort": 8080}]}]});
    let uses = json!({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "taken"}}]});
    for pod in [
        there("db-a", "a", "db", json!({})),
        there("db-d", "d", "db", json!({})),
        there("web", "a", "web", serves),
        there("hermit", "d", "hermit", near("podAntiAffinity", "loner", "name")),
        there("user", "a", "user", uses),
    ] {
        post(&pods, pod).await?;
    }
    Ok(())
}

async fn storage(rest: &Rest) -> Result<()> {
    let post = async |path: &str, object: Value| rest.send(Method::POST, path, Some(&object)).await;
    let class = |name: &str, provisioner: &str, mode: &str| {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode})
    };
    let mut zoned = class("zoned", "disk.example.com", "WaitForFirstConsumer");
    zoned["allowedTopologies"] =
        json!([{"matchLabelExpressions": [{"key": "zone", "values": ["x"]}]}]);
    post(CLASSES, zoned).await?;
    let none = "kubernetes.io/no-provisioner";
    post(CLASSES, class("local", none, "WaitForFirstConsumer")).await?;
    post(CLASSES, class("now", none, "Immediate")).await?;
    let mut taken = claim("taken", "local");
    taken["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    taken["spec"]["volumeName"] = "taken-v".into();
    let mut disk = volume("taken", "taken-v", None);
    disk["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    post(VOLUMES, disk).await?;
    let claims = format!("/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims");
    post(&claims, taken).await?;
    Ok(())
}

async fn node(rest: &Rest, name: &str) -> Result<()> {
    let zone = match name {
        "a" | "d" => Some("x"),
        "b" | "c" => Some("y"),
        _ => None,
    };
    let mut labels = json!({"name": name, "kubernetes.io/hostname": name,
        "cores": if name == "d" { "2" } else { "64" }});
    if let Some(zone) = zone {
        labels["zone"] = zone.into();
        labels["topology.kubernetes.io/zone"] = zone.into();
    }
    let taints = match name {
        "b" => json!([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]),
        "e" => json!([{"key": "old", "effect": "NoExecute"}]),
        _ => json!([{"key": "busy", "effect": "PreferNoSchedule"}]),
    };
    let cpu = if name == "d" { "2" } else { "1000" };
    let mut has = json!({"cpu": cpu, "memory": "100Gi", "pods": "500"});
    if name == "a" {
        has["example.com/gpu"] = "100".into();
    }
    let node = json!({
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints, "unschedulable": name == "c"},
    });
    rest.send(Method::POST, "/api/v1/nodes", Some(&node)).await?;
    let status = json!({"status": {"capacity": has, "allocatable": has,
        "conditions": [{"type": "Ready", "status": "True"}]}});
    rest.send(Method::PATCH, &format!("/api/v1/nodes/{name}/status"), Some(&status)).await?;
    // Admission takes every new node for one that is not ready.
    let taints = json!({"spec": {"taints": node["spec"]["taints"]}});
    rest.send(Method::PATCH, &format!("/api/v1/nodes/{name}"), Some(&taints)).await?;
    Ok(())
}
