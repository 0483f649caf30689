//! What the smallest gang of a job asks for, in the keys of a resource quota.
//!
//! Tasks of higher priority count first. Must not know the PodGroup.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use trainyard_api::{quantity::Quantity, volcano::TaskSpec};

use crate::aid::{Aid, ClassFacts};

type Amounts = BTreeMap<String, Quantity>;

/// Resources whose limits a quota counts.
const LIMITED: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// What so many pods of these tasks ask for.
#[must_use]
pub(super) fn of(
    tasks: &[&TaskSpec],
    min_member: i64,
    classes: &[Arc<Aid<ClassFacts>>],
) -> BTreeMap<String, String> {
    let worth = |task: &TaskSpec| {
        let name = task.template["spec"]["priorityClassName"].as_str().unwrap_or_default();
        classes.iter().find(|class| *class.name == *name).map_or(0, |class| class.facts.value)
    };
    let mut tasks = tasks.to_vec();
    tasks.sort_by_key(|task| std::cmp::Reverse(worth(task)));
    let minimums: i64 = tasks.iter().map(|task| task.min_available).sum();
    let replicas = |task: &TaskSpec| i64::from(task.replicas);
    let mut left = min_member;
    let mut sum = Amounts::new();
    let mut count = |task: &TaskSpec, pods: i64| {
        let pods = pods.clamp(0, left.max(0));
        left -= pods;
        if pods > 0 {
            add(&mut sum, &usage(&task.template["spec"]), pods);
        }
    };
    if min_member < minimums {
        for task in &tasks {
            count(task, replicas(task));
        }
    } else {
        for task in &tasks {
            count(task, task.min_available);
        }
        for task in &tasks {
            count(task, replicas(task) - task.min_available);
        }
    }
    sum.into_iter().map(|(key, amount)| (key, amount.to_string())).collect()
}

fn add(sum: &mut Amounts, part: &Amounts, times: i64) {
    for (key, amount) in part {
        let entry = sum.entry(key.clone()).or_insert(Quantity::ZERO);
        for _ in 0..times {
            *entry = *entry + *amount;
        }
    }
}

/// What one pod uses up of a quota.
fn usage(pod_spec: &Value) -> Amounts {
    let mut usage = Amounts::new();
    for key in ["count/pods", "pods"] {
        usage.insert(key.to_owned(), Quantity::from_value(1));
    }
    for (name, amount) in pod_amounts(pod_spec, "requests") {
        usage.insert(format!("requests.{name}"), amount);
        usage.insert(name, amount);
    }
    for (name, amount) in pod_amounts(pod_spec, "limits") {
        if LIMITED.contains(&name.as_str()) {
            usage.insert(format!("limits.{name}"), amount);
        }
    }
    usage
}

/// What a pod asks for, or may use at most: the containers' together, or more if it takes more
/// before they start.
fn pod_amounts(pod_spec: &Value, kind: &str) -> Amounts {
    let empty = Vec::new();
    let of = |key: &str| pod_spec[key].as_array().unwrap_or(&empty).clone();
    let mut sum = Amounts::new();
    for container in of("containers") {
        add(&mut sum, &amounts(&container["resources"], kind), 1);
    }
    let (mut beside, mut before) = (Amounts::new(), Amounts::new());
    for container in of("initContainers") {
        let own = amounts(&container["resources"], kind);
        let mut then = beside.clone();
        add(&mut then, &own, 1);
        if container["restartPolicy"] == "Always" {
            beside = then.clone();
        }
        raise(&mut before, &then);
    }
    add(&mut sum, &beside, 1);
    raise(&mut sum, &before);
    // What is said for the whole pod goes before what its containers say.
    sum.extend(amounts(&pod_spec["resources"], kind));
    let overhead = read(&pod_spec["overhead"]);
    for (name, amount) in overhead {
        if kind == "requests" || sum.contains_key(&name) {
            let entry = sum.entry(name).or_insert(Quantity::ZERO);
            *entry = *entry + amount;
        }
    }
    sum
}

fn raise(most: &mut Amounts, other: &Amounts) {
    for (key, amount) in other {
        let entry = most.entry(key.clone()).or_insert(*amount);
        *entry = (*entry).max(*amount);
    }
}

/// Requests that are not given are the limits, as the API server has it.
fn amounts(resources: &Value, kind: &str) -> Amounts {
    let mut amounts = read(&resources["limits"]);
    if kind == "requests" {
        amounts.extend(read(&resources["requests"]));
    }
    amounts
}

fn read(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, amount)| {
            let text = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
            text.parse().ok().map(|amount| (name.clone(), amount))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use trainyard_api::volcano::JobSpec;

    use super::*;

    fn class(name: &str, value: i64) -> Arc<Aid<ClassFacts>> {
        Arc::new(Aid { name: name.into(), facts: ClassFacts { value }, ..Aid::default() })
    }

    fn template(cpu: &str, class: &str) -> Value {
        json!({"spec": {"priorityClassName": class,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]}})
    }

    #[test]
    fn the_worked_table() {
        let classes = [class("high", 100), class("low", 1)];
        let rows = [
            (2, Some(1), Some(1), "", "150m", 2_i64),
            (3, None, Some(1), "", "200m", 3),
            (3, Some(1), None, "", "250m", 3),
            (3, Some(1), Some(1), "master", "200m", 3),
            (3, Some(1), Some(1), "worker", "250m", 3),
            (3, Some(0), Some(1), "worker", "250m", 3),
            (4, Some(1), Some(1), "worker", "300m", 4),
            (2, Some(1), None, "", "100m", 2),
            (2, None, Some(1), "", "100m", 2),
            (3, None, None, "", "200m", 3),
        ];
        for (at, (min, master, worker, higher, cpu, pods)) in rows.into_iter().enumerate() {
            let class = |task: &str| match higher {
                "" => "",
                other if other == task => "high",
                _ => "low",
            };
            let spec = JobSpec::parse(json!({"minAvailable": min, "tasks": [
                {"name": "master", "replicas": 2, "minAvailable": master,
                    "template": template("50m", class("master"))},
                {"name": "worker", "replicas": 2, "minAvailable": worker,
                    "template": template("100m", class("worker"))}]}))
            .unwrap();
            let tasks: Vec<&TaskSpec> = spec.tasks.iter().collect();
            let found = of(&tasks, min, &classes);
            let wanted: BTreeMap<String, String> = [
                ("count/pods", pods.to_string()),
                ("pods", pods.to_string()),
                ("cpu", cpu.to_owned()),
                ("requests.cpu", cpu.to_owned()),
            ]
            .map(|(key, text)| (key.to_owned(), text))
            .into();
            assert_eq!(found, wanted, "row {at}");
        }
    }

    #[test]
    fn devices_count_bare_and_as_requests() {
        let resources = json!({"limits": {"cpu": 1, "memory": "1000Mi", "nvidia.com/gpu": "1"}});
        let template = json!({"spec": {"containers": [{"resources": resources}]}});
        let spec = JobSpec::parse(json!({"tasks": [
            {"name": "a", "replicas": 1, "template": template.clone()},
            {"name": "b", "replicas": 1, "template": template}]}))
        .unwrap();
        let tasks: Vec<&TaskSpec> = spec.tasks.iter().collect();
        let wanted: BTreeMap<String, String> = [
            ("count/pods", "2"),
            ("pods", "2"),
            ("cpu", "2"),
            ("memory", "2000Mi"),
            ("nvidia.com/gpu", "2"),
            ("requests.cpu", "2"),
            ("requests.memory", "2000Mi"),
            ("requests.nvidia.com/gpu", "2"),
            ("limits.cpu", "2"),
            ("limits.memory", "2000Mi"),
        ]
        .map(|(key, text)| (key.to_owned(), text.to_owned()))
        .into();
        assert_eq!(of(&tasks, 2, &[]), wanted);
    }

    #[test]
    fn what_runs_before_counts_if_it_is_more_and_what_runs_beside_always() {
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
        let pod = json!({"overhead": {"cpu": "10m"}, "containers": [{"resources": cpu("1")}],
            "initContainers": [
                {"restartPolicy": "Always", "resources": cpu("500m")},
                {"resources": cpu("2")}]});
        assert_eq!(pod_amounts(&pod, "requests")["cpu"].millis(), 2_510);
        let pod = json!({"resources": cpu("3"), "containers": [{"resources": cpu("1")}]});
        assert_eq!(pod_amounts(&pod, "requests")["cpu"].millis(), 3_000);
    }
}
