//! What makes a job one that can never run, beyond what reading its specification shows.
//!
//! Must not know the cluster.

use std::collections::BTreeSet;

use trainyard_api::{Meta, names, volcano::JobSpec};

use super::{depends, objects::pod_name, plugins};

/// Why the job cannot be run, if it cannot: field, value, and what to do.
#[must_use]
pub(super) fn problem(meta: &Meta, spec: &JobSpec) -> Option<String> {
    task_problem(spec)
        .or_else(|| name_problem(meta, spec))
        .or_else(|| volume_problem(spec))
        .or_else(|| plugins::problem(spec))
        .or_else(|| depends::problem(spec))
}

fn task_problem(spec: &JobSpec) -> Option<String> {
    let mut names = BTreeSet::new();
    for (at, task) in spec.tasks.iter().enumerate() {
        if !names.insert(&task.name) {
            return Some(format!("spec.tasks[{at}].name: duplicated task name {}", task.name));
        }
        if task.min_available > i64::from(task.replicas) {
            return Some(format!(
                "spec.tasks[{at}]: 'minAvailable' is greater than 'replicas' in task: {}",
                task.name
            ));
        }
    }
    (spec.min_available > spec.total()).then(|| {
        "spec.minAvailable: job 'minAvailable' should not be greater than total replicas in tasks"
            .to_owned()
    })
}

fn name_problem(meta: &Meta, spec: &JobSpec) -> Option<String> {
    let longest = spec
        .tasks
        .iter()
        .map(|task| pod_name(&meta.name, &task.name, task.replicas.saturating_sub(1)))
        .max_by_key(String::len)?;
    (longest.len() > names::LABEL_MAX).then(|| {
        format!(
            "metadata.name: {:?} is too long: pod {longest:?} would have {} characters, {} are \
             allowed in a host name; shorten the name of the job or of its task by {}",
            meta.name,
            longest.len(),
            names::LABEL_MAX,
            longest.len() - names::LABEL_MAX
        )
    })
}

fn volume_problem(spec: &JobSpec) -> Option<String> {
    spec.volumes.iter().enumerate().find_map(|(at, volume)| {
        let words = if volume.mount_path.is_empty() {
            "mountPath is required"
        } else if volume.volume_claim_name.is_empty() && volume.volume_claim.is_none() {
            "either VolumeClaim or VolumeClaimName must be specified"
        } else {
            return None;
        };
        Some(format!("spec.volumes[{at}]: {words}"))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_can_never_run_is_told_with_its_field() {
        let told = |value: Value| {
            let meta = Meta { name: "j".into(), ..Meta::default() };
            problem(&meta, &JobSpec::parse(value).unwrap()).unwrap_or_default()
        };
        let task = |name: &str| json!({"name": name, "replicas": 1, "template": {}});
        assert_eq!(told(json!({"tasks": [task("a"), task("b")]})), "");
        assert!(told(json!({"tasks": [task("a"), task("a")]})).starts_with("spec.tasks[1].name: "));
        assert!(told(json!({"minAvailable": 2, "tasks": [task("a")]})).contains("total replicas"));
        assert!(told(json!({"tasks": [task(&"a".repeat(62))]})).contains("too long"));
        assert!(
            told(json!({"tasks": [task("a")], "volumes": [{"mountPath": "/v"}]}))
                .starts_with("spec.volumes[0]: either")
        );
        assert!(
            told(json!({"tasks": [task("a")], "plugins": {"ssh": []}})).contains("plugins.ssh")
        );
        assert!(
            told(json!({"tasks": [task("a")], "plugins": {"x": []}}))
                .contains("unable to find job plugin: x")
        );
        let many = json!({"name": "a", "replicas": 1, "minAvailable": 2});
        assert!(
            told(json!({"minAvailable": 1, "tasks": [many]})).contains("greater than 'replicas'")
        );
    }
}
