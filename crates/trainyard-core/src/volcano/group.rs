//! The PodGroup of a job: what starts all together or not at all.
//!
//! It is kept when single pods are restarted and made anew when the whole job is; it is written
//! only when it differs. Must not know the scheduler.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use trainyard_api::{
    quantity::Quantity,
    volcano::{JobSpec, TaskSpec},
};

use super::{aids, depends, draft::Draft, objects};
use crate::{
    aid::{Aid, GroupFacts, GroupSpec},
    child::Child,
    min_resources::{Keys, Share, min_resources},
    patch::merge_patch,
    plan::{Create, Patch, Write},
};

/// The PodGroup of this version of the job.
pub(super) fn current<'a>(draft: &Draft<'a>) -> Option<&'a Aid<GroupFacts>> {
    let name = objects::group_name(draft.meta());
    let mut live: Vec<_> = draft
        .seen
        .groups
        .iter()
        .filter(|group| !group.is_leaving && *group.uid != *draft.status.retired_group)
        .collect();
    // One that bears the job's name alone is of an older release.
    live.sort_by_key(|group| *group.name != *name);
    live.first().map(|group| &***group)
}

/// Whether pods may be made.
pub(super) fn may_run(draft: &Draft<'_>) -> bool {
    current(draft).is_some_and(|group| group.facts.status.may_run())
}

/// The deletion of the PodGroup that was given up.
pub(super) fn retired(draft: &Draft<'_>) -> Option<Write> {
    let uid = &draft.status.retired_group;
    let group = draft.seen.groups.iter().find(|group| *group.uid == **uid)?;
    aids::removal(Child::PodGroup, group)
}

/// What makes the PodGroup what it is to be.
pub(super) fn write(draft: &Draft<'_>, spec: &JobSpec) -> Option<Write> {
    let wanted = wanted(draft, spec);
    if let Some(group) = current(draft) {
        let change = merge_patch(&compared(&group.facts.spec), &compared(&wanted))?;
        return Some(Write::Patch(
            Child::PodGroup,
            Patch {
                name: group.name.to_string(),
                uid: group.uid.to_string(),
                body: json!({"spec": change}),
            },
        ));
    }
    let meta = draft.meta();
    let name = objects::group_name(meta);
    if draft.seen.groups.iter().any(|group| *group.name == *name) {
        return None;
    }
    let mut metadata = objects::metadata(meta, &name);
    metadata["labels"] = json!(meta.labels);
    metadata["annotations"] = json!(draft.seen.job.annotations);
    let mut body = json!({
        "apiVersion": Child::PodGroup.api_version(),
        "kind": Child::PodGroup.kind(),
        "metadata": metadata,
        "spec": {
            "minMember": wanted.min_member,
            "minTaskMember": wanted.min_task_member,
            "minResources": wanted.min_resources,
            "queue": wanted.queue,
        },
    });
    if !wanted.priority_class_name.is_empty() {
        body["spec"]["priorityClassName"] = wanted.priority_class_name.into();
    }
    if let Some(topology) = &spec.network_topology {
        body["spec"]["networkTopology"] = topology.clone();
    }
    Some(Write::Create(Child::PodGroup, Create { name, group: "".into(), index: 0, body }))
}

/// The part of a PodGroup that follows the job; amounts compare by what they mean.
fn compared(spec: &GroupSpec) -> Value {
    let amounts: BTreeMap<&str, String> = spec
        .min_resources
        .iter()
        .map(|(key, text)| {
            let amount = text.parse::<Quantity>().map(|amount| amount.to_string());
            (key.as_str(), amount.unwrap_or_else(|_| text.clone()))
        })
        .collect();
    json!({
        "minMember": spec.min_member,
        "minTaskMember": spec.min_task_member,
        "minResources": amounts,
        "priorityClassName": spec.priority_class_name,
    })
}

/// What the PodGroup is to ask for. A task that may not start yet does not count: the gang would
/// wait for it and it for the gang.
fn wanted(draft: &Draft<'_>, spec: &JobSpec) -> GroupSpec {
    let started = depends::started(draft, spec);
    let min_member = min_member(spec, &started);
    let shares = started.iter().map(|task| Share {
        priority: priority(draft, task),
        least: task.min_available,
        pods: i64::from(task.replicas),
        template: &task.template,
    });
    GroupSpec {
        min_member,
        min_task_member: started
            .iter()
            .map(|task| (task.name.clone(), task.min_available))
            .collect(),
        min_resources: min_resources(shares.collect(), min_member, Keys::Quota),
        queue: spec.queue.clone(),
        priority_class_name: spec.priority_class.clone(),
        schedule_timeout_seconds: None,
    }
}

fn priority(draft: &Draft<'_>, task: &TaskSpec) -> i64 {
    let name = task.template["spec"]["priorityClassName"].as_str().unwrap_or_default();
    let class = draft.seen.classes.iter().find(|class| *class.name == *name);
    class.map_or(0, |class| class.facts.value)
}

fn min_member(spec: &JobSpec, started: &[&TaskSpec]) -> i64 {
    if started.len() == spec.tasks.len() {
        return spec.min_available;
    }
    let minimums = |tasks: &[&TaskSpec]| tasks.iter().map(|task| task.min_available).sum::<i64>();
    let all: i64 = spec.tasks.iter().map(|task| task.min_available).sum();
    let pods: i64 = started.iter().map(|task| i64::from(task.replicas)).sum();
    let waiting = all - minimums(started);
    let wanted =
        if spec.min_available >= all { spec.min_available - waiting } else { spec.min_available };
    wanted.min(pods)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_wait_do_not_count() {
        let spec = |min: i64| {
            JobSpec::parse(json!({"minAvailable": min, "tasks": [
                {"name": "a", "replicas": 2, "minAvailable": 1},
                {"name": "b", "replicas": 4, "dependsOn": {"name": ["a"]}}]}))
            .unwrap()
        };
        for (min, first, all) in [(0, 1, 5), (6, 2, 6), (1, 1, 1), (3, 2, 3)] {
            let spec = spec(min);
            let tasks: Vec<&TaskSpec> = spec.tasks.iter().collect();
            assert_eq!(min_member(&spec, &tasks[..1]), first, "{min}");
            assert_eq!(min_member(&spec, &tasks), all, "{min}");
        }
    }

    #[test]
    fn amounts_are_the_same_however_they_are_written() {
        let spec = |cpu: &str| GroupSpec {
            min_resources: [("cpu".to_owned(), cpu.to_owned())].into(),
            ..GroupSpec::default()
        };
        assert_eq!(compared(&spec("1000m")), compared(&spec("1")));
        assert_ne!(compared(&spec("1000m")), compared(&spec("2")));
    }
}
