//! Whether a specification that could be read can be run.
//!
//! Repeats what the definition's rules say, in the same words, for objects that came by another
//! definition, and adds what no rule can say: circles of any length, names that are filled in. Must
//! not know the cluster.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{
    JobSpec, LifecyclePolicy, PolicyEvent, TaskSpec, crd,
    plugins::{POSTPONED, SUPPORTED},
};
use crate::{
    SpecError,
    limits::{
        ARGUMENTS_MAX, HOST_LISTS_MAX, HOST_NAME_MAX, PODS_MAX, POLICIES_MAX, TASKS_MAX,
        VOLUMES_MAX,
    },
    quantity::{self, Quantity},
};

/// What is said of dependencies that lead nowhere or in circles.
const NO_DAG: &str =
    "job has dependencies between tasks, but doesn't form a directed acyclic graph(DAG);";

impl JobSpec {
    /// Whether it can be run; an error names the field, and the job fails with it.
    pub fn check(&self) -> Result<(), SpecError> {
        self.check_sizes()?;
        self.check_plugins()?;
        self.check_tasks()?;
        self.check_dependencies()?;
        check_policies("spec.policies", &self.policies)?;
        for (at, task) in self.tasks.iter().enumerate() {
            check_policies(&format!("spec.tasks[{at}].policies"), &task.policies)?;
        }
        self.check_volumes()
    }

    /// Nothing is larger than what one job may cost.
    fn check_sizes(&self) -> Result<(), SpecError> {
        at_most("spec.tasks", self.tasks.len(), TASKS_MAX)?;
        at_most("spec.volumes", self.volumes.len(), VOLUMES_MAX)?;
        at_most("spec.policies", self.policies.len(), POLICIES_MAX)?;
        for (name, words) in &self.plugins {
            at_most(&format!("spec.plugins[{name}]"), words.len(), ARGUMENTS_MAX)?;
        }
        let has_hosts = self.plugins.contains_key("svc");
        for (at, task) in self.tasks.iter().enumerate() {
            let path = format!("spec.tasks[{at}]");
            at_most(&format!("{path}.policies"), task.policies.len(), POLICIES_MAX)?;
            at_most(&format!("{path}.dependsOn.name"), task.depends_on.len(), TASKS_MAX)?;
            if task.replicas > PODS_MAX {
                let told = format!("{} must be between 0 and {PODS_MAX}", task.replicas);
                return Err(SpecError::new(format!("{path}.replicas"), told));
            }
            check_names(&path, task)?;
            let lists = containers(task) * self.tasks.len();
            if has_hosts && lists > HOST_LISTS_MAX {
                let told = format!(
                    "{} containers are each told the hosts of {} tasks by plugin svc, {lists} lists in \
                     every pod; at most {HOST_LISTS_MAX} are allowed: use fewer containers or tasks",
                    containers(task),
                    self.tasks.len()
                );
                return Err(SpecError::new(path, told));
            }
        }
        if self.total() > i64::from(PODS_MAX) {
            let told = format!(
                "{} replicas in all tasks are too many; a job has at most {PODS_MAX}",
                self.total()
            );
            return Err(SpecError::new("spec.tasks", told));
        }
        Ok(())
    }

    fn check_plugins(&self) -> Result<(), SpecError> {
        for name in self.plugins.keys().map(String::as_str) {
            let path = format!("spec.plugins[{name}]");
            let there = SUPPORTED.join(", ");
            if POSTPONED.contains(&name) {
                let told = format!("plugin {name} is not supported yet; there are {there}");
                return Err(SpecError::new(path, told));
            }
            if !SUPPORTED.contains(&name) {
                let told = format!("unable to find job plugin: {name}; there are {there}");
                return Err(SpecError::new(path, told));
            }
        }
        Ok(())
    }

    fn check_tasks(&self) -> Result<(), SpecError> {
        let mut names = BTreeSet::new();
        for (at, task) in self.tasks.iter().enumerate() {
            let (path, name) = (format!("spec.tasks[{at}]"), &task.name);
            if !names.insert(name) {
                let told = format!("duplicated task name {name}; give each task its own");
                return Err(SpecError::new(format!("{path}.name"), told));
            }
            if task.min_available > i64::from(task.replicas) {
                let told = format!(
                    "'minAvailable' is greater than 'replicas' in task: {name}; lower it to {}",
                    task.replicas
                );
                return Err(SpecError::new(format!("{path}.minAvailable"), told));
            }
            whole_cpus(at, task)?;
        }
        if self.min_available > self.total() {
            let told = format!(
                "job 'minAvailable' should not be greater than total replicas in tasks; \
                 {} is above {}",
                self.min_available,
                self.total()
            );
            return Err(SpecError::new("spec.minAvailable", told));
        }
        Ok(())
    }

    /// Every name leads to a task, and no way leads back to where it began.
    fn check_dependencies(&self) -> Result<(), SpecError> {
        let tasks: BTreeMap<_, _> =
            self.tasks.iter().map(|task| (task.name.as_str(), task)).collect();
        for (at, task) in self.tasks.iter().enumerate() {
            let lost = task.depends_on.iter().find(|name| !tasks.contains_key(name.as_str()));
            if let Some(name) = lost {
                let told = format!("{NO_DAG} there is no task {name:?}");
                return Err(SpecError::new(format!("spec.tasks[{at}].dependsOn.name"), told));
            }
        }
        // Tasks whose dependencies are all done leave; those that are left wait for each other.
        let mut waiting = tasks;
        loop {
            let ready: Vec<_> = waiting
                .iter()
                .filter(|(_, task)| {
                    !task.depends_on.iter().any(|name| waiting.contains_key(name.as_str()))
                })
                .map(|(name, _)| *name)
                .collect();
            if ready.is_empty() {
                break;
            }
            waiting.retain(|name, _| !ready.contains(name));
        }
        if waiting.is_empty() {
            return Ok(());
        }
        let names: Vec<_> = waiting.into_keys().collect();
        let told =
            format!("{NO_DAG} these wait for each other and can never start: {}", names.join(", "));
        Err(SpecError::new("spec.tasks[*].dependsOn", told))
    }

    fn check_volumes(&self) -> Result<(), SpecError> {
        let mut paths = BTreeSet::new();
        for (at, volume) in self.volumes.iter().enumerate() {
            let path = format!("spec.volumes[{at}]");
            let wrong = |told: String| Err(SpecError::new(path.clone(), told));
            if volume.mount_path.is_empty() {
                return wrong("mountPath is required; name the directory".to_owned());
            }
            if !paths.insert(&volume.mount_path) {
                return wrong(format!(
                    "duplicated mountPath: {}; mount each volume at a path of its own",
                    volume.mount_path
                ));
            }
            if volume.volume_claim.is_none() && volume.volume_claim_name.is_empty() {
                let told = "either VolumeClaim or VolumeClaimName must be specified; name a claim \
                            that is there, or say what one is to be made from";
                return wrong(told.to_owned());
            }
        }
        Ok(())
    }
}

fn at_most(path: &str, count: usize, most: u32) -> Result<(), SpecError> {
    if count <= most as usize {
        return Ok(());
    }
    Err(SpecError::new(path, format!("has {count} items, must have at most {most}")))
}

/// Names that every pod of the job is told once for each pod.
fn check_names(path: &str, task: &TaskSpec) -> Result<(), SpecError> {
    for field in ["hostname", "subdomain"] {
        let name = task.template.pointer(&format!("/spec/{field}")).and_then(Value::as_str);
        let length = name.map_or(0, str::len);
        if length > HOST_NAME_MAX {
            let told = format!("has {length} characters, must be no more than {HOST_NAME_MAX}");
            return Err(SpecError::new(format!("{path}.template.spec.{field}"), told));
        }
    }
    Ok(())
}

/// How many containers a pod of the task has, initial ones included.
fn containers(task: &TaskSpec) -> usize {
    let list = |key: &str| task.template.pointer(key).and_then(Value::as_array).map_or(0, Vec::len);
    list("/spec/containers") + list("/spec/initContainers")
}

fn check_policies(path: &str, policies: &[LifecyclePolicy]) -> Result<(), SpecError> {
    let (mut events, mut codes) = (BTreeSet::new(), BTreeSet::new());
    for (at, policy) in policies.iter().enumerate() {
        let wrong = |told: String| {
            let told = format!("{told}; {}", crd::valid_in_policies());
            Err(SpecError::new(format!("{path}[{at}]"), told))
        };
        match (policy.events.is_empty(), policy.exit_code) {
            (true, None) => {
                return wrong("either event and exitCode should be specified".to_owned());
            }
            (false, Some(_)) => {
                return wrong("must not specify event and exitCode simultaneously".to_owned());
            }
            (true, Some(0)) => return wrong("0 is not a valid error code".to_owned()),
            (true, Some(code)) if !codes.insert(code) => {
                return wrong(format!("duplicate exitCode {code}"));
            }
            _ => {}
        }
        for event in &policy.events {
            if !events.insert(*event) {
                return wrong(format!("duplicate event {event}  across different policy"));
            }
        }
        if events.contains(&PolicyEvent::Any) && events.len() > 1 {
            return wrong("if there's * here, no other policy should be here".to_owned());
        }
    }
    Ok(())
}

/// A node gives its memory to whole CPUs only.
fn whole_cpus(at: usize, task: &TaskSpec) -> Result<(), SpecError> {
    if matches!(task.topology_policy.as_str(), "" | "none") {
        return Ok(());
    }
    let containers = task.template.pointer("/spec/containers").and_then(Value::as_array);
    for (nth, container) in containers.into_iter().flatten().enumerate() {
        let asked = ["requests", "limits"]
            .into_iter()
            .find_map(|list| container.pointer(&format!("/resources/{list}/cpu")));
        let Some(asked) = asked else { continue };
        let text = asked.as_str().map_or_else(|| asked.to_string(), str::to_owned);
        let whole = quantity::parse(&text)
            .is_ok_and(|amount| amount == Quantity::from_value(amount.value()));
        if !whole {
            let told = format!(
                "the cpu request isn't an integer in spec.task[{at}] container[{nth}]. It is \
                 {text}; ask for whole CPUs or leave topologyPolicy out"
            );
            return Err(SpecError::new(format!("spec.tasks[{at}].topologyPolicy"), told));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
