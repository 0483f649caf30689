//! Reads a pod from its JSON form.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::{GroupKey, Phase, Pod, PodName, Port};
use crate::Amounts;
use crate::affinity::{NodeAffinity, Required};
use crate::meta::Metadata;
use crate::peer::{self, PeerAffinity, Peers};
use crate::taint::Toleration;

/// Which gang a pod belongs to: the job's name.
const GANG: &str = "trainyard.dev/gang";
/// How many pods that gang has.
const GANG_SIZE: &str = "trainyard.dev/gang-size";
/// The PodGroup of a pod; two spellings are in use.
const POD_GROUP: [&str; 2] = ["scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name"];
/// The queue of a pod that has no PodGroup; two spellings are in use.
const QUEUE: [&str; 2] = ["scheduling.volcano.sh/queue-name", "volcano.sh/queue-name"];
const TASK: &str = "volcano.sh/task-spec";
const TASK_INDEX: &str = "volcano.sh/task-index";
pub(crate) const PREEMPTABLE: &str = "volcano.sh/preemptable";

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Wire {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    node_name: String,
    scheduler_name: String,
    priority: i64,
    priority_class_name: String,
    preemption_policy: Option<String>,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    overhead: BTreeMap<String, String>,
    node_selector: BTreeMap<String, String>,
    affinity: Affinity,
    tolerations: Vec<Toleration>,
    scheduling_gates: Vec<serde::de::IgnoredAny>,
    topology_spread_constraints: Vec<peer::SpreadWire>,
    volumes: Vec<Volume>,
    host_network: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Affinity {
    #[serde(rename = "nodeAffinity")]
    nodes: NodeAffinity,
    #[serde(rename = "podAffinity")]
    near: PeerAffinity,
    #[serde(rename = "podAntiAffinity")]
    away: PeerAffinity,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Volume {
    persistent_volume_claim: Option<ClaimSource>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaimSource {
    claim_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    resources: Resources,
    ports: Vec<PortWire>,
    restart_policy: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Resources {
    requests: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PortWire {
    #[serde(rename = "containerPort")]
    inside: u32,
    #[serde(rename = "hostPort")]
    on_node: u32,
    #[serde(rename = "hostIP")]
    host_ip: String,
    protocol: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    phase: String,
    reason: String,
    nominated_node_name: String,
    conditions: Vec<Condition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    message: String,
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Wire::deserialize(reader).map(Self::from)
    }
}

impl From<Wire> for Pod {
    fn from(wire: Wire) -> Self {
        let Wire { metadata, spec, status } = wire;
        let (group, gang_size) = group(&metadata);
        let named = |keys: &[&str]| keys.iter().find_map(|key| metadata.annotations.get(*key));
        let marked = |key: &str| metadata.marked(key);
        let is_spared = marked(PREEMPTABLE).is_some_and(|said| said == "false");
        let is_system = metadata.namespace == "kube-system"
            || matches!(
                spec.priority_class_name.as_str(),
                "system-cluster-critical" | "system-node-critical"
            );
        let (peers, beyond) = Peers::read(
            &metadata.labels,
            &spec.affinity.near,
            &spec.affinity.away,
            &spec.topology_spread_constraints,
        );
        Self {
            asks: asks(&spec),
            ports: ports(&spec),
            peers,
            beyond,
            group,
            gang_size,
            queue: named(&QUEUE).cloned(),
            task: marked(TASK).cloned().unwrap_or_default(),
            index: marked(TASK_INDEX).and_then(|index| index.parse().ok()).unwrap_or(0),
            claims: claims(&spec),
            required: Required::new(spec.node_selector, spec.affinity.nodes),
            version: metadata.version(),
            created: metadata.created(),
            is_leaving: metadata.is_leaving(),
            uid: metadata.uid,
            is_gated: !spec.scheduling_gates.is_empty(),
            node: spec.node_name,
            is_refused: is_refusal(&status.reason),
            said: said(status.conditions),
            nominated: status.nominated_node_name,
            phase: match status.phase.as_str() {
                "Running" => Phase::Running,
                "Succeeded" => Phase::Succeeded,
                "Failed" => Phase::Failed,
                _ => Phase::Pending,
            },
            priority: spec.priority,
            may_preempt: spec.preemption_policy.as_deref() != Some("Never"),
            is_preemptable: !is_spared && !is_system,
            scheduler: spec.scheduler_name,
            tolerations: spec.tolerations,
            labels: metadata.labels,
            key: PodName { namespace: metadata.namespace, name: metadata.name },
        }
    }
}

fn group(metadata: &Metadata) -> (GroupKey, Option<usize>) {
    let namespace = metadata.namespace.clone();
    let annotations = &metadata.annotations;
    if let Some(name) = POD_GROUP.iter().find_map(|key| annotations.get(*key)) {
        return (GroupKey::PodGroup { namespace, name: name.clone() }, None);
    }
    let size = annotations.get(GANG_SIZE).and_then(|size| size.parse().ok());
    if let (Some(name), Some(size)) = (annotations.get(GANG), size) {
        return (GroupKey::Gang { namespace, name: name.clone() }, Some(size));
    }
    (GroupKey::Pod { namespace, name: metadata.name.clone() }, None)
}

/// Whether a node has refused the pod that was bound to it.
fn is_refusal(reason: &str) -> bool {
    reason.starts_with("OutOf") || matches!(reason, "NodeAffinity" | "UnexpectedAdmissionError")
}

/// What its status says of why it has no node.
fn said(conditions: Vec<Condition>) -> Option<Arc<str>> {
    let waits = |one: &Condition| one.r#type == "PodScheduled" && one.status == "False";
    conditions.into_iter().find(waits).map(|one| one.message.into())
}

fn claims(spec: &Spec) -> Vec<String> {
    let claims = spec.volumes.iter().filter_map(|volume| volume.persistent_volume_claim.as_ref());
    claims.map(|claim| claim.claim_name.clone()).collect()
}

/// What the pod needs at its worst moment: all containers together, or one initial container
/// before them beside those that stay. And one place among the node's pods.
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
    together.put(crate::vector::PODS, 1);
    together
}

fn ports(spec: &Spec) -> Vec<Port> {
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json};

    use super::*;

    fn pod(value: Value) -> Pod {
        from_value(value).unwrap()
    }

    #[test]
    fn what_a_pod_asks_for_at_its_worst_moment() {
        let cpu = |amount: &str| json!({"resources": {"requests": {"cpu": amount}}});
        let mut sidecar = cpu("100m");
        sidecar["restartPolicy"] = json!("Always");
        let pod = pod(json!({"spec": {
            "containers": [cpu("1"), cpu("500m")],
            "initContainers": [sidecar, cpu("3")],
            "overhead": {"cpu": "10m"},
        }}));
        assert_eq!((pod.asks.get("cpu"), pod.asks.get("pods")), (3110, 1));
    }

    #[test]
    fn ports_of_the_node() {
        let pod = pod(json!({"spec": {"hostNetwork": true, "containers": [
            {"ports": [{"containerPort": 2222}, {"containerPort": 1, "hostPort": 80, "protocol": "UDP"}]},
        ]}}));
        let port = |protocol: &str, number| ("0.0.0.0".to_owned(), protocol.to_owned(), number);
        assert_eq!(pod.ports, [port("TCP", 2222), port("UDP", 80)]);
    }

    #[test]
    fn a_gang_needs_a_name_and_a_size() {
        let annotated = |annotations| {
            let pod = pod(json!({"metadata":
                {"namespace": "n", "name": "p", "annotations": annotations}}));
            (pod.group, pod.gang_size)
        };
        let alone = GroupKey::Pod { namespace: "n".into(), name: "p".into() };
        assert_eq!(annotated(json!({GANG: "g"})), (alone.clone(), None));
        assert_eq!(annotated(json!({GANG: "g", GANG_SIZE: "x"})), (alone, None));
        let gang = GroupKey::Gang { namespace: "n".into(), name: "g".into() };
        assert_eq!(annotated(json!({GANG: "g", GANG_SIZE: "3"})), (gang, Some(3)));
        let group = GroupKey::PodGroup { namespace: "n".into(), name: "v".into() };
        assert_eq!(annotated(json!({POD_GROUP[0]: "v", GANG: "g"})), (group, None));
    }

    #[test]
    fn who_may_be_evicted() {
        assert!(pod(json!({})).is_preemptable);
        assert!(!pod(json!({"metadata": {"labels": {PREEMPTABLE: "false"}}})).is_preemptable);
        assert!(!pod(json!({"metadata": {"namespace": "kube-system"}})).is_preemptable);
        let critical = json!({"spec": {"priorityClassName": "system-node-critical"}});
        assert!(!pod(critical).is_preemptable);
        assert!(!pod(json!({"spec": {"preemptionPolicy": "Never"}})).may_preempt);
    }
}
