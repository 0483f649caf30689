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
        rule("discovery.k8s.io", "endpointslices", &["list", "watch"]),
        // What pods mount and are told. An account cannot be confined to the pods of its nodes.
        rule("", "configmaps", &["get"]),
        rule("", "secrets", &["get"]),
        rule("", "persistentvolumeclaims", &["get"]),
        rule("", "persistentvolumes", &["get"]),
        rule("", "serviceaccounts/token", &["create"]),
        // Its UID names the cluster: data of claims is removed for the one that it was kept for alone.
        named(rule("", "namespaces", &["get"]), "kube-system"),
    ])
}
