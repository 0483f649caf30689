//! The account of node agents and its rights.
//!
//! Owns the complete list of what an agent may do. Whatever it does not use must not be here.

use serde_json::{Value, json};

use super::labels_of;
use super::rights::{COORDINATION, RBAC, RBAC_V1, named, rule};

/// Name of every object that belongs to the nodes.
pub(super) const NAME: &str = "trainyard-node";

/// Where the API server looks for signs of life of nodes.
const LEASES: &str = "kube-node-lease";

/// All of them, in an order in which each finds what it needs.
pub(super) fn objects(namespace: &str) -> [Value; 5] {
    let subjects = json!([{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}]);
    let bound = |kind: &str, role: &str, place: Option<&str>| {
        json!({
            "apiVersion": RBAC_V1, "kind": kind, "metadata": metadata(place),
            "roleRef": {"apiGroup": RBAC, "kind": role, "name": NAME},
            "subjects": subjects,
        })
    };
    [
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(Some(namespace))}),
        json!({
            "apiVersion": RBAC_V1, "kind": "ClusterRole", "metadata": metadata(None),
            "rules": everywhere(),
        }),
        bound("ClusterRoleBinding", "ClusterRole", None),
        json!({
            "apiVersion": RBAC_V1, "kind": "Role", "metadata": metadata(Some(LEASES)),
            "rules": [rule(COORDINATION, "leases", &["create", "get", "update"])],
        }),
        bound("RoleBinding", "Role", Some(LEASES)),
    ]
}

/// What the group of all nodes reads beside what a kubelet may: nothing secret.
pub(super) fn of_group() -> [Value; 2] {
    const GROUP: &str = "system:nodes";
    let named = json!({"name": "trainyard-node-group", "labels": labels_of("node")});
    [
        json!({
            "apiVersion": RBAC_V1, "kind": "ClusterRole", "metadata": named,
            "rules": [endpoints(), kept("persistentvolumeclaims"), kept("persistentvolumes"), cluster()],
        }),
        json!({
            "apiVersion": RBAC_V1, "kind": "ClusterRoleBinding", "metadata": named,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": named["name"]},
            "subjects": [{"kind": "Group", "apiGroup": RBAC, "name": GROUP}],
        }),
    ]
}

/// Addresses that pods find each other by.
fn endpoints() -> Value {
    rule("discovery.k8s.io", "endpointslices", &["list", "watch"])
}

/// Whether the object is still there whose data is kept here.
fn kept(resource: &str) -> Value {
    rule("", resource, &["get"])
}

/// Its UID names the cluster: data of claims is removed for the one that it was kept for alone.
fn cluster() -> Value {
    named(rule("", "namespaces", &["get"]), "kube-system")
}

fn metadata(namespace: Option<&str>) -> Value {
    let mut metadata = json!({"name": NAME, "labels": labels_of("node")});
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    metadata
}

/// What an agent does in every namespace.
fn everywhere() -> Value {
    json!([
        rule("", "nodes", &["create", "get", "patch"]),
        rule("", "nodes/status", &["patch"]),
        rule("", "pods", &["delete", "list", "watch"]),
        rule("", "pods/status", &["patch"]),
        rule("", "events", &["create", "patch"]),
        // Names and addresses that pods find each other by.
        rule("", "services", &["get", "list", "watch"]),
        endpoints(),
        // What pods mount and are told. An account cannot be confined to the pods of its nodes.
        rule("", "configmaps", &["get"]),
        rule("", "secrets", &["get"]),
        kept("persistentvolumeclaims"),
        kept("persistentvolumes"),
        rule("", "serviceaccounts/token", &["create"]),
        cluster(),
    ])
}
