//! What is read of jobs and of their pods, and the status as it is written.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::controllers::view::{HasMeta, Meta, Owner, null_is_empty};

/// Keeps a pod until it has been counted.
pub(super) const TRACKING: &str = "batch.kubernetes.io/job-tracking";
/// The name of an index, as annotation and as label.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// What a job names as its controller when it means this one.
const OURSELVES: &str = "kubernetes.io/job-controller";

/// A job.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Job {
    pub(super) metadata: Meta,
    pub(super) spec: Spec,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) status: Status,
}

impl HasMeta for Job {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Spec {
    pub(super) parallelism: Option<u32>,
    pub(super) completions: Option<u32>,
    completion_mode: Option<String>,
    pub(super) backoff_limit: Option<u32>,
    pub(super) active_deadline_seconds: Option<u64>,
    pub(super) ttl_seconds_after_finished: Option<u64>,
    suspend: Option<bool>,
    pub(super) selector: Value,
    pub(super) template: Template,
    managed_by: Option<String>,
    pod_failure_policy: Option<Value>,
    success_policy: Option<Value>,
    backoff_limit_per_index: Option<Value>,
    pod_replacement_policy: Option<String>,
}

/// What is read of the pod template; the rest is only copied.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Template {
    spec: TemplateSpec,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TemplateSpec {
    restart_policy: String,
}

/// A job's status: everything it can hold, so that nothing is lost when it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub(super) conditions: Vec<Condition>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) start_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) completion_time: Option<String>,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) active: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) succeeded: u32,
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) failed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) terminating: Option<u32>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) completed_indexes: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_indexes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) uncounted_terminated_pods: Option<Uncounted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ready: Option<u32>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Pods that have ended and still have the finalizer: they are not in the numbers yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Uncounted {
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub(super) succeeded: Vec<String>,
    #[serde(deserialize_with = "null_is_empty", skip_serializing_if = "Vec::is_empty")]
    pub(super) failed: Vec<String>,
}

impl Uncounted {
    pub(super) fn len(&self) -> usize {
        self.succeeded.len() + self.failed.len()
    }
}

/// A condition of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Condition {
    pub(super) r#type: String,
    pub(super) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_probe_time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_transition_time: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) reason: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) message: String,
}

impl Job {
    pub(super) fn is_indexed(&self) -> bool {
        self.spec.completion_mode.as_deref() == Some("Indexed")
    }

    pub(super) fn is_suspended(&self) -> bool {
        self.spec.suspend == Some(true)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.status.holds("Complete") || self.status.holds("Failed")
    }

    pub(super) fn restarts_in_place(&self) -> bool {
        self.spec.template.spec.restart_policy == "OnFailure"
    }

    /// Whether others look after it.
    pub(super) fn is_managed_elsewhere(&self) -> bool {
        self.spec.managed_by.as_deref().is_some_and(|by| by != OURSELVES)
    }

    /// A field by which it asks for something that is not done here. The embedded server refuses
    /// such jobs; another may not.
    pub(super) fn unsupported(&self) -> Option<&'static str> {
        let spec = &self.spec;
        let replaced = spec.pod_replacement_policy.as_deref();
        [
            ("podFailurePolicy", spec.pod_failure_policy.is_some()),
            ("successPolicy", spec.success_policy.is_some()),
            ("backoffLimitPerIndex", spec.backoff_limit_per_index.is_some()),
            ("podReplacementPolicy", replaced.is_some_and(|policy| policy == "Failed")),
        ]
        .into_iter()
        .find_map(|(field, is_set)| is_set.then_some(field))
    }
}

impl Status {
    pub(super) fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.r#type == kind)
    }

    /// Whether a condition is true.
    pub(super) fn holds(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == "True")
    }
}

/// A pod.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Pod {
    pub(super) metadata: Meta,
    pub(super) spec: PodSpec,
    pub(super) status: PodStatus,
}

impl HasMeta for Pod {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodSpec {
    pub(super) node_name: String,
    #[serde(deserialize_with = "null_is_empty")]
    init_containers: Vec<InitContainer>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InitContainer {
    name: String,
    restart_policy: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct PodStatus {
    pub(super) phase: String,
    #[serde(deserialize_with = "null_is_empty")]
    conditions: Vec<PodCondition>,
    #[serde(deserialize_with = "null_is_empty")]
    container_statuses: Vec<Container>,
    #[serde(deserialize_with = "null_is_empty")]
    init_container_statuses: Vec<Container>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodCondition {
    r#type: String,
    status: String,
    last_transition_time: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Container {
    name: String,
    restart_count: u32,
    state: State,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct State {
    terminated: Option<Terminated>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Terminated {
    finished_at: Option<String>,
}

/// A time as objects carry it.
pub(super) fn time(text: Option<&String>) -> Option<Timestamp> {
    text?.parse().ok()
}

/// The controller among an object's owners.
pub(super) fn controller(meta: &Meta) -> Option<&Owner> {
    meta.owner_references.iter().find(|owner| owner.controller == Some(true))
}

impl Pod {
    pub(super) fn uid(&self) -> &str {
        &self.metadata.uid
    }

    pub(super) fn is_tracked(&self) -> bool {
        self.metadata.has_finalizer(TRACKING)
    }

    pub(super) fn has_succeeded(&self) -> bool {
        self.status.phase == "Succeeded"
    }

    fn has_ended(&self) -> bool {
        self.has_succeeded() || self.status.phase == "Failed"
    }

    /// Whether it has failed, or goes before it could tell.
    pub(super) fn has_failed(&self) -> bool {
        self.status.phase == "Failed" || (self.metadata.is_deleting() && !self.has_succeeded())
    }

    pub(super) fn is_active(&self) -> bool {
        !self.has_ended() && !self.metadata.is_deleting()
    }

    pub(super) fn is_terminating(&self) -> bool {
        !self.has_ended() && self.metadata.is_deleting()
    }

    fn ready(&self) -> Option<&PodCondition> {
        self.status.conditions.iter().find(|condition| condition.r#type == "Ready")
    }

    pub(super) fn is_ready(&self) -> bool {
        self.ready().is_some_and(|ready| ready.status == "True")
    }

    /// Since when it is ready.
    pub(super) fn ready_since(&self) -> Option<Timestamp> {
        time(self.ready()?.last_transition_time.as_ref())
    }

    pub(super) fn created(&self) -> Option<Timestamp> {
        time(self.metadata.creation_timestamp.as_ref())
    }

    /// Its index; `None` when it has none that can be one.
    pub(super) fn index(&self) -> Option<u32> {
        self.metadata.annotations.get(INDEX)?.parse().ok()
    }

    /// How often its containers have been started again, all together.
    pub(super) fn restarts(&self) -> u32 {
        let all = self.status.container_statuses.iter().chain(&self.status.init_container_statuses);
        all.map(|container| container.restart_count).fold(0, u32::saturating_add)
    }

    fn is_sidecar(&self, name: &str) -> bool {
        self.spec
            .init_containers
            .iter()
            .any(|one| one.name == name && one.restart_policy.as_deref() == Some("Always"))
    }

    fn sidecars(&self) -> impl Iterator<Item = &Container> {
        self.status.init_container_statuses.iter().filter(|one| self.is_sidecar(&one.name))
    }

    /// The most restarts of one container; of one sidecar.
    pub(super) fn most_restarts(&self) -> (u32, u32) {
        let most = |restarts: u32, container: &Container| restarts.max(container.restart_count);
        (self.status.container_statuses.iter().fold(0, most), self.sidecars().fold(0, most))
    }

    /// When it ended: its last container, else when it stopped being ready, else when its deletion
    /// was asked for, else when it was made.
    pub(super) fn finished(&self) -> Option<Timestamp> {
        self.containers_finished()
            .or_else(|| {
                let ready = self.ready().filter(|ready| ready.status == "False")?;
                time(ready.last_transition_time.as_ref())
            })
            .or_else(|| {
                let deleted = time(self.metadata.deletion_timestamp.as_ref())?;
                let grace = self.metadata.deletion_grace_period_seconds.unwrap_or(0);
                deleted.checked_sub(jiff::SignedDuration::from_secs(grace)).ok()
            })
            .or_else(|| self.created())
    }

    fn containers_finished(&self) -> Option<Timestamp> {
        let mut last = None;
        for container in self.status.container_statuses.iter().chain(self.sidecars()) {
            let ended = container.state.terminated.as_ref()?;
            last = last.max(Some(time(ended.finished_at.as_ref())?));
        }
        last
    }
}
