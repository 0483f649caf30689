//! What a node may do: its own object and lease, the pods bound to it, and what those pods name.
//!
//! Owns who is a node, and its rights, as Kubernetes' node authorizer has them. Pure reading of stored
//! objects. What a node may write into objects that it may write is said in [`restriction`].

mod related;
pub(crate) mod restriction;

use related::Kin;

use super::rights::Act;
use crate::kind::{Caller, World};

/// The group that all nodes are in.
pub(crate) const NODES: &str = "system:nodes";
/// What the name of a node's account begins with.
pub(crate) const PREFIX: &str = "system:node:";
const LEASES: &str = "kube-node-lease";

/// The node that asks; none where somebody else does.
pub(crate) fn node(caller: &Caller) -> Option<&str> {
    let name = caller.name.strip_prefix(PREFIX)?;
    caller.groups.iter().any(|group| group == NODES).then_some(name)
}

/// Why a node may not do something by being one, in Kubernetes' words, which may be none; `None` where it
/// may.
pub(super) fn refusal(world: &dyn World, node: &str, act: &Act<'_>) -> Option<String> {
    if node.is_empty() {
        return Some(format!("unknown node for user {PREFIX:?}"));
    }
    let (resource, sub) = act.resource.split_once('/').unwrap_or((&act.resource, ""));
    let related = |kin: Kin| {
        if act.name.is_empty() {
            return Some("No Object name found".to_owned());
        }
        unless(
            related::is(world, node, kin, act.namespace, act.name),
            format!("no relationship found between node '{node}' and this object"),
        )
    };
    match (act.group, resource, sub) {
        ("", "secrets", "") => readable(act).or_else(|| related(Kin::Secret)),
        ("", "configmaps", "") => readable(act).or_else(|| related(Kin::ConfigMap)),
        ("", "serviceaccounts", "") if act.verb == "get" => related(Kin::Account),
        ("", "serviceaccounts", "token") if act.verb == "create" => related(Kin::Account),
        ("", "serviceaccounts", _) => {
            Some("can only create tokens for individual service accounts".to_owned())
        }
        ("", "pods", _) => pods(act, sub, node, &related),
        ("", "nodes", _) => nodes(act, sub, node),
        ("coordination.k8s.io", "leases", _) => lease(act, node),
        ("", "namespaces", "") if act.verb == "get" && act.name == "kube-system" => None,
        _ => unless(sub.is_empty() && is_for_all(act, resource), String::new()),
    }
}

/// Whether a node may do something by being one.
pub(super) fn may(world: &dyn World, node: &str, act: &Act<'_>) -> bool {
    refusal(world, node, act).is_none()
}

fn unless(allowed: bool, why: impl Into<String>) -> Option<String> {
    (!allowed).then(|| why.into())
}

/// What is asked of kinds of which only what pods name is read.
fn readable(act: &Act<'_>) -> Option<String> {
    if !matches!(act.verb, "get" | "list" | "watch") {
        return Some("can only read resources of this type".to_owned());
    }
    unless(!act.namespace.is_empty(), "can only read namespaced object of this type")
}

fn is_for_all(act: &Act<'_>, resource: &str) -> bool {
    RULES.iter().chain(&BESIDE).any(|(group, kinds, verbs)| {
        *group == act.group && kinds.contains(&resource) && verbs.contains(&act.verb)
    })
}

/// What is not told apart by node: group, resources, verbs.
const RULES: [(&str, &[&str], &[&str]); 7] = [
    ("authentication.k8s.io", &["tokenreviews"], &["create"]),
    ("authorization.k8s.io", &["subjectaccessreviews", "localsubjectaccessreviews"], &["create"]),
    ("", &["services"], &["get", "list", "watch"]),
    ("", &["events"], &["create", "update", "patch"]),
    ("events.k8s.io", &["events"], &["create", "update", "patch"]),
    ("", &["endpoints"], &["get"]),
    ("node.k8s.io", &["runtimeclasses"], &["get", "list", "watch"]),
];

/// What an agent reads beside what a kubelet does: the addresses behind services, as kube-proxy does, and
/// whether the claims and volumes are still there whose data it keeps. On a cluster a role says so.
const BESIDE: [(&str, &[&str], &[&str]); 2] = [
    ("discovery.k8s.io", &["endpointslices"], &["list", "watch"]),
    ("", &["persistentvolumeclaims", "persistentvolumes"], &["get"]),
];

/// Of pods: whose they are is looked at before something is stored or removed.
fn pods(
    act: &Act<'_>,
    sub: &str,
    node: &str,
    related: &dyn Fn(Kin) -> Option<String>,
) -> Option<String> {
    match (sub, act.verb) {
        ("", "get") => related(Kin::Pod),
        ("", "list" | "watch") if act.on_node == node => None,
        ("", "list" | "watch") if !act.name.is_empty() => related(Kin::Pod),
        ("", "list" | "watch") => {
            Some("can only list/watch pods with spec.nodeName field selector".to_owned())
        }
        ("", "create" | "delete") | ("status", "update" | "patch") | ("eviction", "create") => None,
        _ => Some(String::new()),
    }
}

/// Of nodes: which one is written is looked at before it is stored.
fn nodes(act: &Act<'_>, sub: &str, node: &str) -> Option<String> {
    match (sub, act.verb, act.name) {
        ("", "create" | "update" | "patch", _) | ("status", "update" | "patch", _) => None,
        ("", "get" | "list" | "watch", name) if name == node => None,
        ("", "get" | "list" | "watch", "") => {
            Some(format!("node '{node}' cannot read all nodes, only its own Node object"))
        }
        ("", "get" | "list" | "watch", other) => {
            Some(format!("node '{node}' cannot read '{other}', only its own Node object"))
        }
        _ => Some(String::new()),
    }
}

fn lease(act: &Act<'_>, node: &str) -> Option<String> {
    if !matches!(act.verb, "get" | "create" | "update" | "patch" | "delete") {
        return Some("can only get, create, update, patch, or delete a node lease".to_owned());
    }
    if act.namespace != LEASES {
        return Some(format!("can only access leases in the {LEASES:?} system namespace"));
    }
    unless(
        act.verb == "create" || act.name == node,
        "can only access node lease with the same name as the requesting node",
    )
}

#[cfg(test)]
mod tests;
