//! What decisions read of pods and services, and nothing more.
//!
//! Reading one of these from an API object skips all other fields. Must not decide anything; what a
//! pod's phase means is judged in `phase`.

use std::{collections::BTreeMap, mem};

use jiff::Timestamp;
use serde::Deserialize;
use trainyard_api::{Meta, ReplicaId, ReplicaType, names, volcano::names as volcano};

use crate::phase::{InPlaceRestart, Phase, phase};

mod spec;

use spec::SpecWire;

/// What an object is for, by its labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// A replica of the job.
    Replica(ReplicaId),
    /// The TensorBoard beside it.
    TensorBoard,
    /// Nothing we know.
    Other,
}

/// A deletion that has been asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deletion {
    /// When the object is to be gone.
    pub due: Timestamp,
    /// The grace period that was granted, in seconds.
    pub grace_seconds: i64,
}

impl Deletion {
    /// When deletion was asked for. Nobody knows any more when the grace period has been cut to
    /// nothing, as a kubelet does for a pod that it has stopped: the API server then writes the present.
    #[must_use]
    pub fn asked_at(&self) -> Option<Timestamp> {
        let known = self.grace_seconds > 0;
        known.then(|| trainyard_api::time::after_seconds(self.due, -self.grace_seconds))
    }
}

/// A pod.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "PodWire")]
pub struct PodView {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its identity.
    pub uid: Box<str>,
    /// Its version.
    pub version: u64,
    /// UID of the controller that owns it.
    pub owner: Option<Box<str>>,
    /// Its node; empty while it has none.
    pub node: Box<str>,
    /// What it is for.
    pub role: Role,
    /// Attempt of the whole job it belongs to.
    pub attempt: i64,
    /// Whether it was made as one of a gang.
    pub is_gang_member: bool,
    /// What a pod of a Volcano Job says of itself; others say none of it.
    pub task: Option<Box<TaskView>>,
    /// Whether it is being deleted.
    pub deletion: Option<Deletion>,
    /// Its phase, as the kubelet publishes it once it has cleaned up after the containers.
    pub phase: Phase,
    /// Whether its kubelet has published that it has ended, and with it all there is to say of that.
    pub has_final_phase: bool,
    /// Why it is in that phase, in one word (`Evicted`, `NodeLost` …).
    pub reason: Box<str>,
    /// The same for people.
    pub message: Box<str>,
    /// It was ended by the cluster, not by its program.
    pub disrupted: bool,
    /// Who of the cluster ended it, in one word (`EvictionByEvictionAPI`, `DeletionByTaintManager`
    /// …); empty where nobody says so.
    pub disruption: Box<str>,
    /// Nobody knows what its containers do, because its node cannot be reached. What the pod itself
    /// shows of that; of its node it is learnt in [`crate::node`].
    pub unreachable: Option<Unreachable>,
    /// Why it has no node: reason and message.
    pub unscheduled: Option<(Box<str>, Box<str>)>,
    /// Its init containers.
    pub init_containers: Vec<ContainerView>,
    /// Its containers.
    pub containers: Vec<ContainerView>,
}

/// The node of a pod cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreachable {
    /// Since when, where the control plane has written it.
    pub since: Option<Timestamp>,
}

/// What a pod of a Volcano Job says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskView {
    /// The task it belongs to.
    pub name: Box<str>,
    /// Its index in the task.
    pub index: u32,
    /// Version of the job that it was made for.
    pub version: i64,
    /// Marked by the controller before it was deleted.
    pub is_marked: bool,
    /// Whether all its containers are ready of which something is known. A pod that runs before its
    /// kubelet has written of its containers is ready, as Volcano sees it.
    pub is_ready: bool,
}

/// A container of a pod.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerView {
    /// Its name.
    pub name: Box<str>,
    /// When the kubelet starts it again; of an init container that is `Always` it is a sidecar.
    pub restart: InPlaceRestart,
    /// Restarts in place.
    pub restarts: i64,
    /// What it does.
    pub state: ContainerState,
    /// How it ended before its last restart in place.
    pub last_end: Option<Box<LastEnd>>,
}

/// How a container ended before it was restarted in place.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct LastEnd {
    /// Exit code.
    pub exit_code: i64,
    /// One word from the kubelet.
    pub reason: Box<str>,
    /// Termination message.
    pub message: Box<str>,
}

/// What a container does.
#[derive(Debug, Clone, PartialEq)]
pub enum ContainerState {
    /// It waits.
    Waiting {
        /// For what, in one word.
        reason: Box<str>,
        /// The same for people.
        message: Box<str>,
    },
    /// It runs.
    Running {
        /// Since when.
        started_at: Option<Timestamp>,
    },
    /// It has ended.
    Terminated {
        /// Exit code.
        exit_code: i64,
        /// Signal number, where the runtime tells it.
        signal: i64,
        /// One word from the kubelet.
        reason: Box<str>,
        /// Termination message.
        message: Box<str>,
        /// Since when it ran.
        started_at: Option<Timestamp>,
        /// When it ended.
        finished_at: Option<Timestamp>,
    },
}

impl PodView {
    /// The container that trains.
    #[must_use]
    pub fn main_container(&self) -> Option<&ContainerView> {
        self.containers.iter().find(|container| &*container.name == names::CONTAINER)
    }

    /// Its init containers that end before the others start: all but sidecars.
    pub fn init_steps(&self) -> impl Iterator<Item = &ContainerView> {
        self.init_containers.iter().filter(|container| container.restart != InPlaceRestart::Always)
    }

    /// Restarts in place of all its containers.
    #[must_use]
    pub fn restarts(&self) -> i64 {
        self.init_containers.iter().chain(&self.containers).map(|c| c.restarts).sum()
    }

    /// Whether two versions of the pod look the same to every decision.
    #[must_use]
    pub fn same_facts(&self, other: &Self) -> bool {
        Self { version: 0, ..self.clone() } == Self { version: 0, ..other.clone() }
    }
}

/// A service.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(from = "ServiceWire")]
pub struct ServiceView {
    /// Its namespace.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its identity.
    pub uid: Box<str>,
    /// Its version.
    pub version: u64,
    /// UID of the controller that owns it.
    pub owner: Option<Box<str>>,
    /// What it is for.
    pub role: Role,
    /// Whether it is being deleted.
    pub deletion: Option<Deletion>,
}

#[derive(Deserialize)]
struct ServiceWire {
    metadata: Meta,
}

impl From<ServiceWire> for ServiceView {
    fn from(wire: ServiceWire) -> Self {
        let meta = wire.metadata;
        Self {
            role: role(&meta.labels),
            deletion: deletion(&meta),
            version: meta.version(),
            owner: meta.controller_uid().map(Into::into),
            namespace: meta.namespace.into(),
            name: meta.name.into(),
            uid: meta.uid.into(),
        }
    }
}

#[derive(Deserialize)]
struct PodWire {
    metadata: Meta,
    #[serde(default)]
    spec: SpecWire,
    #[serde(default)]
    status: StatusWire,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusWire {
    phase: Phase,
    reason: Box<str>,
    message: Box<str>,
    conditions: Vec<ConditionWire>,
    init_container_statuses: Vec<ContainerWire>,
    container_statuses: Vec<ContainerWire>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ConditionWire {
    r#type: Box<str>,
    status: Box<str>,
    reason: Box<str>,
    message: Box<str>,
    last_transition_time: Option<Timestamp>,
}

impl StatusWire {
    fn condition(&self, kind: &str, value: &str) -> Option<&ConditionWire> {
        self.conditions.iter().find(|c| &*c.r#type == kind && &*c.status == value)
    }

    /// The node controller turns `Ready` of the pods of a node that it cannot reach and leaves the
    /// rest as it was. A kubelet that writes `Ready=False` gives a reason, and says the same of the
    /// containers. In pods that were not ready the node controller writes nothing: of them only the
    /// node tells, see [`crate::node`].
    fn unreachable(&self) -> Option<Unreachable> {
        let unready = self.condition("Ready", "False");
        let since = unready.and_then(|ready| ready.last_transition_time);
        let turned = unready.is_some_and(|ready| ready.reason.is_empty())
            && self.condition("ContainersReady", "True").is_some();
        let lost = match self.phase {
            Phase::Unknown => true,
            Phase::Pending | Phase::Running => turned || &*self.reason == "NodeLost",
            Phase::Succeeded | Phase::Failed => false,
        };
        lost.then_some(Unreachable { since })
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerWire {
    name: Box<str>,
    ready: bool,
    restart_count: i64,
    state: StateWire,
    last_state: LastWire,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LastWire {
    terminated: Option<Box<LastEnd>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StateWire {
    waiting: Option<EndWire>,
    running: Option<EndWire>,
    terminated: Option<EndWire>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EndWire {
    exit_code: i64,
    signal: i64,
    reason: Box<str>,
    message: Box<str>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
}

impl From<PodWire> for PodView {
    fn from(wire: PodWire) -> Self {
        let PodWire { metadata: meta, spec, mut status } = wire;
        let is_ready = status.container_statuses.iter().all(|container| container.ready);
        let init_containers: Vec<ContainerView> = mem::take(&mut status.init_container_statuses)
            .into_iter()
            .map(|wire| wire.with(|name| spec.restart_init(name)))
            .collect();
        let containers: Vec<ContainerView> = mem::take(&mut status.container_statuses)
            .into_iter()
            .map(|wire| wire.with(|name| spec.restart(name)))
            .collect();
        let holds = |kind: &str, value: &str| status.condition(kind, value);
        let mark = holds("DisruptionTarget", "True");
        Self {
            // Written together with the group's name, which is not kept.
            is_gang_member: meta.annotations.contains_key(volcano::LABEL_TASK)
                || meta.labels.contains_key(names::LABEL_PLUGINS_GROUP),
            task: task(&meta, is_ready),
            role: role(&meta.labels),
            attempt: meta
                .labels
                .get(names::LABEL_ATTEMPT)
                .and_then(|attempt| attempt.parse().ok())
                .unwrap_or(0),
            deletion: deletion(&meta),
            version: meta.version(),
            owner: meta.controller_uid().map(Into::into),
            disrupted: mark.is_some(),
            disruption: mark.map(|mark| mark.reason.clone()).unwrap_or_default(),
            unreachable: status.unreachable(),
            unscheduled: holds("PodScheduled", "False")
                .map(|c| (c.reason.clone(), c.message.clone())),
            phase: phase(status.phase, mark.is_some(), &init_containers, &containers),
            has_final_phase: status.phase.is_finished(),
            reason: status.reason,
            message: status.message,
            node: spec.node_name,
            init_containers,
            containers,
            namespace: meta.namespace.into(),
            name: meta.name.into(),
            uid: meta.uid.into(),
        }
    }
}

impl ContainerWire {
    fn with(self, restart: impl FnOnce(&str) -> InPlaceRestart) -> ContainerView {
        let StateWire { waiting, running, terminated } = self.state;
        let state = if let Some(end) = terminated {
            ContainerState::Terminated {
                exit_code: end.exit_code,
                signal: end.signal,
                reason: end.reason,
                message: end.message,
                started_at: end.started_at,
                finished_at: end.finished_at,
            }
        } else if let Some(run) = running {
            ContainerState::Running { started_at: run.started_at }
        } else {
            let wait = waiting.unwrap_or_default();
            ContainerState::Waiting { reason: wait.reason, message: wait.message }
        };
        ContainerView {
            restart: restart(&self.name),
            name: self.name,
            restarts: self.restart_count,
            state,
            last_end: self.last_state.terminated,
        }
    }
}

fn deletion(meta: &Meta) -> Option<Deletion> {
    meta.deletion_timestamp
        .map(|due| Deletion { due, grace_seconds: meta.deletion_grace_period_seconds.unwrap_or(0) })
}

fn task(meta: &Meta, is_ready: bool) -> Option<Box<TaskView>> {
    let index = meta.labels.get(volcano::LABEL_INDEX)?.parse().ok()?;
    let said = |key: &str| meta.annotations.get(key).map(String::as_str);
    Some(Box::new(TaskView {
        name: meta.labels.get(volcano::LABEL_TASK)?.as_str().into(),
        index,
        version: said(volcano::ANNOTATION_VERSION).and_then(|text| text.parse().ok()).unwrap_or(0),
        is_marked: said(volcano::ANNOTATION_OUT_OF_SYNC) == Some("true"),
        is_ready,
    }))
}

fn role(labels: &BTreeMap<String, String>) -> Role {
    let index = labels.get(names::LABEL_INDEX).and_then(|index| index.parse::<u32>().ok());
    match (labels.get(names::LABEL_TYPE), index) {
        (Some(kind), Some(0)) if kind == names::TENSORBOARD => Role::TensorBoard,
        (Some(kind), Some(index)) => ReplicaType::parse(kind)
            .map_or(Role::Other, |kind| Role::Replica(ReplicaId { kind, index })),
        _ => Role::Other,
    }
}
