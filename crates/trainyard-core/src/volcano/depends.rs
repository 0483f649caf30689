//! Tasks that wait for others: which may start, and whether they can at all.
//!
//! Must not know how pods are made.

use std::collections::BTreeSet;

use trainyard_api::volcano::{JobSpec, TaskSpec};

use super::{
    counts,
    draft::Draft,
    events::{is_condemned, members},
};
use crate::view::Phase;

/// The tasks that may start, in the order of the specification. One that has started stays so, also
/// when what it waited for has to start again.
#[must_use]
pub(super) fn started<'s>(draft: &Draft<'_>, spec: &'s JobSpec) -> Vec<&'s TaskSpec> {
    let has_pods = |task: &TaskSpec| {
        let mut pods = members(draft);
        pods.any(|(pod, view)| *view.name == *task.name && !is_condemned(draft, pod))
            || counts::succeeded(draft, spec, &task.name) > 0
    };
    let is_met = |task: &TaskSpec| {
        let mut ready = task.depends_on.iter().map(|name| is_ready(draft, spec, name));
        if task.depends_on_any { ready.any(|ready| ready) } else { ready.all(|ready| ready) }
    };
    spec.tasks.iter().filter(|task| is_met(task) || has_pods(task)).collect()
}

/// Whether enough pods of a task are ready, or have done their work.
fn is_ready(draft: &Draft<'_>, spec: &JobSpec, name: &str) -> bool {
    let Some(task) = spec.task(name) else {
        return false;
    };
    let running = members(draft).filter(|(pod, view)| {
        *view.name == *name
            && pod.phase == Phase::Running
            && view.is_ready
            && pod.deletion.is_none()
            && !is_condemned(draft, pod)
    });
    let running = i64::try_from(running.count()).unwrap_or(i64::MAX);
    running + counts::succeeded(draft, spec, name) >= task.min_available
}

/// Why tasks can never start, if some cannot.
#[must_use]
pub(super) fn problem(spec: &JobSpec) -> Option<String> {
    for (at, task) in spec.tasks.iter().enumerate() {
        for name in &task.depends_on {
            if spec.task(name).is_none() {
                return Some(format!(
                    "spec.tasks[{at}].dependsOn.name: {name:?} is no task of the job; job has \
                     dependencies between tasks, but doesn't form a directed acyclic graph(DAG)"
                ));
            }
        }
    }
    let mut free: BTreeSet<&str> = BTreeSet::new();
    for _ in &spec.tasks {
        let is_free = |task: &&TaskSpec| task.depends_on.iter().all(|name| free.contains(&**name));
        let more: Vec<&str> = spec.tasks.iter().filter(is_free).map(|task| &*task.name).collect();
        free.extend(more);
    }
    let stuck: Vec<&str> =
        spec.tasks.iter().map(|task| &*task.name).filter(|name| !free.contains(name)).collect();
    (!stuck.is_empty()).then(|| {
        format!(
            "spec.tasks: tasks {} wait for each other; job has dependencies between tasks, but \
             doesn't form a directed acyclic graph(DAG)",
            stuck.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn circles_and_strangers_are_named() {
        let told = |tasks: &[(&str, &[&str])]| {
            let tasks: Vec<Value> = tasks
                .iter()
                .map(|(name, on)| json!({"name": name, "replicas": 1, "dependsOn": {"name": on}}))
                .collect();
            problem(&JobSpec::parse(json!({"tasks": tasks})).unwrap()).unwrap_or_default()
        };
        assert_eq!(told(&[("a", &[]), ("b", &["a"]), ("c", &["a", "b"])]), "");
        assert!(told(&[("a", &["c"]), ("b", &[]), ("c", &["a"])]).contains("tasks a, c wait"));
        assert!(told(&[("a", &["a"])]).contains("tasks a wait"));
        assert!(told(&[("a", &["x"])]).starts_with("spec.tasks[0].dependsOn.name: \"x\""));
    }
}
