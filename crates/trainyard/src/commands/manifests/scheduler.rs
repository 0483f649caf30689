//! The gang scheduler on a cluster: its account, its rights, its pod.
//!
//! Owns the complete list of what the scheduler may do. Whatever it does not use must not be here.

use serde_json::{Value, json};
use trainyard_operator::scheduler::LEASE;

use super::rights::{RBAC, RBAC_V1, lease_rules, rule};
use super::volcano::{CLASSES, SCHEDULING};
use super::{bound, deployment, labels_of};

const STORAGE: &str = "storage.k8s.io";

/// Name of every object that belongs to the scheduler.
pub(super) const NAME: &str = "trainyard-scheduler";

/// All of them, in an order in which each finds what it needs.
pub(super) fn objects(namespace: &str, image: &str) -> Vec<Value> {
    let labels = labels_of("scheduler");
    let metadata = json!({"name": NAME, "namespace": namespace, "labels": labels});
    let mut all = vec![json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})];
    all.extend(bound(NAME, (namespace, NAME), &labels, &everywhere()));
    all.push(json!({
        "apiVersion": RBAC_V1, "kind": "Role", "metadata": metadata, "rules": lease_rules(LEASE),
    }));
    all.push(json!({
        "apiVersion": RBAC_V1, "kind": "RoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }));
    let args = ["scheduler".to_owned(), "--leader-elect".to_owned()];
    all.push(deployment::service(namespace, &deployment::SCHEDULER));
    all.push(deployment::deployment(namespace, image, &deployment::SCHEDULER, &args));
    all
}

/// What the scheduler does in every namespace.
fn everywhere() -> Value {
    json!([
        // Deletion is for pods that have to make room; plain pods are told the PodGroup made for them.
        rule("", "pods", &["delete", "get", "list", "patch", "watch"]),
        rule("", "pods/binding", &["create"]),
        rule("", "pods/status", &["patch"]),
        rule("", "nodes", &["list", "watch"]),
        // Terms of pod affinity mean namespaces by their labels.
        rule("", "namespaces", &["list", "watch"]),
        // A claim is told for which node it is provisioned, a volume for which claim it is kept.
        rule("", "persistentvolumeclaims", &["list", "patch", "watch"]),
        rule("", "persistentvolumes", &["list", "patch", "watch"]),
        // Among those that could be evicted, whoever is within its budget goes first.
        rule("policy", "poddisruptionbudgets", &["list", "watch"]),
        rule(STORAGE, "storageclasses", &["list", "watch"]),
        rule(STORAGE, "csinodes", &["list", "watch"]),
        rule(STORAGE, "csidrivers", &["list", "watch"]),
        rule(STORAGE, "csistoragecapacities", &["list", "watch"]),
        rule(STORAGE, "volumeattachments", &["list", "watch"]),
        rule("", "events", &["create", "patch"]),
        rule(CLASSES, "priorityclasses", &["list", "watch"]),
        rule(SCHEDULING, "podgroups", &["create", "list", "patch", "watch"]),
        // The queues `root` and `default` are made where they are not there; one that names no parent
        // gets `root`.
        rule(SCHEDULING, "queues", &["create", "list", "patch", "watch"]),
        rule(SCHEDULING, "queues/status", &["patch"]),
        // Queues are opened and closed by Commands.
        rule("bus.volcano.sh", "commands", &["delete", "list", "watch"]),
    ])
}
