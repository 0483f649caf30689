//! The specification of a TFJob, read and defaulted.
//!
//! Accepts every spelling that the served versions allow: replica keys in any case, run policy
//! fields directly under `spec`, the restart policy in the pod template. What is read here is
//! always runnable; everything else is an error that names field, value and remedy. Pod templates
//! stay JSON. Must not know the cluster.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::{limits::PODS_MAX, names, replica::ReplicaType};

mod scheduling;

pub use scheduling::SchedulingPolicy;

/// A field that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{path}: {problem}")]
pub struct SpecError {
    /// Where, from `spec`.
    pub path: String,
    /// What is wrong and what to do.
    pub problem: String,
}

impl SpecError {
    pub(crate) fn new(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into() }
    }

    /// One word for event reasons and metric labels.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        "TFJobFailedValidation"
    }
}

/// What a TFJob asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct TfJobSpec {
    /// Replicas by type.
    pub replicas: BTreeMap<ReplicaType, ReplicaSpec>,
    /// How the job is run.
    pub run_policy: RunPolicy,
    /// When the job has succeeded.
    pub success_policy: SuccessPolicy,
    /// Workers come and go; the cluster description is sparse.
    pub dynamic_workers: bool,
    /// A TensorBoard beside the training.
    pub tensorboard: Option<TensorBoard>,
}

/// One type of replica.
#[derive(Debug, Clone, PartialEq)]
pub struct ReplicaSpec {
    /// How many.
    pub replicas: u32,
    /// What happens when one ends; never missing.
    pub restart_policy: RestartPolicy,
    /// The pod template names another restart policy, which is not used.
    pub template_policy_overridden: bool,
    /// The pod template, as JSON.
    pub template: Value,
}

/// What happens when a replica ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartPolicy {
    /// Always run again.
    Always,
    /// Run again unless it succeeded.
    OnFailure,
    /// Never run again.
    Never,
    /// Run again when the exit code says that it may help.
    ExitCode,
}

/// How the job is run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunPolicy {
    /// Which pods are deleted when the job has ended; the operator's default when not given.
    pub clean_pod_policy: Option<CleanPodPolicy>,
    /// Seconds after which an ended job is deleted.
    pub ttl_seconds: Option<i64>,
    /// Seconds after which a job that has not ended fails.
    pub deadline_seconds: Option<i64>,
    /// Seconds after which a job whose pods do not all run fails.
    pub start_timeout_seconds: Option<i64>,
    /// Restarts after which the job fails.
    pub backoff_limit: Option<i64>,
    /// Seconds that a pod stays bound to a node that is lost; as the cluster has it when not given.
    pub node_loss_toleration_seconds: Option<i64>,
    /// Nothing is to run for now.
    pub suspend: bool,
    /// Who looks after the job, if not us.
    pub managed_by: Option<String>,
    /// What is restarted when a replica is.
    pub restart_scope: RestartScope,
    /// How the pods are scheduled together.
    pub scheduling_policy: Option<SchedulingPolicy>,
}

impl RunPolicy {
    /// Whether somebody else looks after this job.
    #[must_use]
    pub fn is_managed_elsewhere(&self) -> bool {
        self.managed_by.as_deref().is_some_and(|by| by != names::MANAGED_BY_US)
    }
}

/// Which pods are deleted when a job has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CleanPodPolicy {
    /// Those that have not ended.
    #[default]
    Running,
    /// All.
    All,
    /// None.
    None,
}

/// When a job without chief has succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SuccessPolicy {
    /// When worker 0 has, or all workers.
    #[default]
    Default,
    /// When all workers have.
    AllWorkers,
}

/// What is restarted when a replica is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RestartScope {
    /// That replica.
    #[default]
    Replica,
    /// Every replica of the job.
    Job,
}

/// A TensorBoard beside the training.
#[derive(Debug, Clone, PartialEq)]
pub struct TensorBoard {
    /// Directory of the summaries.
    pub log_dir: String,
    /// Image; that of the deciding replica when not given.
    pub image: Option<String>,
    /// Volumes; those of the deciding replica when neither volumes nor mounts are given.
    pub volumes: Option<Value>,
    /// Mounts of the TensorBoard container.
    pub volume_mounts: Option<Value>,
    /// Type of the service.
    pub service_type: Option<String>,
}

impl RestartPolicy {
    /// The policy of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "Always" => Some(Self::Always),
            "OnFailure" => Some(Self::OnFailure),
            "Never" => Some(Self::Never),
            "ExitCode" => Some(Self::ExitCode),
            _ => None,
        }
    }

    /// Its name in manifests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Always => "Always",
            Self::OnFailure => "OnFailure",
            Self::Never => "Never",
            Self::ExitCode => "ExitCode",
        }
    }
}

impl CleanPodPolicy {
    /// The policy of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "Running" => Some(Self::Running),
            "All" => Some(Self::All),
            "None" => Some(Self::None),
            _ => None,
        }
    }
}

impl TfJobSpec {
    /// Reads and defaults a specification.
    pub fn parse(value: Value) -> Result<Self, SpecError> {
        let Value::Object(mut spec) = value else {
            return Err(SpecError::new("spec", "is missing; give spec.tfReplicaSpecs"));
        };
        let run_policy = run_policy(&spec)?;
        let success_policy = match text(&spec, "spec", "successPolicy")? {
            None | Some("" | "ChiefWorker") => SuccessPolicy::Default,
            Some("AllWorkers") => SuccessPolicy::AllWorkers,
            Some(other) => {
                return Err(SpecError::new(
                    "spec.successPolicy",
                    format!("{other:?} is not known; use \"AllWorkers\" or leave it out"),
                ));
            }
        };
        let dynamic_workers = flag(&spec, "spec", "enableDynamicWorker")?;
        let tensorboard = tensorboard(&spec)?;
        let replicas = replicas(spec.remove("tfReplicaSpecs"))?;
        Ok(Self { replicas, run_policy, success_policy, dynamic_workers, tensorboard })
    }

    /// Replicas asked for, of all types.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.replicas.values().map(|spec| u64::from(spec.replicas)).sum()
    }

    /// How many replicas of that type are asked for; 0 when the type is absent.
    #[must_use]
    pub fn count(&self, kind: ReplicaType) -> u32 {
        self.replicas.get(&kind).map_or(0, |spec| spec.replicas)
    }

    /// The type whose end decides the job: chief or master, else the workers. A type with no
    /// replica counts as absent; a job with neither has no deciding type.
    #[must_use]
    pub fn deciding_type(&self) -> Option<ReplicaType> {
        [ReplicaType::Chief, ReplicaType::Master, ReplicaType::Worker]
            .into_iter()
            .find(|kind| self.count(*kind) > 0)
    }
}

fn replicas(value: Option<Value>) -> Result<BTreeMap<ReplicaType, ReplicaSpec>, SpecError> {
    let path = "spec.tfReplicaSpecs";
    let entries = match value {
        Some(Value::Object(entries)) if !entries.is_empty() => entries,
        _ => return Err(SpecError::new(path, "must name at least one replica type")),
    };
    let mut replicas = BTreeMap::new();
    for (key, entry) in entries {
        let path = format!("{path}[{key}]");
        let kind = ReplicaType::parse(&key).ok_or_else(|| {
            SpecError::new(
                &path,
                "is not a replica type; use Chief, Master, PS, Worker or Evaluator",
            )
        })?;
        let spec = replica_spec(&path, kind, entry)?;
        if replicas.insert(kind, spec).is_some() {
            return Err(SpecError::new(path, format!("names {kind} a second time; keep one")));
        }
    }
    let chiefs = replicas.keys().filter(|kind| kind.is_chief()).count();
    if chiefs > 1 {
        return Err(SpecError::new(path, "must not have both Chief and Master; keep one"));
    }
    let all: u64 = replicas.values().map(|spec| u64::from(spec.replicas)).sum();
    if all > u64::from(PODS_MAX) {
        let told = format!("{all} replicas in all are too many; a job has at most {PODS_MAX}");
        return Err(SpecError::new(path, told));
    }
    Ok(replicas)
}

fn replica_spec(path: &str, kind: ReplicaType, value: Value) -> Result<ReplicaSpec, SpecError> {
    let Value::Object(mut entry) = value else {
        return Err(SpecError::new(path, "must be an object with a pod template"));
    };
    let replicas = replica_count(path, kind, &entry)?;
    let own = text(&entry, path, "restartPolicy")?.map(str::to_owned);
    let template = entry.remove("template").unwrap_or_default();
    check_containers(path, &template)?;
    let in_template = template
        .pointer("/spec/restartPolicy")
        .and_then(Value::as_str)
        .filter(|policy| !policy.is_empty());
    let own = own.filter(|policy| !policy.is_empty());
    let overridden = matches!((&own, in_template), (Some(own), Some(template)) if own != template);
    let chosen = own.as_deref().or(in_template).unwrap_or("Never");
    let restart_policy = RestartPolicy::parse(chosen).ok_or_else(|| {
        SpecError::new(
            format!("{path}.restartPolicy"),
            format!("{chosen:?} is not known; use Always, OnFailure, Never or ExitCode"),
        )
    })?;
    Ok(ReplicaSpec { replicas, restart_policy, template_policy_overridden: overridden, template })
}

fn replica_count(
    path: &str,
    kind: ReplicaType,
    entry: &Map<String, Value>,
) -> Result<u32, SpecError> {
    let count = number(entry, path, "replicas")?.unwrap_or(1);
    let path = format!("{path}.replicas");
    if kind.is_chief() && count > 1 {
        return Err(SpecError::new(path, format!("{count} is too many; a job has one {kind}")));
    }
    u32::try_from(count)
        .ok()
        .filter(|count| *count <= PODS_MAX)
        .ok_or_else(|| SpecError::new(path, format!("{count} must be between 0 and {PODS_MAX}")))
}

fn check_containers(path: &str, template: &Value) -> Result<(), SpecError> {
    let path = format!("{path}.template.spec.containers");
    let containers = template.pointer("/spec/containers").and_then(Value::as_array);
    let trains = containers.is_some_and(|containers| {
        containers.iter().any(|container| {
            container.get("name").and_then(Value::as_str) == Some(names::CONTAINER)
        })
    });
    if trains {
        Ok(())
    } else {
        Err(SpecError::new(path, "must have at least one container with name tensorflow"))
    }
}

fn run_policy(spec: &Map<String, Value>) -> Result<RunPolicy, SpecError> {
    let empty = Map::new();
    let nested = match spec.get("runPolicy") {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(policy)) => policy,
        Some(_) => return Err(SpecError::new("spec.runPolicy", "must be an object")),
    };
    // Versions before v1 wrote these fields directly under spec; the nested one wins.
    let lifted = |key: &str| match nested.get(key) {
        None | Some(Value::Null) => (spec, "spec"),
        Some(_) => (nested, "spec.runPolicy"),
    };
    let seconds = |key: &str| {
        let (map, path) = lifted(key);
        match number(map, path, key)? {
            Some(value) if value < 0 => Err(SpecError::new(
                format!("{path}.{key}"),
                format!("{value} is negative; use 0 or more"),
            )),
            other => Ok(other),
        }
    };
    let (map, path) = lifted("cleanPodPolicy");
    let clean_pod_policy = text(map, path, "cleanPodPolicy")?
        .filter(|policy| !policy.is_empty())
        .map(|policy| {
            CleanPodPolicy::parse(policy).ok_or_else(|| {
                SpecError::new(
                    format!("{path}.cleanPodPolicy"),
                    format!("{policy:?} is not known; use Running, All or None"),
                )
            })
        })
        .transpose()?;
    let restart_scope = match text(nested, "spec.runPolicy", "restartScope")? {
        None | Some("" | "Replica") => RestartScope::Replica,
        Some("Job") => RestartScope::Job,
        Some(other) => {
            return Err(SpecError::new(
                "spec.runPolicy.restartScope",
                format!("{other:?} is not known; use Replica or Job"),
            ));
        }
    };
    Ok(RunPolicy {
        clean_pod_policy,
        ttl_seconds: seconds("ttlSecondsAfterFinished")?,
        deadline_seconds: seconds("activeDeadlineSeconds")?,
        start_timeout_seconds: seconds("startTimeoutSeconds")?,
        backoff_limit: seconds("backoffLimit")?,
        node_loss_toleration_seconds: seconds("nodeLossTolerationSeconds")?,
        suspend: flag(nested, "spec.runPolicy", "suspend")?,
        managed_by: text(nested, "spec.runPolicy", "managedBy")?.map(str::to_owned),
        restart_scope,
        scheduling_policy: scheduling::scheduling_policy(nested)?,
    })
}

fn tensorboard(spec: &Map<String, Value>) -> Result<Option<TensorBoard>, SpecError> {
    let path = "spec.tensorBoard";
    let board = match spec.get("tensorBoard") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Object(board)) => board,
        Some(_) => return Err(SpecError::new(path, "must be an object with logDir")),
    };
    let owned = |key| Ok::<_, SpecError>(text(board, path, key)?.map(str::to_owned));
    let log_dir = owned("logDir")?
        .filter(|dir| !dir.is_empty())
        .ok_or_else(|| SpecError::new("spec.tensorBoard.logDir", "must name a directory"))?;
    Ok(Some(TensorBoard {
        log_dir,
        image: owned("image")?,
        volumes: board.get("volumes").filter(|value| !value.is_null()).cloned(),
        volume_mounts: board.get("volumeMounts").filter(|value| !value.is_null()).cloned(),
        service_type: owned("serviceType")?,
    }))
}

fn text<'a>(
    map: &'a Map<String, Value>,
    path: &str,
    key: &str,
) -> Result<Option<&'a str>, SpecError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            Err(SpecError::new(format!("{path}.{key}"), format!("{other} must be a string")))
        }
    }
}

fn number(map: &Map<String, Value>, path: &str, key: &str) -> Result<Option<i64>, SpecError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| {
            SpecError::new(format!("{path}.{key}"), format!("{value} must be a whole number"))
        }),
    }
}

fn flag(map: &Map<String, Value>, path: &str, key: &str) -> Result<bool, SpecError> {
    match map.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => {
            Err(SpecError::new(format!("{path}.{key}"), format!("{other} must be true or false")))
        }
    }
}

#[cfg(test)]
mod tests;
