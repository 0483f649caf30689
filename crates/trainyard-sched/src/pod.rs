//! A pod as the scheduler sees it.
//!
//! Owns reading it from its JSON form. Must not know nodes.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Amounts;
use crate::affinity::Required;
use crate::taint::Toleration;

/// Which gang a pod belongs to: the job's name.
const GANG: &str = "trainyard.dev/gang";
/// How many pods that gang has.
const GANG_SIZE: &str = "trainyard.dev/gang-size";

/// Namespace and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A group of pods that run all together or not at all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gang {
    /// The namespace of its pods.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    /// Where it is found.
    pub key: PodName,
    /// Its identity.
    pub uid: String,
    /// Its version; 0 when versions cannot be compared.
    pub version: u64,
    /// When it was made, as the API server wrote it; such texts sort by time.
    pub created: String,
    /// The node it is bound to; empty while it waits.
    pub node: String,
    /// Whether it has ended or is being deleted before it was bound.
    pub is_over: bool,
    /// Whether it is being deleted.
    pub is_leaving: bool,
    /// Whether something keeps it from being looked at (`schedulingGates`).
    pub is_gated: bool,
    /// Its priority.
    pub priority: i64,
    /// Who is to schedule it.
    pub scheduler: String,
    /// What it asks for.
    pub asks: Amounts,
    /// Ports of the node that it wants: address, protocol, port.
    pub ports: Vec<(String, String, u32)>,
    /// The gang it belongs to, and how many pods that has.
    pub gang: Option<(Gang, usize)>,
    /// What its node must look like.
    pub(crate) required: Required,
    pub(crate) tolerations: Vec<Toleration>,
    /// What it asks for that this scheduler cannot take into account.
    pub(crate) beyond: Option<&'static str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wire {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: String,
    scheduler_name: String,
    priority: i64,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    overhead: BTreeMap<String, String>,
    node_selector: BTreeMap<String, String>,
    affinity: crate::affinity::Wire,
    tolerations: Vec<Toleration>,
    scheduling_gates: Vec<serde::de::IgnoredAny>,
    topology_spread_constraints: Vec<Spread>,
    host_network: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spread {
    when_unsatisfiable: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    resources: Resources,
    ports: Vec<Port>,
    restart_policy: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Port {
    #[serde(rename = "containerPort")]
    inside: u32,
    #[serde(rename = "hostPort")]
    on_node: u32,
    #[serde(rename = "hostIP")]
    host_ip: String,
    protocol: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Status {
    phase: String,
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Wire::deserialize(reader).map(Self::from)
    }
}

impl From<Wire> for Pod {
    fn from(wire: Wire) -> Self {
        let Wire { metadata, spec, status } = wire;
        let is_leaving = metadata.deletion_timestamp.is_some();
        let ended = matches!(status.phase.as_str(), "Succeeded" | "Failed");
        let gang = gang(&metadata);
        Self {
            asks: asks(&spec),
            ports: ports(&spec),
            beyond: beyond(&spec),
            required: Required::new(spec.node_selector, spec.affinity),
            key: PodName { namespace: metadata.namespace, name: metadata.name },
            uid: metadata.uid,
            version: metadata.resource_version.parse().unwrap_or(0),
            created: metadata.creation_timestamp.unwrap_or_default(),
            is_over: ended || (is_leaving && spec.node_name.is_empty()),
            is_leaving,
            is_gated: !spec.scheduling_gates.is_empty(),
            node: spec.node_name,
            priority: spec.priority,
            scheduler: spec.scheduler_name,
            gang,
            tolerations: spec.tolerations,
        }
    }
}

fn gang(metadata: &Metadata) -> Option<(Gang, usize)> {
    let name = metadata.annotations.get(GANG)?.clone();
    let size = metadata.annotations.get(GANG_SIZE)?.parse().ok()?;
    Some((Gang { namespace: metadata.namespace.clone(), name }, size))
}

/// What the pod needs at its worst moment: all containers together, or one initial container
/// before them beside those that stay.
fn asks(spec: &Spec) -> Amounts {
    let mut together = Amounts::default();
    for container in &spec.containers {
        together.add(&Amounts::read(&container.resources.requests));
    }
    let mut staying = Amounts::default();
    let mut worst = Amounts::default();
    for container in &spec.init_containers {
        let own = Amounts::read(&container.resources.requests);
        if container.restart_policy.as_deref() == Some("Always") {
            staying.add(&own);
            worst.most(&staying);
        } else {
            let mut moment = staying.clone();
            moment.add(&own);
            worst.most(&moment);
        }
    }
    together.add(&staying);
    together.most(&worst);
    together.add(&Amounts::read(&spec.overhead));
    together
}

fn ports(spec: &Spec) -> Vec<(String, String, u32)> {
    let all = spec.containers.iter().flat_map(|container| &container.ports);
    let wanted = all.filter_map(|port| {
        let number = match (port.on_node, spec.host_network) {
            (0, true) => port.inside,
            (0, false) => return None,
            (number, _) => number,
        };
        let protocol = if port.protocol.is_empty() { "TCP" } else { &port.protocol };
        let address = if port.host_ip.is_empty() { "0.0.0.0" } else { &port.host_ip };
        Some((address.to_owned(), protocol.to_owned(), number))
    });
    wanted.collect()
}

/// What would have to look at other pods.
fn beyond(spec: &Spec) -> Option<&'static str> {
    if spec.affinity.has_pod_terms() {
        return Some("required pod affinity or anti-affinity");
    }
    let is_hard = |spread: &Spread| spread.when_unsatisfiable != "ScheduleAnyway";
    spec.topology_spread_constraints.iter().any(is_hard).then_some("topologySpreadConstraints")
}

#[cfg(test)]
mod tests {
    use serde_json::{from_value, json};

    use super::*;

    #[test]
    fn what_a_pod_asks_for_at_its_worst_moment() {
        let cpu = |amount: &str| json!({"resources": {"requests": {"cpu": amount}}});
        let mut sidecar = cpu("100m");
        sidecar["restartPolicy"] = json!("Always");
        let pod: Pod = from_value(json!({"spec": {
            "containers": [cpu("1"), cpu("500m")],
            "initContainers": [sidecar, cpu("3")],
            "overhead": {"cpu": "10m"},
        }}))
        .unwrap();
        assert_eq!(pod.asks.get("cpu"), 3110);
    }

    #[test]
    fn ports_of_the_node() {
        let pod: Pod = from_value(json!({"spec": {"hostNetwork": true, "containers": [
            {"ports": [{"containerPort": 2222}, {"containerPort": 1, "hostPort": 80, "protocol": "UDP"}]},
        ]}}))
        .unwrap();
        let port = |protocol: &str, number| ("0.0.0.0".to_owned(), protocol.to_owned(), number);
        assert_eq!(pod.ports, [port("TCP", 2222), port("UDP", 80)]);
    }

    #[test]
    fn a_gang_needs_a_name_and_a_size() {
        let annotated = |annotations| {
            let pod: Pod = from_value(json!({
                "metadata": {"namespace": "n", "annotations": annotations}}))
            .unwrap();
            pod.gang
        };
        assert_eq!(annotated(json!({GANG: "g"})), None);
        assert_eq!(annotated(json!({GANG: "g", GANG_SIZE: "x"})), None);
        let gang = Gang { namespace: "n".into(), name: "g".into() };
        assert_eq!(annotated(json!({GANG: "g", GANG_SIZE: "3"})), Some((gang, 3)));
    }
}
