//! Which objects the pods of a node name: what a node may read is found from the pods bound to it.
//!
//! Owns the fields by which pods name other objects. Pure.

use serde_json::Value;

use crate::kind::World;

/// Kinds of objects that pods name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kin {
    Secret,
    ConfigMap,
    Account,
    /// The pod itself.
    Pod,
}

/// A pod that a node made to show what it runs anyway. It may name nothing, and opens nothing.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Whether a pod that is bound to a node names an object.
pub(super) fn is(world: &dyn World, node: &str, kin: Kin, namespace: &str, name: &str) -> bool {
    match kin {
        Kin::Pod => {
            let pod = world.get("pods", namespace, name).unwrap_or_default();
            pod["spec"]["nodeName"] == node
        }
        _ if namespace.is_empty() => false,
        _ => world.some_pod(node, namespace, name, &|pod| names(pod, kin, name)),
    }
}

/// Whether a pod names an object of its namespace.
fn names(pod: &Value, kin: Kin, name: &str) -> bool {
    if !pod["metadata"]["annotations"][MIRROR].is_null() {
        return false;
    }
    match kin {
        Kin::Secret => secrets(pod).any(|one| one == name),
        Kin::ConfigMap => config_maps(pod).any(|one| one == name),
        Kin::Account => pod["spec"]["serviceAccountName"] == name,
        Kin::Pod => false,
    }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value[key].as_array().into_iter().flatten()
}

fn containers(pod: &Value) -> impl Iterator<Item = &Value> {
    let keys = ["initContainers", "containers", "ephemeralContainers"];
    keys.into_iter().flat_map(|key| list(&pod["spec"], key))
}

fn volumes(pod: &Value) -> impl Iterator<Item = &Value> {
    list(&pod["spec"], "volumes")
}

/// What the parts of projected volumes name, by the part's key.
fn projected<'a>(pod: &'a Value, key: &'static str) -> impl Iterator<Item = &'a Value> + use<'a> {
    let sources = volumes(pod).flat_map(|volume| list(&volume["projected"], "sources"));
    sources.map(move |source| &source[key]["name"])
}

/// What environments name: one variable by one key, or all by an object.
fn environments<'a>(
    pod: &'a Value,
    one: &'static str,
    all: &'static str,
) -> impl Iterator<Item = &'a Value> + use<'a> {
    containers(pod).flat_map(move |container| {
        let by_key = list(container, "env").map(move |env| &env["valueFrom"][one]["name"]);
        by_key.chain(list(container, "envFrom").map(move |from| &from[all]["name"]))
    })
}

/// Sources of volumes with the pointer to the secret that they name.
const SECRET_SOURCES: [&str; 10] = [
    "/secret/secretName",
    "/azureFile/secretName",
    "/cephfs/secretRef/name",
    "/cinder/secretRef/name",
    "/flexVolume/secretRef/name",
    "/rbd/secretRef/name",
    "/scaleIO/secretRef/name",
    "/iscsi/secretRef/name",
    "/storageos/secretRef/name",
    "/csi/nodePublishSecretRef/name",
];

fn secrets(pod: &Value) -> impl Iterator<Item = &str> {
    let sources = volumes(pod)
        .flat_map(|volume| SECRET_SOURCES.into_iter().filter_map(|at| volume.pointer(at)));
    list(&pod["spec"], "imagePullSecrets")
        .map(|secret| &secret["name"])
        .chain(environments(pod, "secretKeyRef", "secretRef"))
        .chain(projected(pod, "secret"))
        .chain(sources)
        .filter_map(Value::as_str)
}

fn config_maps(pod: &Value) -> impl Iterator<Item = &str> {
    volumes(pod)
        .map(|volume| &volume["configMap"]["name"])
        .chain(environments(pod, "configMapKeyRef", "configMapRef"))
        .chain(projected(pod, "configMap"))
        .filter_map(Value::as_str)
}
