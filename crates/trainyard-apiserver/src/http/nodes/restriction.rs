//! What a node may write into what it may write, as Kubernetes' admission plugin `NodeRestriction` has it:
//! no other node's object, no label or taint by which it would draw pods to itself, no pod of another
//! node, no token but one that ends with a pod of its own.
//!
//! Owns those limits and their words. Pure.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{LEASES, node};
use crate::failure::{About, Failure};
use crate::kind::{Caller, Kind, World};
use crate::kinds::admission::told_name;

/// What a node does to an object.
#[derive(Clone, Copy)]
pub(crate) enum Deed<'a> {
    Create(&'a Value),
    /// The new state and the old one; whether only the status is meant.
    Update(&'a Value, &'a Value, bool),
    /// What is there.
    Delete(&'a Value),
    /// The pod that is to go.
    Evict(&'a Value),
}

/// A node that does something, in what its refusals are about.
struct Doer<'a> {
    node: &'a str,
    about: About,
}

impl Doer<'_> {
    fn refuse(&self, why: &str) -> Result<(), Failure> {
        Err(Failure::forbidden(self.about.clone(), why))
    }
}

/// Refuses what a node may not write; others pass.
pub(crate) fn check(
    world: &dyn World,
    caller: &Caller,
    kind: &Kind,
    deed: Deed<'_>,
) -> Result<(), Failure> {
    let Some(node) = node(caller) else { return Ok(()) };
    let (Deed::Create(object)
    | Deed::Update(object, _, _)
    | Deed::Delete(object)
    | Deed::Evict(object)) = deed;
    let about = About::new(&kind.group, &kind.plural, told_name(object));
    let doer = Doer { node, about };
    match kind.storage.as_str() {
        "pods" => pod(&doer, world, deed),
        "nodes" => own_node(&doer, deed, object),
        "leases.coordination.k8s.io" => lease(&doer, object),
        _ => Ok(()),
    }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn pod(doer: &Doer<'_>, world: &dyn World, deed: Deed<'_>) -> Result<(), Failure> {
    let node = doer.node;
    let is_own = |pod: &Value| pod["spec"]["nodeName"] == node;
    match deed {
        Deed::Create(pod) => mirror(doer, world, pod),
        Deed::Delete(pod) if !is_own(pod) => doer.refuse(&format!(
            "node {node:?} can only delete pods with spec.nodeName set to itself"
        )),
        Deed::Evict(pod) if !is_own(pod) => doer
            .refuse(&format!("node {node} can only evict pods with spec.nodeName set to itself")),
        Deed::Delete(_) | Deed::Evict(_) => Ok(()),
        Deed::Update(_, _, false) => doer.refuse(&format!(
            "unexpected operation \"UPDATE\", node {node:?} can only create and delete mirror pods"
        )),
        Deed::Update(_, old, true) if !is_own(old) => doer.refuse(&format!(
            "node {node:?} can only update pod status for pods with spec.nodeName set to itself"
        )),
        Deed::Update(new, old, true) if changed_labels(new, old).is_empty() => Ok(()),
        Deed::Update(..) => {
            doer.refuse(&format!("node {node:?} cannot update labels through pod status"))
        }
    }
}

/// A pod that a node makes shows what it runs anyway: it is its own, and names nothing.
fn mirror(doer: &Doer<'_>, world: &dyn World, pod: &Value) -> Result<(), Failure> {
    const MIRROR: &str = "kubernetes.io/config.mirror";
    let node = doer.node;
    if pod["metadata"]["annotations"][MIRROR].is_null() {
        let why = format!(
            "pod does not have {MIRROR:?} annotation, node {node:?} can only create mirror pods"
        );
        return doer.refuse(&why);
    }
    let only = |what: &str| doer.refuse(&format!("node {node:?} can only create pods with {what}"));
    if pod["spec"]["nodeName"] != node {
        return only("spec.nodeName set to itself");
    }
    let owners = pod["metadata"]["ownerReferences"].as_array().map_or(&[][..], Vec::as_slice);
    let owner = match owners {
        [] => return only("an owner reference set to itself"),
        [owner] => owner,
        _ => return only("a single owner reference set to itself"),
    };
    if (text(owner, "apiVersion"), text(owner, "kind"), text(owner, "name")) != ("v1", "Node", node)
    {
        return only("an owner reference set to itself");
    }
    if owner["controller"] != true {
        return only("a controller owner reference set to itself");
    }
    if owner["blockOwnerDeletion"] == true {
        let why = format!("node {node:?} must not set blockOwnerDeletion on an owner reference");
        return doer.refuse(&why);
    }
    let own = world.get("nodes", "", node);
    let own = own.ok_or_else(|| Failure::not_found(About::new("", "node", node)))?;
    let (said, is) = (text(owner, "uid"), text(&own["metadata"], "uid"));
    if said != is {
        return doer.refuse(&format!("node {node} UID mismatch: expected {said} got {is}"));
    }
    match named(pod) {
        Some(kind) => {
            doer.refuse(&format!("node {node:?} can not create pods that reference {kind}"))
        }
        None => Ok(()),
    }
}

/// The kind of the first object that something in a specification names.
fn found(value: &Value, keys: &[(&str, &'static str)]) -> Option<&'static str> {
    match value {
        Value::Array(list) => list.iter().find_map(|one| found(one, keys)),
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            let known = keys.iter().find(|(name, _)| name == key);
            known.map(|(_, kind)| *kind).or_else(|| found(value, keys))
        }),
        _ => None,
    }
}

/// What objects a pod names, if any.
fn named(pod: &Value) -> Option<&'static str> {
    const KEYS: [(&str, &str); 9] = [
        ("secretKeyRef", "secrets"),
        ("secretRef", "secrets"),
        ("secret", "secrets"),
        ("imagePullSecrets", "secrets"),
        ("configMapKeyRef", "configmaps"),
        ("configMapRef", "configmaps"),
        ("configMap", "configmaps"),
        ("persistentVolumeClaim", "persistentvolumeclaims"),
        ("resourceClaims", "resourceclaims"),
    ];
    if !text(&pod["spec"], "serviceAccountName").is_empty() {
        return Some("serviceaccounts");
    }
    found(&pod["spec"], &KEYS)
}

fn own_node(doer: &Doer<'_>, deed: Deed<'_>, object: &Value) -> Result<(), Failure> {
    let node = doer.node;
    let name = text(&object["metadata"], "name");
    if name != node {
        return doer.refuse(&format!("node {node:?} is not allowed to modify node {name:?}"));
    }
    match deed {
        Deed::Create(new) => {
            let labels = forbidden(changed_labels(new, &Value::Null));
            if labels.is_empty() {
                return Ok(());
            }
            let labels = labels.join(", ");
            doer.refuse(&format!(
                "node {node:?} is not allowed to set the following labels: {labels}"
            ))
        }
        Deed::Update(new, old, _) => {
            let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
            if list(&new["spec"]["taints"]) != list(&old["spec"]["taints"]) {
                return doer.refuse(&format!("node {node:?} is not allowed to modify taints"));
            }
            let owners = |object: &Value| list(&object["metadata"]["ownerReferences"]);
            if owners(new) != owners(old) {
                let why = format!("node {node:?} is not allowed to modify ownerReferences");
                return doer.refuse(&why);
            }
            let labels = forbidden(changed_labels(new, old));
            if labels.is_empty() {
                return Ok(());
            }
            doer.refuse(&format!("is not allowed to modify labels: {}", labels.join(", ")))
        }
        Deed::Delete(_) | Deed::Evict(_) => Ok(()),
    }
}

fn lease(doer: &Doer<'_>, object: &Value) -> Result<(), Failure> {
    if text(&object["metadata"], "namespace") != LEASES {
        return doer.refuse(&format!("can only access leases in the {LEASES:?} system namespace"));
    }
    if text(&object["metadata"], "name") != doer.node {
        let why = "can only access node lease with the same name as the requesting node";
        return doer.refuse(why);
    }
    Ok(())
}

/// The keys of labels that differ.
fn changed_labels<'a>(new: &'a Value, old: &'a Value) -> BTreeSet<&'a str> {
    let labels = |object: &'a Value| object["metadata"]["labels"].as_object();
    let (new, old) = (labels(new), labels(old));
    let keys = new.into_iter().chain(old).flat_map(|labels| labels.keys().map(String::as_str));
    let value = |labels: Option<&'a serde_json::Map<String, Value>>, key: &str| labels?.get(key);
    keys.filter(|key| value(new, key) != value(old, key)).collect()
}

/// Labels of Kubernetes that a node may say of itself.
const KNOWN: [&str; 11] = [
    "kubernetes.io/hostname",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "beta.kubernetes.io/instance-type",
    "node.kubernetes.io/instance-type",
    "kubernetes.io/os",
    "kubernetes.io/arch",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
];

/// Those by which pods could be drawn to a node that was not meant for them.
fn forbidden(keys: BTreeSet<&str>) -> Vec<&str> {
    let is_forbidden = |key: &&str| {
        let domain = key.split_once('/').map_or("", |(domain, _)| domain);
        let within = |one: &str| {
            domain == one || domain.strip_suffix(one).is_some_and(|rest| rest.ends_with('.'))
        };
        let is_known =
            KNOWN.contains(key) || within("kubelet.kubernetes.io") || within("node.kubernetes.io");
        within("node-restriction.kubernetes.io")
            || ((within("kubernetes.io") || within("k8s.io")) && !is_known)
    };
    keys.into_iter().filter(is_forbidden).collect()
}

/// Refuses a node a token that does not end with a pod of its own, or is for somebody whom that pod does
/// not talk to. `account` is whose it is, `request` what is asked.
pub(crate) fn token(
    world: &dyn World,
    caller: &Caller,
    (namespace, account): (&str, &str),
    request: &Value,
) -> Result<(), Failure> {
    let Some(node) = node(caller) else { return Ok(()) };
    let doer = Doer { node, about: About::new("", "serviceaccounts", account) };
    let bound = &request["spec"]["boundObjectRef"];
    let name = text(bound, "name");
    if (text(bound, "apiVersion"), text(bound, "kind")) != ("v1", "Pod") || name.is_empty() {
        return doer.refuse("node requested token not bound to a pod");
    }
    let uid = text(bound, "uid");
    if uid.is_empty() {
        return doer.refuse("node requested token with a pod binding without a uid");
    }
    let pod = world.get("pods", namespace, name);
    let pod = pod.ok_or_else(|| Failure::not_found(About::new("", "pod", name)))?;
    if pod["metadata"]["uid"] != uid {
        return doer.refuse(&format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
        ));
    }
    if pod["spec"]["nodeName"] != node {
        return doer.refuse("node requested token bound to a pod scheduled on a different node");
    }
    let audiences = request["spec"]["audiences"].as_array().map_or(&[][..], Vec::as_slice);
    let audience = match audiences {
        [] => "",
        [one] => one.as_str().unwrap_or_default(),
        _ => return doer.refuse("node may only request 0 or 1 audiences"),
    };
    let sources = pod["spec"]["volumes"].as_array().into_iter().flatten();
    let mut tokens = sources
        .filter_map(|volume| volume["projected"]["sources"].as_array())
        .flatten()
        .map(|source| &source["serviceAccountToken"])
        .filter(|token| token.is_object());
    if tokens.any(|token| text(token, "audience") == audience) {
        return Ok(());
    }
    doer.refuse(&format!(
        "audience {audience:?} not found in pod spec volume, {} is not authorized to request tokens for this audience",
        caller.name
    ))
}
