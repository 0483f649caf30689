//! Whether a job fits on this machine, asked of the scheduler before anything is started; and if not,
//! what is short, by how much, and the smallest change that helps.
//!
//! Owns the words. What fits is decided in `trainyard-sched`. Pure.

use serde_json::{Value, json};
use trainyard_sched::{Amounts, Delta, Explanation, GroupKey, Node, Pod, Remedy, State};

use super::bundle::Job;
use super::kinds::Member;
use super::words::{amount, counted, written};
use crate::commands::apply::without_nulls;
use crate::present::{items, text};

const SCHEDULER: &str = "default-scheduler";
const GANG: &str = "trial";
/// What the reasons of nodes without room begin with, in kube-scheduler's words.
const NO_ROOM: [&str; 2] = ["Insufficient ", "Too many pods"];

/// What came of asking.
#[derive(Debug)]
pub(crate) enum Room {
    Fits {
        /// What its pods ask for together.
        asked: Amounts,
        /// What the machine has.
        has: Amounts,
    },
    /// One problem and one remedy per line.
    Short { problems: Vec<String>, hint: String },
}

/// Asks whether a job would fit if it were alone here.
pub(crate) fn look(job: &Job, nodes: &[Value]) -> Room {
    let mut state = State::new([SCHEDULER.to_owned()]);
    let mut has = Amounts::default();
    for node in nodes.iter().filter_map(|node| serde_json::from_value::<Node>(node.clone()).ok()) {
        has.add(&node.has);
        state.apply(Delta::Node(Box::new(node)));
    }
    let (members, gang) = ((job.row.members)(&job.object), (job.row.gang)(&job.object));
    let mut asked = Amounts::default();
    for member in &members {
        let pod = serde_json::from_value::<Pod>(pod(job, 0, member, None));
        asked.add(&pod.map(|pod| pod.asks).unwrap_or_default());
    }
    // Who starts later waits for room and does not keep the others.
    let (tried, size) = if gang.is_empty() { (&members, None) } else { (&gang, Some(gang.len())) };
    let mut keys = Vec::new();
    for (at, member) in tried.iter().enumerate() {
        let Ok(pod) = serde_json::from_value::<Pod>(pod(job, at, member, size)) else { continue };
        keys.push(pod.group.clone());
        state.apply(Delta::Pod(Box::new(pod)));
    }
    state.decide(0);
    keys.dedup();
    let short = keys.iter().find_map(|key: &GroupKey| {
        state.explain(key, 0).filter(|why| why.waiting > 0 && !why.shortages.is_empty())
    });
    match short {
        Some(why) => {
            told(job, &why, &tried.iter().map(|one| one.role.as_ref()).collect::<Vec<_>>())
        }
        None => Room::Fits { asked, has },
    }
}

/// The pod that a member will be, as far as the scheduler looks at it.
fn pod(job: &Job, number: usize, member: &Member<'_>, gang: Option<usize>) -> Value {
    let (replica, template) = (member.replica(), member.template);
    let mut spec = template["spec"].clone();
    if !spec.is_object() {
        spec = json!({});
    }
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            request_limits(&mut container["resources"]);
        }
    }
    // Claims are made with the job; whether they are there is not the question.
    spec["volumes"] = json!([]);
    spec["schedulerName"] = SCHEDULER.into();
    let mut annotations = json!({});
    if let Some(size) = gang {
        annotations = json!({
            trainyard_api::names::ANNOTATION_GANG: GANG,
            trainyard_api::names::ANNOTATION_GANG_SIZE: size.to_string(),
        });
    }
    without_nulls(json!({
        "metadata": {"name": replica, "namespace": job.namespace, "uid": number.to_string(),
                     "annotations": annotations, "labels": template["metadata"]["labels"]},
        "spec": spec, "status": {"phase": "Pending"},
    }))
}

/// What is limited and not asked for is asked for, as the API server has it.
fn request_limits(resources: &mut Value) {
    if !resources.is_object() {
        return;
    }
    let limits = resources["limits"].as_object().cloned().unwrap_or_default();
    if !resources["requests"].is_object() {
        resources["requests"] = json!({});
    }
    if let Some(requests) = resources["requests"].as_object_mut() {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
    // A number is as good as a text in a manifest.
    for list in ["limits", "requests"] {
        for value in
            resources[list].as_object_mut().into_iter().flat_map(serde_json::Map::values_mut)
        {
            if value.is_number() {
                *value = value.to_string().into();
            }
        }
    }
}

/// Where every node keeps the pods out for other reasons than room: what nodes say, and what to do.
fn kept_out(job: &Job, why: &Explanation) -> Option<Room> {
    let is_room = |reason: &str| NO_ROOM.iter().any(|words| reason.starts_with(words));
    let others = || why.reasons.iter().filter(|(reason, _)| !is_room(reason));
    if why.nodes == 0 || others().map(|(_, count)| count).sum::<usize>() < why.nodes {
        return None;
    }
    let problem = |(reason, count): (&String, &usize)| {
        format!(
            "no node of this run takes the pods of {}: {count} of {}: {reason}",
            job.name, why.nodes
        )
    };
    let hint = "leave the nodeSelector, affinity or toleration out for this machine; its nodes have their \
        name, as --nodes gives it, the usual labels, and no others";
    Some(Room::Short { problems: others().map(problem).collect(), hint: hint.to_owned() })
}

fn told(job: &Job, why: &Explanation, roles: &[&str]) -> Room {
    if let Some(room) = kept_out(job, why) {
        return room;
    }
    let mut problems = Vec::new();
    for short in &why.shortages {
        let name = &short.resource;
        let of = |number: i64| amount(name, number);
        let problem = if short.free == 0 && name.contains('/') {
            format!("{} asks for {} {name} and this machine has none", job.name, of(short.asked))
        } else if short.per_member > short.most_on_one_node {
            format!(
                "{} asks for {} {name} in one pod and the largest node has {} free: {} too little",
                job.name,
                of(short.per_member),
                of(short.most_on_one_node),
                of(short.per_member - short.most_on_one_node)
            )
        } else {
            format!(
                "{} asks for {} {name} in {} and {} are free: {} too little",
                job.name,
                of(short.asked),
                counted(why.waiting, "pod"),
                of(short.free),
                of(short.asked - short.free)
            )
        };
        problems.push(problem);
    }
    for holder in &why.holders {
        problems.push(format!("{:?} holds a part of it", holder.group.name()));
    }
    Room::Short { problems, hint: hint(why, roles) }
}

/// The smallest change that fits.
fn hint(why: &Explanation, roles: &[&str]) -> String {
    let mut ways = Vec::new();
    let devices: Vec<&str> = why
        .shortages
        .iter()
        .map(|short| short.resource.as_str())
        .filter(|name| name.contains('/'))
        .collect();
    for name in &devices {
        ways.push(format!("run without: `--without {name}`"));
        ways.push(format!("pretend to have some: `--resource {name}=N`"));
    }
    let workers = roles.iter().filter(|role| role.eq_ignore_ascii_case("worker")).count();
    for remedy in &why.remedies {
        match remedy {
            Remedy::FewerMembers { from, to } if from - to < workers => {
                let left = workers - (from - to);
                ways.push(format!("{} instead of {workers}", counted(left, "worker")));
            }
            Remedy::SmallerMembers { resource, to, .. }
                if !devices.contains(&resource.as_str()) =>
            {
                ways.push(format!("{resource} {} in each pod", written(resource, *to)));
            }
            _ => {}
        }
    }
    if ways.is_empty() {
        let names: Vec<&str> = why.shortages.iter().map(|short| short.resource.as_str()).collect();
        return format!("lower resources.requests of {} in the manifest", names.join(" and "));
    }
    format!("what would fit: {}", ways.join(", or "))
}

/// Containers that get too little memory for TensorFlow to load, in words.
pub(crate) fn little_memory(job: &Job) -> Vec<String> {
    const NEEDED: i64 = 400 << 20;
    let mut told = Vec::new();
    for member in (job.row.members)(&job.object) {
        for container in items(member.template, &["spec", "containers"]) {
            let image = text(container, &["image"]).to_lowercase();
            let limit = &container["resources"]["limits"]["memory"];
            let limit = limit.as_str().and_then(|text| text.parse().ok());
            let limit = limit.map(|limit: trainyard_schema::quantity::Quantity| limit.value());
            let is_tensorflow = image.contains("tensorflow") || image.contains("/tf-");
            if let Some(limit) = limit.filter(|limit| is_tensorflow && *limit < NEEDED) {
                told.push(format!(
                    "{}: a memory limit of {} is too little for TensorFlow, which needs about 400 Mi \
                     to load: it will be very slow or be killed; raise resources.limits.memory",
                    member.replica(),
                    amount("memory", limit)
                ));
            }
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(replicas: u64, resources: &Value) -> Job {
        let object = json!({"apiVersion": "kubeflow.org/v1", "kind": "TFJob",
            "metadata": {"name": "mnist"}, "spec": {"tfReplicaSpecs": {
                "Worker": {"replicas": replicas, "template": {"spec": {"containers": [
                    {"name": "tensorflow", "image": "tensorflow/tensorflow:2.21.0",
                     "resources": resources}]}}}}}});
        let row = super::super::kinds::of(&object).unwrap();
        Job { row, place: "f".into(), namespace: "default".into(), name: "mnist".into(), object }
    }

    fn node() -> Value {
        json!({"metadata": {"name": "a", "uid": "a"}, "status": {"allocatable":
            {"cpu": "4", "memory": "8Gi", "pods": "110"}}})
    }

    fn short(replicas: u64, resources: &Value) -> (String, String) {
        match look(&job(replicas, resources), &[node()]) {
            Room::Short { problems, hint } => (problems.join("\n"), hint),
            Room::Fits { .. } => Default::default(),
        }
    }

    #[test]
    fn what_fits_says_what_it_takes() {
        let Room::Fits { asked, has } = look(&job(3, &json!({"limits": {"cpu": 1}})), &[node()])
        else {
            unreachable!("three of four cores fit")
        };
        assert_eq!((asked.get("cpu"), has.get("cpu")), (3000, 4000));
    }

    #[test]
    fn what_is_short_is_named_with_the_smallest_change() {
        let (problem, hint) = short(5, &json!({"requests": {"cpu": "1"}}));
        assert_eq!(problem, "mnist asks for 5.0 cpu in 5 pods and 4.0 are free: 1.0 too little");
        assert_eq!(hint, "what would fit: 4 workers instead of 5, or cpu 800m in each pod");
        let (problem, hint) = short(1, &json!({"requests": {"memory": "10Gi"}}));
        assert!(problem.contains("10.0 Gi memory in one pod"), "{problem}");
        assert!(problem.contains("2.0 Gi too little"), "{problem}");
        assert_eq!(hint, "what would fit: memory 8Gi in each pod");
        let (problem, hint) = short(2, &json!({"limits": {"nvidia.com/gpu": 1}}));
        assert_eq!(problem, "mnist asks for 2 nvidia.com/gpu and this machine has none");
        assert!(hint.contains("`--without nvidia.com/gpu`"), "{hint}");
    }

    #[test]
    fn nodes_that_do_not_match_say_so_instead_of_what_is_short() {
        let mut picky = job(1, &json!({}));
        picky.object["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["nodeSelector"] =
            json!({"disk": "fast"});
        let Room::Short { problems, hint } = look(&picky, &[node()]) else {
            unreachable!("no node has that label")
        };
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("1 of 1: node(s) didn't match"), "{problems:?}");
        assert!(hint.contains("nodeSelector"), "{hint}");
    }

    #[test]
    fn only_what_starts_together_must_fit() {
        let job = |least: u64| {
            let worker = json!({"spec": {"containers": [
                {"name": "w", "resources": {"requests": {"cpu": "1"}}}]}});
            let object = json!({"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
                "metadata": {"name": "vj"}, "spec": {"minAvailable": least, "tasks": [
                    {"name": "worker", "replicas": 6, "minAvailable": 1, "template": worker}]}});
            let row = super::super::kinds::of(&object).unwrap();
            Job { row, place: "f".into(), namespace: "default".into(), name: "vj".into(), object }
        };
        let Room::Fits { asked, .. } = look(&job(4), &[node()]) else {
            unreachable!("four of six fit, and four are enough")
        };
        assert_eq!(asked.get("cpu"), 6000);
        let Room::Short { problems, hint } = look(&job(5), &[node()]) else {
            unreachable!("five do not fit")
        };
        assert_eq!(problems, ["vj asks for 5.0 cpu in 5 pods and 4.0 are free: 1.0 too little"]);
        assert!(hint.contains("4 workers instead of 5"), "{hint}");
    }

    #[test]
    fn too_little_memory_for_tensorflow_is_said() {
        let told = little_memory(&job(1, &json!({"limits": {"memory": "256Mi"}})));
        assert!(
            told[0].starts_with("worker-0: a memory limit of 256 Mi is too little"),
            "{told:?}"
        );
        assert_eq!(little_memory(&job(1, &json!({"limits": {"memory": "1Gi"}}))), [""; 0]);
    }
}
