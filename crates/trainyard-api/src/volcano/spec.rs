//! The specification of a Volcano Job, read and defaulted.
//!
//! What the reference's webhook would fill in is filled in here. Pod templates stay JSON. Must not
//! know the cluster.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde::Deserialize;
use serde_json::Value;

use super::names;
use crate::SpecError;

/// What a Volcano Job asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// The scheduler of pods whose template names none.
    pub scheduler_name: String,
    /// How many pods start all together, and how many make the job a running one.
    pub min_available: i64,
    /// Volumes of all pods.
    pub volumes: Vec<VolumeSpec>,
    /// Its tasks, in order.
    pub tasks: Vec<TaskSpec>,
    /// What is done when something happens.
    pub policies: Vec<LifecyclePolicy>,
    /// Plugins and their arguments; `svc` is there where another one needs it.
    pub plugins: BTreeMap<String, Vec<String>>,
    /// Its queue.
    pub queue: String,
    /// The number of restarts that makes the job fail.
    pub max_retry: i64,
    /// How long it is kept after its end.
    pub ttl_seconds: Option<i64>,
    /// The priority class of its PodGroup, and of pods whose template names none.
    pub priority_class: String,
    /// So many pods that end well complete the job.
    pub min_success: Option<i64>,
    /// Passed on to the PodGroup as it is.
    pub network_topology: Option<Value>,
}

/// One task: pods of one template.
#[derive(Debug, Clone, PartialEq)]
pub struct TaskSpec {
    /// Its name.
    pub name: String,
    /// How many pods.
    pub replicas: u32,
    /// How many of them the job needs; all when nothing is said.
    pub min_available: i64,
    /// Whether that was said.
    pub says_min_available: bool,
    /// The pod template, as JSON.
    pub template: Value,
    /// What is done when something happens to this task; goes before the job's policies.
    pub policies: Vec<LifecyclePolicy>,
    /// Passed on to pods as an annotation.
    pub topology_policy: String,
    /// Restarts of its containers that make the task a failed one; none when below 0.
    pub max_retry: i64,
    /// Tasks that must be ready before this one's pods are made.
    pub depends_on: Vec<String>,
    /// Whether one of them is enough.
    pub depends_on_any: bool,
}

/// A volume of all pods of a job.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct VolumeSpec {
    /// Where it is mounted.
    pub mount_path: String,
    /// A claim that is there.
    pub volume_claim_name: String,
    /// A claim that is to be made.
    pub volume_claim: Option<Value>,
}

/// What is done when something happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LifecyclePolicy {
    /// What is done.
    pub action: Action,
    /// When one of these happens.
    pub events: BTreeSet<PolicyEvent>,
    /// When a pod fails with this code.
    pub exit_code: Option<i64>,
    /// Not at once but after so many milliseconds, unless it has passed by then.
    pub timeout_ms: Option<i64>,
}

/// What a policy or a Command asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize)]
pub enum Action {
    /// Stop everything; it can be resumed.
    AbortJob,
    /// Run everything again.
    RestartJob,
    /// Run a task again.
    RestartTask,
    /// Run a pod again.
    RestartPod,
    /// Run a part of a task again.
    RestartPartition,
    /// Stop everything for good.
    TerminateJob,
    /// Stop everything; the work is done.
    CompleteJob,
    /// Go on with an aborted job.
    ResumeJob,
}

/// What happens to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize)]
pub enum PolicyEvent {
    /// Anything.
    #[serde(rename = "*")]
    Any,
    /// A pod waits; only with a timeout.
    PodPending,
    /// A pod runs. Never leads to anything.
    PodRunning,
    /// A pod has failed.
    PodFailed,
    /// A pod has disappeared.
    PodEvicted,
    /// The scheduler has lost track of the group.
    Unknown,
    /// All pods of a task have succeeded.
    TaskCompleted,
    /// Containers of a task were restarted too often.
    TaskFailed,
    /// Never leads to anything.
    OutOfSync,
    /// Never leads to anything.
    CommandIssued,
    /// Never happens.
    JobUpdated,
}

impl fmt::Display for PolicyEvent {
    /// Its name in manifests.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            named => fmt::Debug::fmt(named, f),
        }
    }
}

impl Action {
    /// Its name in manifests and events.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AbortJob => "AbortJob",
            Self::RestartJob => "RestartJob",
            Self::RestartTask => "RestartTask",
            Self::RestartPod => "RestartPod",
            Self::RestartPartition => "RestartPartition",
            Self::TerminateJob => "TerminateJob",
            Self::CompleteJob => "CompleteJob",
            Self::ResumeJob => "ResumeJob",
        }
    }

    /// The action of that name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_value(Value::String(text.to_owned())).ok()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpecWire {
    scheduler_name: String,
    min_available: i64,
    volumes: Vec<VolumeSpec>,
    tasks: Vec<Value>,
    policies: Vec<Value>,
    plugins: BTreeMap<String, Option<Vec<String>>>,
    queue: String,
    max_retry: i64,
    ttl_seconds_after_finished: Option<i64>,
    priority_class_name: String,
    min_success: Option<i64>,
    network_topology: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TaskWire {
    name: String,
    replicas: u32,
    min_available: Option<i64>,
    template: Value,
    policies: Vec<Value>,
    topology_policy: String,
    max_retry: i64,
    depends_on: Option<DependsWire>,
    partition_policy: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DependsWire {
    name: Vec<String>,
    iteration: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PolicyWire {
    action: Option<Action>,
    event: Option<PolicyEvent>,
    events: Vec<PolicyEvent>,
    exit_code: Option<i64>,
    timeout: Option<String>,
}

/// Plugins that need the hosts' names which `svc` makes.
const NEED_SVC: [&str; 4] = ["tensorflow", "mpi", "pytorch", "ray"];

impl JobSpec {
    /// Reads and defaults a specification; whether it can be run, [`Self::check`] says.
    pub fn parse(value: Value) -> Result<Self, SpecError> {
        let wire: SpecWire = read("spec", value)?;
        if wire.tasks.is_empty() {
            return Err(problem("spec.tasks", "No task specified in job spec".to_owned()));
        }
        let mut tasks = Vec::new();
        for (at, task) in wire.tasks.into_iter().enumerate() {
            let task: TaskWire = read(&format!("spec.tasks[{at}]"), task)?;
            tasks.push(task.read(at)?);
        }
        let mut plugins: BTreeMap<String, Vec<String>> = wire
            .plugins
            .into_iter()
            .map(|(name, words)| (name, words.unwrap_or_default()))
            .collect();
        if NEED_SVC.iter().any(|name| plugins.contains_key(*name)) {
            plugins.entry("svc".to_owned()).or_default();
        }
        let all = tasks.iter().map(|task| task.min_available).fold(0, i64::saturating_add);
        let or = |text: String, other: &str| if text.is_empty() { other.to_owned() } else { text };
        Ok(Self {
            scheduler_name: or(wire.scheduler_name, names::SCHEDULER),
            min_available: if wire.min_available == 0 { all } else { wire.min_available },
            volumes: wire.volumes,
            policies: policies(wire.policies, "spec.policies")?,
            tasks,
            plugins,
            queue: or(wire.queue, names::QUEUE),
            max_retry: if wire.max_retry == 0 { names::MAX_RETRY } else { wire.max_retry },
            ttl_seconds: wire.ttl_seconds_after_finished,
            priority_class: wire.priority_class_name,
            min_success: wire.min_success,
            network_topology: wire.network_topology,
        })
    }

    /// Pods of all tasks.
    #[must_use]
    pub fn total(&self) -> i64 {
        self.tasks.iter().map(|task| i64::from(task.replicas)).sum()
    }

    /// The task of that name.
    #[must_use]
    pub fn task(&self, name: &str) -> Option<&TaskSpec> {
        self.tasks.iter().find(|task| task.name == name)
    }
}

impl TaskWire {
    fn read(self, at: usize) -> Result<TaskSpec, SpecError> {
        let path = format!("spec.tasks[{at}]");
        if self.partition_policy.is_some() {
            let words = "is not supported yet; leave it out and split the task into several";
            return Err(problem(&format!("{path}.partitionPolicy"), words.to_owned()));
        }
        let depends = self.depends_on.unwrap_or_default();
        Ok(TaskSpec {
            name: if self.name.is_empty() { format!("default{at}") } else { self.name },
            replicas: self.replicas,
            min_available: self.min_available.unwrap_or(i64::from(self.replicas)),
            says_min_available: self.min_available.is_some(),
            template: self.template,
            policies: policies(self.policies, &format!("{path}.policies"))?,
            topology_policy: self.topology_policy,
            max_retry: if self.max_retry == 0 { names::MAX_RETRY } else { self.max_retry },
            depends_on_any: depends.iteration == "any" && depends.name.len() > 1,
            depends_on: depends.name,
        })
    }
}

/// Reads a part; an error says where it stands.
fn read<T: for<'de> Deserialize<'de>>(path: &str, value: Value) -> Result<T, SpecError> {
    serde_json::from_value(value).map_err(|error| problem(path, error.to_string()))
}

fn policies(wires: Vec<Value>, path: &str) -> Result<Vec<LifecyclePolicy>, SpecError> {
    let policy = |(at, wire): (usize, Value)| {
        let path = format!("{path}[{at}]");
        let wire: PolicyWire = read(&path, wire)?;
        let action = wire.action.ok_or_else(|| {
            problem(&format!("{path}.action"), "must be given, for example RestartJob".to_owned())
        })?;
        let timeout_ms = match wire.timeout {
            None => None,
            Some(text) => Some(go_duration_ms(&text).ok_or_else(|| {
                let words = format!("{text:?} is no duration; write for example 10m or 1h30m");
                problem(&format!("{path}.timeout"), words)
            })?),
        };
        Ok(LifecyclePolicy {
            action,
            events: wire.events.into_iter().chain(wire.event).collect(),
            exit_code: wire.exit_code,
            timeout_ms,
        })
    };
    wires.into_iter().enumerate().map(policy).collect()
}

/// A duration as Go writes it (`1h30m`, `1.5s`), in milliseconds.
fn go_duration_ms(text: &str) -> Option<i64> {
    let mut rest = text.trim();
    if rest == "0" {
        return Some(0);
    }
    let mut sum = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let number: f64 = number.parse().ok()?;
        let units: [(&str, f64); 7] = [
            ("ms", 1.0),
            ("us", 0.001),
            ("µs", 0.001),
            ("ns", 0.000_001),
            ("s", 1_000.0),
            ("m", 60_000.0),
            ("h", 3_600_000.0),
        ];
        let (unit, factor) = units.into_iter().find(|(unit, _)| tail.starts_with(unit))?;
        sum += number * factor;
        rest = tail.get(unit.len()..)?;
    }
    #[expect(clippy::cast_possible_truncation, reason = "bounded just before")]
    (text.len() > 1 && sum < 1e15).then_some(sum as i64)
}

fn problem(path: &str, problem: String) -> SpecError {
    SpecError { path: path.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_webhook_would_fill_in_is_filled_in() {
        let spec = JobSpec::parse(json!({
            "plugins": {"tensorflow": null},
            "policies": [{"event": "PodEvicted", "action": "RestartJob", "timeout": "1h30m"}],
            "tasks": [
                {"replicas": 2, "template": {}},
                {"name": "ps", "replicas": 3, "minAvailable": 1, "template": {}},
            ],
        }))
        .unwrap();
        assert_eq!((spec.queue.as_str(), spec.scheduler_name.as_str()), ("default", "volcano"));
        assert_eq!((spec.min_available, spec.max_retry, spec.total()), (3, 3, 5));
        assert_eq!(spec.tasks[0].name, "default0");
        assert!(spec.plugins.contains_key("svc"));
        assert_eq!(spec.policies[0].timeout_ms, Some(5_400_000));
        assert!(spec.policies[0].events.contains(&PolicyEvent::PodEvicted));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let told = |value| JobSpec::parse(value).unwrap_err().to_string();
        assert_eq!(told(json!({})), "spec.tasks: No task specified in job spec");
        let policy = json!({"event": "PodEvicted", "action": "RestartJob", "timeout": "soon"});
        let task = json!({"name": "a", "policies": [policy]});
        assert!(told(json!({"tasks": [task]})).starts_with("spec.tasks[0].policies[0].timeout: "));
        let task = json!({"name": "a", "partitionPolicy": {}});
        assert!(told(json!({"tasks": [task]})).contains("partitionPolicy: is not supported"));
    }

    #[test]
    fn durations_are_those_of_go() {
        for (text, ms) in [("10m", 600_000), ("1.5s", 1_500), ("1h30m", 5_400_000), ("100ms", 100)]
        {
            assert_eq!(go_duration_ms(text), Some(ms), "{text}");
        }
        for text in ["", "10", "m", "1x", "1m3", "-1s"] {
            assert_eq!(go_duration_ms(text), None, "{text}");
        }
    }
}
