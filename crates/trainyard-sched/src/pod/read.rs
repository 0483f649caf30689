//! Reads a pod from its JSON form.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::IgnoredAny;
use trainyard_schema::refusal;

use super::asks::{Actuated, Asking, Resize, Resources, asks};
use super::fields::refused;
use super::sizes::excess;
use super::{GroupKey, Phase, Pod, PodName, Port};
use crate::Amounts;
use crate::affinity::{NodeAffinity, Required};
use crate::meta::Metadata;
use crate::peer::{self, PeerAffinity, Peers};
use crate::storage::InTree;
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
/// The priority of a pod among those of its job; without it that of the pod.
const TASK_PRIORITY: &str = "volcano.sh/task-priority";
/// What a container asks for under this name is allocated dynamically.
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";
/// What a node can do that restarts all containers of a pod when one ends.
const RESTARTS_ALL: &str = "RestartAllContainersOnContainerExits";
/// The rule of a container that asks for it.
const RESTART_ALL: &str = "RestartAllContainers";
/// What a node can do that has users of a pod's own in its own network.
const USERS_IN_HOST_NETWORK: &str = "UserNamespacesHostNetworkSupport";
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
pub(super) struct Spec {
    node_name: String,
    scheduler_name: String,
    priority: i64,
    priority_class_name: String,
    preemption_policy: Option<String>,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    resources: Option<Resources>,
    overhead: BTreeMap<String, String>,
    node_selector: BTreeMap<String, String>,
    affinity: Affinity,
    tolerations: Vec<Toleration>,
    scheduling_gates: Vec<IgnoredAny>,
    topology_spread_constraints: Vec<peer::SpreadWire>,
    volumes: Vec<Volume>,
    host_network: bool,
    host_users: Option<bool>,
    pub(super) resource_claims: Vec<IgnoredAny>,
    pub(super) scheduling_group: Option<IgnoredAny>,
}

impl Spec {
    fn all_containers(&self) -> impl Iterator<Item = &Container> {
        self.containers.iter().chain(&self.init_containers)
    }

    /// Whether the pod names a disk that only one pod can have, without a claim.
    pub(super) fn has_inline_disk(&self) -> bool {
        let is_one = |volume: &Volume| volume.iscsi.is_some() || volume.rbd.is_some();
        self.volumes.iter().any(|volume| is_one(volume) || volume.disk.is_for_one_pod())
    }

    /// Whether a container asks for devices of a class.
    pub(super) fn asks_for_device_classes(&self) -> bool {
        self.all_containers()
            .any(|one| one.resources.names().any(|at| at.starts_with(DEVICE_CLASS)))
    }

    /// How many terms it has about the pods around it.
    pub(super) fn peers(&self) -> usize {
        let Affinity { near, away, .. } = &self.affinity;
        near.len() + away.len() + self.topology_spread_constraints.len()
    }

    /// How many conditions on labels it has.
    pub(super) fn conditions(&self) -> usize {
        let Affinity { nodes, near, away } = &self.affinity;
        let spread = self.topology_spread_constraints.iter().map(peer::SpreadWire::conditions);
        self.node_selector.len()
            + nodes.conditions()
            + near.conditions()
            + away.conditions()
            + spread.sum::<usize>()
    }

    /// How many taints it tolerates.
    pub(super) fn tolerations(&self) -> usize {
        self.tolerations.len()
    }

    /// How many claims it mounts.
    pub(super) fn claims(&self) -> usize {
        let is_claim =
            |one: &&Volume| one.persistent_volume_claim.is_some() || one.ephemeral.is_some();
        self.volumes.iter().filter(is_claim).count()
    }

    /// How many ports its containers have.
    pub(super) fn ports(&self) -> usize {
        self.all_containers().map(|one| one.ports.len()).sum()
    }

    /// How many resources its containers ask for.
    pub(super) fn resources(&self) -> usize {
        let of_containers = self.all_containers().map(|one| one.resources.names().count());
        of_containers.sum::<usize>() + self.overhead.len()
    }

    /// What not all nodes can do and the pod needs.
    fn features(&self) -> Vec<&'static str> {
        let restarts_all = |one: &Container| {
            one.restart_policy_rules.iter().any(|rule| rule.action == RESTART_ALL)
        };
        let mut needed = Vec::new();
        needed.extend(self.all_containers().any(restarts_all).then_some(RESTARTS_ALL));
        let has_own_users = self.host_users == Some(false);
        needed.extend((self.host_network && has_own_users).then_some(USERS_IN_HOST_NETWORK));
        needed
    }
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
    name: String,
    persistent_volume_claim: Option<ClaimSource>,
    ephemeral: Option<IgnoredAny>,
    #[serde(flatten)]
    disk: InTree,
    iscsi: Option<IgnoredAny>,
    rbd: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaimSource {
    claim_name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    name: String,
    resources: Resources,
    ports: Vec<PortWire>,
    restart_policy: Option<String>,
    restart_policy_rules: Vec<Rule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rule {
    action: String,
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
    message: String,
    nominated_node_name: String,
    conditions: Vec<Condition>,
    resources: Option<Resources>,
    allocated_resources: BTreeMap<String, String>,
    container_statuses: Vec<Actuated>,
    init_container_statuses: Vec<Actuated>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
    message: String,
}

impl<'de> Deserialize<'de> for Pod {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        Wire::deserialize(reader).map(Self::from)
    }
}

impl From<Wire> for Pod {
    fn from(wire: Wire) -> Self {
        let Wire { metadata, spec, mut status } = wire;
        let resize = status.resize();
        let (claims, own_claims) = claims(&metadata.name, &spec);
        let (group, gang_size) = group(&metadata);
        let named = |keys: &[&str]| keys.iter().find_map(|key| metadata.annotations.get(*key));
        let marked = |key: &str| metadata.marked(key);
        let is_spared = marked(PREEMPTABLE).is_some_and(|said| said == "false");
        let is_system = metadata.namespace == "kube-system"
            || matches!(
                spec.priority_class_name.as_str(),
                "system-cluster-critical" | "system-node-critical"
            );
        let excess = excess(&spec);
        let beyond = refused(&spec).or(excess);
        let features = spec.features();
        let disks = spec.volumes.iter().filter_map(|volume| volume.disk.attached()).collect();
        let task_priority = metadata.annotations.get(TASK_PRIORITY);
        let task_priority = task_priority.and_then(|said| said.parse::<i32>().ok());
        let peers = || {
            Peers::read(
                &metadata.labels,
                &spec.affinity.near,
                &spec.affinity.away,
                &spec.topology_spread_constraints,
            )
        };
        let peers = if excess.is_none() { peers() } else { Peers::default() };
        Self {
            asks: asked(&spec, &resize),
            ports: ports(&spec),
            peers,
            beyond,
            features,
            disks,
            group,
            gang_size,
            queue: named(&QUEUE).cloned(),
            task: marked(TASK).cloned().unwrap_or_default(),
            index: marked(TASK_INDEX).and_then(|index| index.parse().ok()).unwrap_or(0),
            claims,
            own_claims,
            required: Required::new(spec.node_selector, spec.affinity.nodes),
            version: metadata.version(),
            created: metadata.created(),
            is_leaving: metadata.is_leaving(),
            uid: metadata.uid,
            is_gated: !spec.scheduling_gates.is_empty(),
            node: spec.node_name,
            is_refused: refusal::is_of_node(&status.reason, &status.message),
            said: said(status.conditions),
            nominated: status.nominated_node_name,
            phase: match status.phase.as_str() {
                "Running" => Phase::Running,
                "Succeeded" => Phase::Succeeded,
                "Failed" => Phase::Failed,
                _ => Phase::Pending,
            },
            priority: spec.priority,
            task_priority: task_priority.map_or(spec.priority, i64::from),
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

/// What its status says of why it has no node.
fn said(conditions: Vec<Condition>) -> Option<Arc<str>> {
    let waits = |one: &Condition| one.r#type == "PodScheduled" && one.status == "False";
    conditions.into_iter().find(waits).map(|one| one.message.into())
}

/// The claims of a pod by that name, and those among them that are made for it.
fn claims(pod: &str, spec: &Spec) -> (Vec<String>, Vec<String>) {
    let (mut all, mut own) = (Vec::new(), Vec::new());
    for volume in &spec.volumes {
        if let Some(claim) = &volume.persistent_volume_claim {
            all.push(claim.claim_name.clone());
        } else if volume.ephemeral.is_some() {
            let name = format!("{pod}-{}", volume.name);
            all.push(name.clone());
            own.push(name);
        }
    }
    (all, own)
}

fn asked(spec: &Spec, resize: &Resize) -> Amounts {
    asks(
        &spec.containers.iter().map(Container::asking).collect::<Vec<_>>(),
        &spec.init_containers.iter().map(Container::asking).collect::<Vec<_>>(),
        spec.resources.as_ref(),
        &spec.overhead,
        resize,
    )
}

impl Container {
    fn asking(&self) -> Asking<'_> {
        Asking {
            name: &self.name,
            resources: &self.resources,
            is_staying: self.restart_policy.as_deref() == Some("Always"),
        }
    }
}

impl Status {
    /// What it says of a resize in place.
    fn resize(&mut self) -> Resize {
        let mut containers = std::mem::take(&mut self.container_statuses);
        containers.append(&mut self.init_container_statuses);
        let pending = self.conditions.iter().find(|one| one.r#type == "PodResizePending");
        Resize {
            containers,
            pod: Actuated::of_pod(
                self.resources.take(),
                std::mem::take(&mut self.allocated_resources),
            ),
            is_infeasible: pending.is_some_and(|one| one.reason == "Infeasible"),
        }
    }
}

fn ports(spec: &Spec) -> Vec<Port> {
    let stays = |one: &&Container| one.restart_policy.as_deref() == Some("Always");
    let staying = spec.init_containers.iter().filter(stays);
    let all = staying.chain(&spec.containers).flat_map(|container| &container.ports);
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
    fn ports_of_the_node() {
        let pod = pod(json!({"spec": {"hostNetwork": true, "containers": [
            {"ports": [{"containerPort": 2222}, {"containerPort": 1, "hostPort": 80, "protocol": "UDP"}]},
        ], "initContainers": [
            {"ports": [{"containerPort": 1, "hostPort": 81}]},
            {"restartPolicy": "Always", "ports": [{"containerPort": 1, "hostPort": 82}]},
        ]}}));
        let port = |protocol: &str, number| ("0.0.0.0".to_owned(), protocol.to_owned(), number);
        assert_eq!(pod.ports, [port("TCP", 82), port("TCP", 2222), port("UDP", 80)]);
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
