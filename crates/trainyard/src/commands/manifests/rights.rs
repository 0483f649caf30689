//! The operator's account and rights, and the roles of the people who use TFJobs.
//!
//! Owns the complete list of what the operator may do. Whatever it does not use must not be here.

use serde_json::{Value, json};
use trainyard_api::names::{GROUP, PLURAL, REFERENCE_WEBHOOK};

use super::volcano::{CLASSES, SCHEDULING};
use super::{NAME, labels};
use crate::commands::explain::ROLE as EXPLAIN_ROLE;
use crate::commands::operator::LEASE;

pub(super) const RBAC: &str = "rbac.authorization.k8s.io";
pub(super) const RBAC_V1: &str = "rbac.authorization.k8s.io/v1";
pub(super) const COORDINATION: &str = "coordination.k8s.io";

pub(super) fn service_account(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels()},
    })
}

/// What the operator does in every namespace for TFJobs.
pub(super) fn cluster_role() -> Value {
    let status = format!("{PLURAL}/status");
    let finalizers = format!("{PLURAL}/finalizers");
    json!({
        "apiVersion": RBAC_V1, "kind": "ClusterRole",
        "metadata": {"name": NAME, "labels": labels()},
        "rules": [
            // Deletion is for jobs whose time to live has ended.
            rule(GROUP, PLURAL, &["delete", "list", "watch"]),
            rule(GROUP, &status, &["patch"]),
            // Clusters that guard `blockOwnerDeletion` ask for this when a pod names its job.
            rule(GROUP, &finalizers, &["update"]),
            rule("", "pods", &["create", "delete", "get", "list", "watch"]),
            rule("", "services", &["create", "delete", "get", "list", "watch"]),
            rule("", "events", &["create", "patch"]),
            // A pod does not always show that its node is lost.
            rule("", "nodes", &["list", "watch"]),
            // Left behind by the reference operator, it would refuse every new job.
            named(
                rule(
                    "admissionregistration.k8s.io",
                    "validatingwebhookconfigurations",
                    &["get"],
                ),
                REFERENCE_WEBHOOK,
            ),
        ],
    })
}

pub(super) fn cluster_role_binding(namespace: &str) -> Value {
    json!({
        "apiVersion": RBAC_V1, "kind": "ClusterRoleBinding",
        "metadata": {"name": NAME, "labels": labels()},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    })
}

/// The lease that lets one of several operators act. Creation cannot be limited to a name.
pub(super) fn lease_role(namespace: &str) -> Value {
    json!({
        "apiVersion": RBAC_V1, "kind": "Role",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels()},
        "rules": lease_rules(LEASE),
    })
}

/// What holding a lease takes.
pub(super) fn lease_rules(name: &str) -> Value {
    json!([
        rule(COORDINATION, "leases", &["create"]),
        named(rule(COORDINATION, "leases", &["get", "update"]), name),
    ])
}

pub(super) fn lease_role_binding(namespace: &str) -> Value {
    json!({
        "apiVersion": RBAC_V1, "kind": "RoleBinding",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels()},
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": NAME},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    })
}

pub(super) const READ: [&str; 3] = ["get", "list", "watch"];
pub(super) const WRITE: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

/// Roles that join the cluster's own `view`, `edit` and `admin`, and those of Kubeflow profiles.
pub(super) fn user_roles() -> [Value; 3] {
    let status = format!("{PLURAL}/status");
    let scale = format!("{PLURAL}/scale");
    USERS.map(|(role, writes)| {
        let mut rules = vec![rule(GROUP, PLURAL, if writes { &WRITE } else { &READ })];
        rules.push(rule(GROUP, &status, &["get"]));
        rules.push(rule(
            GROUP,
            &scale,
            if writes { &["get", "patch", "update"] } else { &["get"] },
        ));
        user_role(&format!("trainyard-{role}"), role, &rules)
    })
}

/// What `trainyard explain` reads beside the job's own namespace. It joins no role of the cluster and is
/// bound to nobody: who may look into all namespaces is for an administrator to say.
/// PodGroups and queues are among it where there are any.
pub(super) fn explain_role(with_groups: bool) -> Value {
    let look = ["get", "list"];
    let mut labels = labels();
    labels["app.kubernetes.io/component"] = "access".into();
    let core = ["namespaces", "nodes", "pods", "persistentvolumeclaims", "persistentvolumes"];
    let mut rules: Vec<Value> = core.map(|resource| rule("", resource, &look)).into();
    rules.push(rule(CLASSES, "priorityclasses", &look));
    let storage =
        ["storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments"];
    rules.extend(storage.map(|resource| rule("storage.k8s.io", resource, &look)));
    rules.push(rule("policy", "poddisruptionbudgets", &look));
    if with_groups {
        rules.extend(["podgroups", "queues"].map(|resource| rule(SCHEDULING, resource, &look)));
    }
    json!({
        "apiVersion": RBAC_V1, "kind": "ClusterRole",
        "metadata": {"name": EXPLAIN_ROLE, "labels": labels}, "rules": rules,
    })
}

/// The roles of people, and whether they may change anything.
pub(super) const USERS: [(&str, bool); 3] = [("view", false), ("edit", true), ("admin", true)];

/// A role that joins one of the cluster's own.
pub(super) fn user_role(name: &str, role: &str, rules: &[Value]) -> Value {
    let mut labels = labels();
    labels[format!("{RBAC}/aggregate-to-{role}")] = "true".into();
    labels[format!("rbac.authorization.kubeflow.org/aggregate-to-kubeflow-{role}")] = "true".into();
    labels["app.kubernetes.io/component"] = "access".into();
    json!({
        "apiVersion": RBAC_V1, "kind": "ClusterRole",
        "metadata": {"name": name, "labels": labels}, "rules": rules,
    })
}

pub(super) fn rule(group: &str, resource: &str, verbs: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
}

pub(super) fn named(mut rule: Value, name: &str) -> Value {
    rule["resourceNames"] = json!([name]);
    rule
}
