//! Whether the node takes a pod that is bound to it, in a kubelet's order and words. Pure.
//!
//! Like a kubelet it ignores extended resources that the node does not have at all: they may belong to
//! the cluster. Must not know devices or the network: it only counts.

mod affinity;
mod ports;
mod requests;
mod taints;

use k8s_openapi::api::core::v1::{Node, Pod};

use requests::Totals;

/// Why a pod is not taken; it fails with these in its status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    /// `OutOfcpu`, `NodePorts`, ….
    pub(crate) reason: String,
    pub(crate) message: String,
}

impl Rejection {
    fn new(reason: &str, message: impl Into<String>) -> Self {
        Self { reason: reason.to_owned(), message: message.into() }
    }

    fn predicate(name: &str, description: &str) -> Self {
        Self::new(name, format!("Predicate {name} failed: {description}"))
    }
}

/// Admits `pod` beside `others`, or says why not. Of `others`, those that have ended and the pod
/// itself count for nothing. `node` is as the API server has it: labels, taints and allocatable
/// resources are taken from there.
pub(crate) fn admit(pod: &Pod, others: &[&Pod], node: &Node) -> Result<(), Rejection> {
    operating_system(pod)?;
    supplemental_groups(pod, node)?;
    let others: Vec<&Pod> = others.iter().copied().filter(|other| counts(other, pod)).collect();
    resources(pod, &others, node)?;
    if !affinity::matches(pod, node) {
        let description = "node(s) didn't match Pod's node affinity/selector";
        return Err(Rejection::predicate("NodeAffinity", description));
    }
    let wanted = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
    if !wanted.is_empty() && Some(wanted) != node.metadata.name.as_deref() {
        let description = "node(s) didn't match the requested node name";
        return Err(Rejection::predicate("NodeName", description));
    }
    if ports::clash(pod, &others) {
        let description = "node(s) didn't have free ports for the requested pod ports";
        return Err(Rejection::predicate("NodePorts", description));
    }
    if !taints::tolerates(pod, node) {
        let description = "node(s) had taints that the pod didn't tolerate";
        return Err(Rejection::predicate("TaintToleration", description));
    }
    Ok(())
}

/// Whether another pod still uses what it was given.
fn counts(other: &Pod, pod: &Pod) -> bool {
    let phase = other.status.as_ref().and_then(|status| status.phase.as_deref());
    let same = other.metadata.uid.is_some() && other.metadata.uid == pod.metadata.uid;
    !same && !matches!(phase, Some("Succeeded" | "Failed"))
}

fn operating_system(pod: &Pod) -> Result<(), Rejection> {
    let label = pod.metadata.labels.as_ref().and_then(|labels| labels.get("kubernetes.io/os"));
    if label.is_some_and(|name| name != "linux") {
        return Err(Rejection::new(
            "PodOSSelectorNodeLabelDoesNotMatch",
            "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
        ));
    }
    let field = pod.spec.as_ref().and_then(|spec| spec.os.as_ref());
    if field.is_some_and(|os| os.name != "linux") {
        return Err(Rejection::new(
            "PodOSNotSupported",
            "Failed to admit pod as the OS field doesn't match node OS",
        ));
    }
    Ok(())
}

fn supplemental_groups(pod: &Pod, node: &Node) -> Result<(), Rejection> {
    let supported = node
        .status
        .as_ref()
        .and_then(|status| status.features.as_ref()?.supplemental_groups_policy)
        .unwrap_or(false);
    let strict = pod
        .spec
        .as_ref()
        .and_then(|spec| spec.security_context.as_ref()?.supplemental_groups_policy.as_deref())
        == Some("Strict");
    if strict && !supported {
        return Err(Rejection::new(
            "SupplementalGroupsPolicyNotSupported",
            "SupplementalGroupsPolicy=Strict is not supported in this node",
        ));
    }
    Ok(())
}

fn resources(pod: &Pod, others: &[&Pod], node: &Node) -> Result<(), Rejection> {
    let allocatable = Totals::of(
        node.status.as_ref().and_then(|status| status.allocatable.as_ref()).into_iter().flatten(),
    );
    let short = |name: &str, requested: i64, used: i64, capacity: i64| {
        Err(Rejection::new(
            &format!("OutOf{name}"),
            format!(
                "Node didn't have enough resource: {name}, requested: {requested}, used: {used}, \
                 capacity: {capacity}"
            ),
        ))
    };
    let pods = i64::try_from(others.len()).unwrap_or(i64::MAX);
    let room = allocatable.get("pods");
    if pods >= room {
        return short("pods", 1, pods, room);
    }
    let asked = requests::of_pod(pod);
    let mut used = Totals::default();
    for other in others {
        used.add(&requests::of_pod(other));
    }
    let main = ["cpu", "memory", "ephemeral-storage"];
    let further = asked.names().filter(|name| {
        !main.contains(name)
            && requests::is_scalar(name)
            && (allocatable.has(name) || !requests::is_extended(name))
    });
    for name in main.into_iter().chain(further) {
        let (requested, taken, capacity) = (asked.get(name), used.get(name), allocatable.get(name));
        if requested > 0 && requested > capacity.saturating_sub(taken) {
            return short(name, requested, taken, capacity);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
