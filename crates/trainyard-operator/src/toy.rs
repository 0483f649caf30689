//! For tests: two small kinds of job with planners of a few lines.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use trainyard_api::Meta;
use trainyard_core::{
    Aid, Child, Config, Create, Delete, Event, Mark, Patch, Phase, Plan, PodView, Stage, Tongue,
    Write, aid::Presence,
};

pub(crate) use crate::toy_server::{Fault, Server};
use crate::{
    beside::Beside,
    cache::Object,
    kind::{JobKind, Seen, Selector},
};

/// Jobs that want some pods and are done when all of them have succeeded.
#[derive(Debug)]
pub(crate) struct Toys;

#[derive(Debug, Deserialize)]
pub(crate) struct Toy {
    metadata: Meta,
    spec: ToySpec,
    #[serde(default)]
    status: ToyStatus,
}

#[derive(Debug, Deserialize)]
struct ToySpec {
    pods: u32,
    deadline: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
struct ToyStatus {
    #[serde(default)]
    phase: String,
}

impl Object for Toy {
    fn uid(&self) -> &str {
        &self.metadata.uid
    }

    fn name(&self) -> &str {
        &self.metadata.name
    }

    fn version(&self) -> u64 {
        self.metadata.version()
    }

    fn owner(&self) -> Option<&str> {
        None
    }

    fn same_facts(&mut self, _: &Self) -> bool {
        false
    }
}

fn status(phase: &str, mark: Mark) -> Write {
    Write::PatchStatus { patch: json!({"phase": phase}), marks: vec![mark] }
}

impl JobKind for Toys {
    type Job = Toy;

    const API_VERSION: &'static str = "toys.dev/v1";
    const KIND: &'static str = "Toy";
    const RESOURCE: &'static str = "toys";
    const STATUS: &'static str = "toys/status";
    const DEFINITION: &'static str = "toys.toys.dev";
    const SELECTOR: Selector = Selector { label: "by", value: Some("toys") };
    const EVENT_SOURCE: &'static str = "toymaker";
    const TONGUE: Tongue = Tongue::Kubeflow;
    const FRAMEWORK: &'static str = "toy";
    const REMEDY: &'static str = "install toys";
    const LEFT: &'static str = "toys are left alone";

    fn beside(_: &Config) -> &'static [Beside] {
        &[]
    }

    fn meta(job: &Toy) -> &Meta {
        &job.metadata
    }

    fn is_finished(job: &Toy) -> bool {
        job.status.phase == "Done"
    }

    fn plan(seen: &Seen<Toy>, now: Timestamp, _: &Config) -> Plan {
        let mut plan = Plan::default();
        let (job, meta) = (&seen.job, &seen.job.metadata);
        if Self::is_finished(job) {
            return plan;
        }
        if job.status.phase.is_empty() {
            let writes = vec![status("Created", Mark::Created)];
            plan.push(Stage { writes, events: vec![Event::normal("Created", "Toy is created.")] });
        }
        let end = |plan: &mut Plan, mark| {
            let event = Event::normal("Done", "Toy is done.").terminal();
            plan.push(Stage { writes: vec![status("Done", mark)], events: vec![event] });
        };
        if let (Some(deadline), Some(created)) = (job.spec.deadline, meta.creation_timestamp) {
            let due = trainyard_api::time::after_seconds(created, deadline);
            if now >= due {
                end(&mut plan, Mark::Failed);
                return plan;
            }
            plan.look_again(due);
        }
        let succeeded = seen.pods.iter().filter(|pod| pod.phase == Phase::Succeeded).count();
        if job.spec.pods > 0 && succeeded >= job.spec.pods as usize {
            end(&mut plan, Mark::Succeeded);
            return plan;
        }
        let failed = seen.pods.iter().filter(|pod| pod.phase == Phase::Failed);
        let deletions = failed.filter(|pod| pod.deletion.is_none()).map(|pod| {
            Write::Delete(
                Child::Pod,
                Delete {
                    name: pod.name.to_string(),
                    uid: pod.uid.to_string(),
                    group: "toy".into(),
                    index: 0,
                    grace_seconds: None,
                },
            )
        });
        plan.push(Stage { writes: deletions.collect(), events: vec![] });
        let missing = (0..job.spec.pods).filter_map(|index| {
            let name = format!("{}-{index}", meta.name);
            let is_there = seen.pods.iter().any(|pod| *pod.name == name);
            (!is_there).then(|| {
                Write::Create(
                    Child::Pod,
                    Create { body: pod(&name, &meta.uid), name, group: "toy".into(), index },
                )
            })
        });
        let writes: Vec<Write> = missing.collect();
        let refused = seen.create_failure.as_ref().filter(|_| !writes.is_empty());
        plan.notices.extend(refused.map(|words| Event::warning("Refused", words.clone())));
        plan.push(Stage { writes, events: vec![] });
        plan
    }
}

pub(crate) fn pod(name: &str, owner: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"by": "toys"}, "ownerReferences": [
        {"apiVersion": "toys.dev/v1", "kind": "Toy", "name": "t", "uid": owner, "controller": true},
    ]}})
}

/// Jobs that have one of everything, in the order: config map, policy and claim; PodGroup; pods once
/// the group may run. What a Command asks for becomes the job's phase.
#[derive(Debug)]
pub(crate) struct Blocks;

impl JobKind for Blocks {
    type Job = Toy;

    const API_VERSION: &'static str = "toys.dev/v1";
    const KIND: &'static str = "Block";
    const RESOURCE: &'static str = "blocks";
    const STATUS: &'static str = "blocks/status";
    const DEFINITION: &'static str = "blocks.toys.dev";
    const SELECTOR: Selector = Selector { label: "block", value: None };
    const EVENT_SOURCE: &'static str = "blockmaker";
    const TONGUE: Tongue = Tongue::Volcano;
    const FRAMEWORK: &'static str = "block";
    const REMEDY: &'static str = "install blocks";
    const LEFT: &'static str = "blocks are left alone";

    fn beside(_: &Config) -> &'static [Beside] {
        &[
            Beside::ConfigMaps,
            Beside::NetworkPolicies,
            Beside::Claims,
            Beside::PodGroups,
            Beside::Commands,
            Beside::PriorityClasses,
            Beside::Nodes,
        ]
    }

    fn meta(job: &Toy) -> &Meta {
        &job.metadata
    }

    fn is_finished(job: &Toy) -> bool {
        job.status.phase == "Done"
    }

    fn plan(seen: &Seen<Toy>, _: Timestamp, _: &Config) -> Plan {
        let mut plan = Plan::default();
        let meta = &seen.job.metadata;
        for command in &seen.commands {
            let mark =
                if command.facts.action == "Done" { Mark::Succeeded } else { Mark::Restarted };
            let writes = vec![status(&command.facts.action, mark)];
            plan.push(Stage { writes, events: vec![] });
            let writes = vec![Write::Delete(Child::Command, gone(&command.name, &command.uid))];
            plan.push(Stage { writes, events: vec![] });
        }
        if !plan.is_idle() || Self::is_finished(&seen.job) || seen.refused.is_some() {
            return plan;
        }
        let lost = seen.pods.iter().filter(|pod| pod.unreachable.is_some());
        let told = |pod: &Arc<PodView>| Event::warning("Lost", format!("{} is lost", pod.name));
        plan.notices.extend(lost.map(told));
        let make = |child: Child, body: Value| {
            let body = merged(block(&meta.name, &meta.uid), body);
            let name = meta.name.clone();
            Write::Create(child, Create { name, group: "".into(), index: 0, body })
        };
        let mut writes = Vec::new();
        let is_missing = |there: &[Arc<Aid<Presence>>]| there.is_empty();
        if seen.config_maps.is_empty() {
            writes.push(make(Child::ConfigMap, json!({"data": {"hosts": "a"}})));
        }
        if is_missing(&seen.policies) {
            writes.push(make(Child::NetworkPolicy, json!({})));
        }
        if is_missing(&seen.claims) {
            writes.push(make(Child::Claim, json!({})));
        }
        plan.push(Stage { writes, events: vec![] });
        let wanted = i64::from(seen.job.spec.pods);
        // What a class is worth stands in for whatever else a group takes over from elsewhere.
        let worth: i64 = seen.classes.iter().map(|class| class.facts.value).sum();
        let spec = json!({"spec": {"minMember": wanted + worth}});
        let writes = match seen.groups.first() {
            None => vec![make(Child::PodGroup, spec)],
            Some(group) if group.facts.spec.min_member != wanted + worth => {
                let (name, uid) = (group.name.to_string(), group.uid.to_string());
                vec![Write::Patch(Child::PodGroup, Patch { name, uid, body: spec })]
            }
            Some(group) if group.facts.status.may_run() && seen.pods.is_empty() => {
                vec![make(Child::Pod, json!({}))]
            }
            Some(_) => vec![],
        };
        plan.push(Stage { writes, events: vec![] });
        plan
    }

    fn queue(_: &Toy) -> Option<String> {
        Some("default".to_owned())
    }
}

fn gone(name: &str, uid: &str) -> Delete {
    let (name, uid) = (name.to_owned(), uid.to_owned());
    Delete { name, uid, group: "".into(), index: 0, grace_seconds: None }
}

/// Something of a block's.
pub(crate) fn block(name: &str, owner: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"block": name}, "ownerReferences": [
        {"apiVersion": "toys.dev/v1", "kind": "Block", "name": name, "uid": owner,
            "controller": true},
    ]}})
}

fn merged(mut object: Value, more: Value) -> Value {
    crate::toy_server::merge(&mut object, more);
    object
}

/// Lets the operator work for a while.
pub(crate) async fn pass_time(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
