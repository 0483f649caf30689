//! The gang of a job: its PodGroup, without which no pod of it starts, and the marks of its members.
//!
//! Owns which group a job needs, when it is written, and which pods may be made beside it. Must not
//! know how room is found.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use trainyard_api::{
    JobStatus, Meta, ReplicaType, SchedulingPolicy, TfJobSpec, names, quantity,
    volcano::names as volcano,
};

use super::{Observed, objects::Builder, roster};
use crate::{
    aid::{Aid, GroupFacts, GroupSpec},
    child::Child,
    config::{self, Config},
    min_resources::{Keys, Share, min_resources},
    patch::merge_patch,
    phase::Phase,
    plan::{Create, Delete, Event, Patch, Plan, Stage, Write},
    view::{PodView, Role},
};

mod tell;

pub(super) use tell::note_waiting;

/// The gang of a job in one pass.
pub(super) struct Gang<'a> {
    /// The kind of its group.
    child: Child,
    /// The job.
    meta: &'a Meta,
    /// The group that is there.
    found: Option<&'a Aid<GroupFacts>>,
    /// The group that is to be; none when no member has work left.
    wanted: Option<GroupSpec>,
    /// Whether one of its pods runs, however late the group's status is.
    runs: bool,
}

/// Members of one type that still have work.
struct Members<'a> {
    kind: ReplicaType,
    count: i64,
    template: &'a Value,
}

/// Who is in a gang.
struct Membership<'a> {
    members: Vec<Members<'a>>,
    /// Pods that were made before jobs were gangs and go on outside. Whoever takes the place of one
    /// is a member.
    outside: i64,
}

impl<'a> Gang<'a> {
    /// The gang, if jobs are gangs. Who has completed is taken from the stored status: the group
    /// then changes as often as that does, not with every pod that ends.
    #[must_use]
    pub(super) fn new(
        seen: &Observed<'a>,
        spec: &TfJobSpec,
        stored: &JobStatus,
        config: &Config,
    ) -> Option<Self> {
        let child = config.gang.child()?;
        let found = find(seen);
        let wanted =
            wanted(seen, spec, &membership(seen, spec, stored, &config.gang)).map(|wanted| {
                match child {
                    Child::PodGroup => GroupSpec { schedule_timeout_seconds: None, ..wanted },
                    _ => GroupSpec {
                        min_member: wanted.min_member,
                        min_resources: wanted.min_resources,
                        schedule_timeout_seconds: wanted.schedule_timeout_seconds,
                        ..GroupSpec::default()
                    },
                }
            });
        let runs = seen.pods.iter().any(|pod| pod.is_gang_member && pod.phase == Phase::Running);
        Some(Self { child, meta: &seen.job.metadata, found, wanted, runs })
    }

    /// Why the gang has no nodes yet, in words; none when it has them. The scheduler plugins' groups
    /// say nothing of that.
    #[must_use]
    pub(super) fn waits(&self) -> Option<String> {
        if self.child != Child::PodGroup || self.wanted.is_none() || self.runs {
            return None;
        }
        let name = &self.meta.name;
        let Some(group) = self.found.filter(|group| !group.is_leaving) else {
            return Some(format!("PodGroup {name} is being made"));
        };
        let status = &group.facts.status;
        if status.is_placed() {
            return None;
        }
        Some(match status.obstacle() {
            Some(told) => format!("PodGroup {name} waits: {}: {}", told.reason, told.message),
            None if status.phase.is_empty() => {
                format!("no scheduler has taken up PodGroup {name}")
            }
            None => format!("PodGroup {name} waits for room"),
        })
    }

    /// Whether a pod of this template may be made. Members are there from the start, so that each
    /// says what it waits for; whoever is placed by another scheduler takes no room before them.
    #[must_use]
    pub(super) fn admits(&self, gang: &config::Gang, template: &Value) -> bool {
        if self.child != Child::PodGroup || self.wanted.is_none() {
            return true;
        }
        // A pod would be counted into a group that is about to go.
        let is_leaving = self.found.is_some_and(|group| group.is_leaving);
        !is_leaving && (stranger(gang, template).is_none() || self.waits().is_none())
    }

    /// What makes the group what it is to be; none when it is.
    #[must_use]
    pub(super) fn write(&self, builder: &Builder<'_>) -> Option<Write> {
        match (&self.wanted, self.found) {
            (Some(wanted), None) => Some(Write::Create(self.child, self.create(wanted, builder))),
            (Some(wanted), Some(group)) if !group.is_leaving => {
                let change =
                    merge_patch(&value(&alike(&group.facts.spec, wanted)), &value(wanted))?;
                let (name, uid) = (group.name.to_string(), group.uid.to_string());
                let body = json!({"spec": change});
                Some(Write::Patch(self.child, Patch { name, uid, body }))
            }
            (None, Some(group)) => removal(self.child, group),
            _ => None,
        }
    }

    fn create(&self, wanted: &GroupSpec, builder: &Builder<'_>) -> Create {
        let mut labels: Map<String, Value> =
            self.meta.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
        labels.insert(names::LABEL_OPERATOR.into(), names::OPERATOR.into());
        labels.insert(names::LABEL_JOB.into(), self.meta.name.clone().into());
        let mut metadata = builder.metadata(&self.meta.name, &labels);
        if !self.meta.annotations.is_empty() {
            metadata["annotations"] = json!(self.meta.annotations);
        }
        let body = json!({
            "apiVersion": self.child.api_version(),
            "kind": self.child.kind(),
            "metadata": metadata,
            "spec": value(wanted),
        });
        Create { name: self.meta.name.clone(), group: "".into(), index: 0, body }
    }
}

/// Deletes the group of a job that has ended or is suspended.
pub(super) fn dissolve(plan: &mut Plan, seen: &Observed<'_>, config: &Config) {
    let Some(child) = config.gang.child() else {
        return;
    };
    if let Some(write) = find(seen).and_then(|group| removal(child, group)) {
        let message = "Job has been terminated. Deleting PodGroup";
        let events = vec![Event::normal("JobTerminated", message)];
        plan.push(Stage { writes: vec![write], events });
    }
}

/// Makes a pod a member of the gang, unless its template names another scheduler.
pub(super) fn enlist(
    gang: &config::Gang,
    job: &Meta,
    kind: ReplicaType,
    metadata: &mut Value,
    pod_spec: &mut Value,
) {
    let Some(scheduler) = gang.scheduler() else {
        return;
    };
    match scheduler_of(pod_spec) {
        None => pod_spec["schedulerName"] = scheduler.into(),
        Some(other) if !serves(gang, other) => return,
        Some(_) => {}
    }
    if gang.child() == Some(Child::PodGroup) {
        mark(metadata, "annotations", volcano::ANNOTATION_GROUP, &job.name);
        mark(metadata, "annotations", volcano::LABEL_TASK, kind.lower());
    } else {
        mark(metadata, "labels", names::LABEL_PLUGINS_GROUP, &job.name);
    }
}

/// Sets a label or an annotation, whatever the template says there.
fn mark(metadata: &mut Value, map: &str, key: &str, text: &str) {
    if !metadata[map].is_object() {
        metadata[map] = json!({});
    }
    metadata[map][key] = text.into();
}

/// The scheduler that a pod specification names.
fn scheduler_of(pod_spec: &Value) -> Option<&str> {
    pod_spec.get("schedulerName")?.as_str().filter(|name| !name.is_empty())
}

/// Whether pods that name this scheduler are placed by the gang's. Ours answers to Volcano's name
/// as well, so that manifests made for Volcano are gangs here.
fn serves(gang: &config::Gang, named: &str) -> bool {
    let Some(own) = gang.scheduler() else {
        return false;
    };
    named == own || (own == config::Gang::TRAINYARD && named == volcano::SCHEDULER)
}

/// The other scheduler that a template names, if it does.
fn stranger<'t>(gang: &config::Gang, template: &'t Value) -> Option<&'t str> {
    scheduler_of(template.get("spec")?).filter(|named| !serves(gang, named))
}

fn find<'a>(seen: &Observed<'a>) -> Option<&'a Aid<GroupFacts>> {
    let groups = seen.groups.iter().map(|group| &**group);
    groups.into_iter().find(|group| *group.name == *seen.job.metadata.name)
}

fn membership<'s>(
    seen: &Observed<'_>,
    spec: &'s TfJobSpec,
    status: &JobStatus,
    gang: &config::Gang,
) -> Membership<'s> {
    let mut membership = Membership { members: Vec::new(), outside: 0 };
    for (kind, one) in &spec.replicas {
        if stranger(gang, &one.template).is_some() {
            continue;
        }
        let completed = roster::completed(status, *kind);
        let goes_on_outside = |pod: &&Arc<PodView>| {
            let is_asked = matches!(pod.role, Role::Replica(id) if id.kind == *kind
                && id.index < one.replicas && !completed.contains(&id.index));
            is_asked && !pod.is_gang_member && !pod.phase.is_finished() && pod.deletion.is_none()
        };
        let outside = seen.pods.iter().filter(goes_on_outside).count();
        let done = completed.range(..one.replicas).count();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        membership.outside += number(outside);
        let count = i64::from(one.replicas) - number(done + outside);
        if count > 0 {
            membership.members.push(Members { kind: *kind, count, template: &one.template });
        }
    }
    membership
}

/// The group of these members; as many as are needed, at most as many as there are. Dynamic workers
/// come and go: one of them is enough to begin, beside everybody else.
fn wanted(seen: &Observed<'_>, spec: &TfJobSpec, who: &Membership<'_>) -> Option<GroupSpec> {
    let members = &who.members;
    let all: i64 = members.iter().map(|one| one.count).sum();
    if all == 0 {
        return None;
    }
    let open = SchedulingPolicy::default();
    let policy = spec.run_policy.scheduling_policy.as_ref().unwrap_or(&open);
    let is_elastic = spec.dynamic_workers && policy.min_available.is_none();
    let needed = |one: &Members<'_>| match one.kind {
        ReplicaType::Worker if is_elastic => 1,
        _ => one.count,
    };
    let needed_in_all = members.iter().map(needed).sum();
    let minimum = |least: u32| {
        let least = i64::from(least);
        (least - who.outside).clamp(least.min(1), all)
    };
    let least = policy.min_available.map_or(needed_in_all, minimum);
    let tasks = members.iter().filter(|_| is_elastic);
    let computed = || {
        let shares = members.iter().map(|one| Share {
            priority: priority(seen, one.template),
            least: 0,
            pods: needed(one),
            template: one.template,
        });
        min_resources(shares.collect(), least, Keys::Requests)
    };
    let kept = find(seen).map(|group| group.facts.spec.queue.as_str());
    let queue = kept.filter(|queue| !queue.is_empty()).or(policy.queue.as_deref());
    let class = policy.priority_class.as_deref().or_else(|| common_class(members));
    Some(GroupSpec {
        min_member: least,
        min_task_member: tasks.map(|one| (one.kind.lower().to_owned(), needed(one))).collect(),
        min_resources: policy.min_resources.clone().unwrap_or_else(computed),
        queue: queue.unwrap_or(volcano::QUEUE).to_owned(),
        priority_class_name: class.unwrap_or_default().to_owned(),
        schedule_timeout_seconds: policy.schedule_timeout_seconds,
    })
}

fn class(template: &Value) -> Option<&str> {
    template.pointer("/spec/priorityClassName")?.as_str().filter(|name| !name.is_empty())
}

/// The priority class that all members name.
fn common_class<'t>(members: &[Members<'t>]) -> Option<&'t str> {
    let first = class(members.first()?.template)?;
    members.iter().all(|one| class(one.template) == Some(first)).then_some(first)
}

fn priority(seen: &Observed<'_>, template: &Value) -> i64 {
    let named = class(template);
    let known = seen.classes.iter().find(|one| Some(&*one.name) == named);
    known.map_or(0, |one| one.facts.value)
}

fn removal(child: Child, group: &Aid<GroupFacts>) -> Option<Write> {
    let delete = Delete {
        name: group.name.to_string(),
        uid: group.uid.to_string(),
        group: "".into(),
        index: 0,
        grace_seconds: None,
    };
    (!group.is_leaving).then_some(Write::Delete(child, delete))
}

/// The same specification, with amounts written as in the other one where they are equal.
fn alike(found: &GroupSpec, wanted: &GroupSpec) -> GroupSpec {
    let amount = |text: &String| quantity::parse(text).ok();
    let rewritten = found.min_resources.iter().map(|(resource, text)| {
        let other = wanted.min_resources.get(resource);
        let same = other.filter(|other| amount(other).is_some_and(|one| Some(one) == amount(text)));
        (resource.clone(), same.unwrap_or(text).clone())
    });
    GroupSpec { min_resources: rewritten.collect(), ..found.clone() }
}

/// A specification as it is written: what is empty is left out.
fn value(spec: &GroupSpec) -> Value {
    let mut value = json!({"minMember": spec.min_member});
    let texts = [("queue", &spec.queue), ("priorityClassName", &spec.priority_class_name)];
    for (key, text) in texts.into_iter().filter(|(_, text)| !text.is_empty()) {
        value[key] = text.as_str().into();
    }
    if !spec.min_resources.is_empty() {
        value["minResources"] = json!(spec.min_resources);
    }
    if !spec.min_task_member.is_empty() {
        value["minTaskMember"] = json!(spec.min_task_member);
    }
    if let Some(seconds) = spec.schedule_timeout_seconds {
        value["scheduleTimeoutSeconds"] = seconds.into();
    }
    value
}
