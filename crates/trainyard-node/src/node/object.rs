//! The Node object and the patches that keep it true. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeStatus,
    NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Map, Value, json};

use super::facts::{Limits, NodeFacts, Readiness};

/// Marks a Node as an agent's of ours, and says which.
pub(super) const AGENT_ANNOTATION: &str = "trainyard.dev/agent";
const SANDBOX_LABEL: &str = "trainyard.dev/sandbox";
const NETWORK_LABEL: &str = "trainyard.dev/network";
const ROOTLESS_LABEL: &str = "trainyard.dev/rootless";
/// The Kubernetes release whose kubelet contract is kept.
const KUBERNETES: &str = "v1.33.0";
pub(super) const RUNTIME: &str = "trainyard://";

/// The whole Node, as it is first registered.
pub(crate) fn node_object(facts: &NodeFacts, now: Timestamp) -> Node {
    Node {
        metadata: ObjectMeta {
            name: Some(facts.name.clone()),
            labels: Some(labels(facts)),
            annotations: Some(annotations(facts)),
            ..ObjectMeta::default()
        },
        spec: None,
        status: Some(NodeStatus {
            addresses: Some(addresses(facts)),
            allocatable: Some(facts.allocatable.clone()),
            capacity: Some(facts.capacity.clone()),
            conditions: Some(conditions(facts, &[], now)),
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint { port: i32::from(facts.port) }),
            }),
            node_info: Some(system_info(facts)),
            ..NodeStatus::default()
        }),
    }
}

/// An API server takes the first address of a type to ask for logs; the second is the one that pods
/// know. No host name: most API servers would take that before any address.
fn addresses(facts: &NodeFacts) -> Vec<NodeAddress> {
    let mut addresses = vec![facts.address, facts.inside.into()];
    addresses.dedup();
    let named = |address: IpAddr| NodeAddress {
        type_: "InternalIP".to_owned(),
        address: address.to_string(),
    };
    addresses.into_iter().map(named).collect()
}

/// The same as JSON, with what the types here do not know.
pub(super) fn node_json(facts: &NodeFacts, now: Timestamp) -> Value {
    let mut node = json!(node_object(facts, now));
    node["status"]["declaredFeatures"] = json!(facts.declared_features);
    node
}

fn annotations(facts: &NodeFacts) -> BTreeMap<String, String> {
    BTreeMap::from([(AGENT_ANNOTATION.to_owned(), facts.agent.to_string())])
}

fn labels(facts: &NodeFacts) -> BTreeMap<String, String> {
    let mut labels = facts.labels.clone();
    for (name, value) in [
        ("kubernetes.io/hostname", facts.name.as_str()),
        ("kubernetes.io/os", "linux"),
        ("kubernetes.io/arch", facts.machine.architecture),
        ("beta.kubernetes.io/os", "linux"),
        ("beta.kubernetes.io/arch", facts.machine.architecture),
        (SANDBOX_LABEL, &facts.sandbox),
        (NETWORK_LABEL, &facts.network),
        (ROOTLESS_LABEL, if facts.rootless { "true" } else { "false" }),
    ] {
        labels.insert(name.to_owned(), value.to_owned());
    }
    labels
}

fn system_info(facts: &NodeFacts) -> NodeSystemInfo {
    let machine = &facts.machine;
    let version = env!("CARGO_PKG_VERSION");
    NodeSystemInfo {
        architecture: machine.architecture.to_owned(),
        boot_id: machine.boot_id.clone(),
        container_runtime_version: format!("{RUNTIME}{version}"),
        kernel_version: machine.kernel.clone(),
        kubelet_version: format!("{KUBERNETES}-trainyard.{version}"),
        machine_id: machine.id.clone(),
        operating_system: "linux".to_owned(),
        os_image: machine.os_image.clone(),
        system_uuid: machine.system_uuid.clone(),
        ..NodeSystemInfo::default()
    }
}

/// The conditions, in a kubelet's order and words; `Ready` is the last. `before` is what the Node said.
fn conditions(facts: &NodeFacts, before: &[NodeCondition], now: Timestamp) -> Vec<NodeCondition> {
    let flag = |set: bool| if set { "True" } else { "False" };
    let pressure = facts.pressure;
    let choose = |short: bool, yes: [&'static str; 2], no: [&'static str; 2]| {
        if short { yes } else { no }
    };
    let [memory_reason, memory_message] = choose(
        pressure.memory,
        ["KubeletHasInsufficientMemory", "kubelet has insufficient memory available"],
        ["KubeletHasSufficientMemory", "kubelet has sufficient memory available"],
    );
    let [disk_reason, disk_message] = choose(
        pressure.disk,
        ["KubeletHasDiskPressure", "kubelet has disk pressure"],
        ["KubeletHasNoDiskPressure", "kubelet has no disk pressure"],
    );
    let [pid_reason, pid_message] = choose(
        pressure.pids,
        ["KubeletHasInsufficientPID", "kubelet has insufficient PID available"],
        ["KubeletHasSufficientPID", "kubelet has sufficient PID available"],
    );
    let (limits, limits_reason, limits_message) = match &facts.limits {
        Limits::Enforced(by) => (true, "Cgroups", format!("limits are enforced by {by}")),
        Limits::NotEnforced(why) => (false, "NoCgroups", format!("limits are not enforced: {why}")),
    };
    let (ready, ready_reason, ready_message) = match &facts.readiness {
        Readiness::Ready => (true, "KubeletReady", "kubelet is posting ready status"),
        Readiness::NotReady { reason, message } => (false, reason.as_str(), message.as_str()),
    };
    [
        ("MemoryPressure", flag(pressure.memory), memory_reason, memory_message),
        ("DiskPressure", flag(pressure.disk), disk_reason, disk_message),
        ("PIDPressure", flag(pressure.pids), pid_reason, pid_message),
        ("LimitsEnforced", flag(limits), limits_reason, limits_message.as_str()),
        ("Ready", flag(ready), ready_reason, ready_message),
    ]
    .into_iter()
    .map(|(kind, status, reason, message)| {
        let unchanged = before.iter().find(|one| one.type_ == kind && one.status == status);
        let since = unchanged.and_then(|one| one.last_transition_time.clone());
        NodeCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(Time(now)),
            last_transition_time: Some(since.unwrap_or(Time(now))),
        }
    })
    .collect()
}

/// The strategic merge patch of the status that makes `there` say `facts`. Conditions of other types
/// than ours stay; resources that are no longer there go.
pub(super) fn status_patch(facts: &NodeFacts, there: &Node, now: Timestamp) -> Value {
    let wanted = node_json(facts, now);
    let was = there.status.clone().unwrap_or_default();
    let mut status = wanted["status"].clone();
    status["conditions"] = json!(conditions(facts, was.conditions.as_deref().unwrap_or(&[]), now));
    for (field, before) in [("capacity", &was.capacity), ("allocatable", &was.allocatable)] {
        if let Some(amounts) = status[field].as_object_mut() {
            drop_missing(amounts, before.iter().flatten().map(|(name, _)| name));
        }
    }
    // Addresses are merged by type unless this element says otherwise.
    if let Some(addresses) = status["addresses"].as_array_mut() {
        addresses.push(json!({ "$patch": "replace" }));
    }
    json!({ "status": status })
}

fn drop_missing<'a>(wanted: &mut Map<String, Value>, before: impl Iterator<Item = &'a String>) {
    for name in before {
        wanted.entry(name.clone()).or_insert(Value::Null);
    }
}

/// The merge patch of the metadata that makes `there` ours; none when nothing is to change.
pub(super) fn metadata_patch(facts: &NodeFacts, there: &Node) -> Option<Value> {
    let (labels, annotations) = (labels(facts), annotations(facts));
    let holds = |held: Option<&BTreeMap<String, String>>, wanted: &BTreeMap<String, String>| {
        wanted.iter().all(|(name, value)| held.and_then(|held| held.get(name)) == Some(value))
    };
    let current = holds(there.metadata.labels.as_ref(), &labels)
        && holds(there.metadata.annotations.as_ref(), &annotations);
    (!current).then(|| json!({ "metadata": { "labels": labels, "annotations": annotations } }))
}

/// Whether the Node's status says something else than `facts`, times aside.
pub(super) fn status_differs(facts: &NodeFacts, there: &Node) -> bool {
    let wanted = node_object(facts, Timestamp::UNIX_EPOCH).status.unwrap_or_default();
    let is = there.status.clone().unwrap_or_default();
    let told = |one: &NodeCondition| {
        (one.type_.clone(), one.status.clone(), one.reason.clone(), one.message.clone())
    };
    let said: Vec<_> = is.conditions.iter().flatten().map(told).collect();
    wanted.conditions.iter().flatten().map(told).any(|one| !said.contains(&one))
        || wanted.capacity != is.capacity
        || wanted.allocatable != is.allocatable
        || wanted.addresses != is.addresses
        || wanted.daemon_endpoints != is.daemon_endpoints
        || wanted.node_info != is.node_info
}

#[cfg(test)]
#[path = "object_tests.rs"]
pub(super) mod tests;
