//! Why a job waits as its own namespace tells it: all there is for people who may not read nodes and
//! queues, and for others what pods wait for that have their nodes.
//!
//! Conditions and events of the PodGroup and the pods in, text or JSON out. Pure.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::{Value, json};
use trainyard_core::aid::GroupStatus;
use trainyard_core::{Phase, PodView};
use trainyard_operator::Denied;

use super::words::Sheet;
use super::{ROLE, groups};
use crate::cluster::Kind;
use crate::commands::job_logs::find::replica;
use crate::commands::job_logs::wait::waits_for;
use crate::present::{events, items, one_line, text};
use crate::run::words::{counted, listed, some};

/// Events that are shown, the latest.
const EVENTS: usize = 5;
/// Pods that are named for one reason; more are counted.
const NAMED: usize = 4;

/// A pod that does not run yet.
#[derive(Debug)]
struct Waiting {
    replica: String,
    is_placed: bool,
    why: String,
}

/// A warning, and of how many other objects the same was said before.
#[derive(Debug)]
struct Warning<'a> {
    event: &'a Value,
    others: usize,
}

/// What can be seen without rights beyond the namespace.
#[derive(Debug)]
pub(super) struct NamespaceView<'a> {
    /// The state of a job of which nothing waits.
    state: String,
    groups: Vec<&'a Value>,
    pods: usize,
    waiting: Vec<Waiting>,
    /// Warnings, the latest last.
    events: Vec<Warning<'a>>,
    denied: &'a [Denied],
}

impl<'a> NamespaceView<'a> {
    pub(super) fn of(
        kind: &Kind,
        object: &'a Value,
        groups: &'a [Value],
        pods: &'a [Value],
        events: &'a [Value],
        denied: &'a [Denied],
    ) -> Self {
        let uid = &object["metadata"]["uid"];
        let owned = |one: &&Value| {
            items(one, &["metadata", "ownerReferences"]).any(|owner| owner["uid"] == *uid)
        };
        let mut own: Vec<&Value> = groups.iter().filter(owned).collect();
        if groups::is_group(kind) {
            own.push(object);
        }
        let mut pods: Vec<&Value> = pods.iter().collect();
        if kind.group.is_empty() && kind.kind == "Pod" {
            pods.push(object);
        }
        let mut warnings = warnings(events);
        warnings.drain(..warnings.len().saturating_sub(EVENTS));
        Self {
            state: groups::why_none(kind, object),
            groups: own,
            pods: pods.len(),
            waiting: pods.into_iter().filter_map(waiting).collect(),
            events: warnings,
            denied,
        }
    }

    pub(super) fn text(&self, subject: &str, now: Timestamp) -> String {
        let mut sheet = Sheet(format!("{subject}: {}\n", self.headline()));
        for group in &self.groups {
            sheet.line("asks", &asks(group));
            sheet.line("queue", &queue(group));
            sheet.line("because", &because(group));
        }
        self.pods_and_events(&mut sheet, |_| true, now);
        for Denied { resource, problem } in self.denied {
            sheet.line("not seen", &format!("{resource}{}: {}", tells(resource), refusal(problem)));
        }
        if !self.denied.is_empty() {
            sheet.line("rights", &self.rights());
        }
        sheet.0
    }

    /// Whether there is something to tell that an explanation about nodes does not.
    pub(super) fn is_needed(&self) -> bool {
        !self.denied.is_empty() || self.has_starting()
    }

    /// Whether pods have their nodes and have not started.
    fn has_starting(&self) -> bool {
        self.waiting.iter().any(|pod| pod.is_placed)
    }

    /// What these pods wait for, as lines of an explanation that is about nodes.
    pub(super) fn starting(&self, now: Timestamp) -> String {
        let mut sheet = Sheet(String::new());
        if self.has_starting() {
            self.pods_and_events(&mut sheet, |pod| pod.is_placed, now);
        }
        sheet.0
    }

    fn pods_and_events(&self, sheet: &mut Sheet, told: impl Fn(&Waiting) -> bool, now: Timestamp) {
        for (why, replicas) in self.reasons(told) {
            sheet.line("pods", &format!("{}: {why}", some(&replicas, NAMED)));
        }
        for warning in &self.events {
            sheet.line("event", &warning.words(now));
        }
    }

    /// Adds what is seen, and what is not, to an explanation for programs.
    pub(super) fn add_to(&self, shown: &mut Value) {
        let waiting = self.waiting.iter().map(
            |pod| json!({"replica": pod.replica, "hasNode": pod.is_placed, "message": pod.why}),
        );
        let groups = self.groups.iter().map(|group| {
            json!({
                "name": group["metadata"]["name"], "queue": queue_name(group),
                "minMember": group["spec"]["minMember"], "phase": group["status"]["phase"],
                "message": because(group),
            })
        });
        let events = self.events.iter().map(|warning| {
            let Warning { event, others } = warning;
            json!({
                "reason": event["reason"], "message": event["message"],
                "object": about(event), "others": others,
            })
        });
        let denied = self
            .denied
            .iter()
            .map(|one| json!({"resource": one.resource, "verb": "list", "message": one.problem}));
        shown["podGroups"] = groups.collect();
        shown["waitingPods"] = waiting.collect();
        shown["warnings"] = events.collect();
        shown["notSeen"] = denied.collect();
    }

    fn headline(&self) -> String {
        let unplaced = self.waiting.iter().filter(|pod| !pod.is_placed).count();
        let starting = self.waiting.len() - unplaced;
        let is_waiting_group = self.groups.iter().any(|group| {
            let phase = text(group, &["status", "phase"]);
            self.pods == 0 && ["", "Pending"].contains(&phase)
        });
        match (unplaced, starting) {
            (0, 0) if is_waiting_group => {
                "waits to be let into its queue; its pods are made then".to_owned()
            }
            (0, 0) => self.state.clone(),
            (0, starting) => format!("{} not started yet", has(starting)),
            (unplaced, _) => format!("{} no node", has(unplaced)),
        }
    }

    /// Each reason once, with the replicas it holds for, in their order.
    fn reasons(&self, told: impl Fn(&Waiting) -> bool) -> Vec<(&str, Vec<String>)> {
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for pod in self.waiting.iter().filter(|pod| told(pod)) {
            match reasons.iter_mut().find(|(why, _)| *why == pod.why) {
                Some((_, replicas)) => replicas.push(pod.replica.clone()),
                None => reasons.push((&pod.why, vec![pod.replica.clone()])),
            }
        }
        reasons
    }

    fn rights(&self) -> String {
        let resources: Vec<String> =
            self.denied.iter().map(|one| one.resource.to_owned()).collect();
        format!(
            "what is short, who has it and what would fit takes the right to list {}\n\
             an administrator gives it by the ClusterRole {ROLE}, which `trainyard manifests` brings",
            listed(&resources)
        )
    }
}

fn has(count: usize) -> String {
    format!("{} {}", counted(count, "pod"), if count == 1 { "has" } else { "have" })
}

/// Why a pod does not run; none for one that does, or has.
fn waiting(pod: &Value) -> Option<Waiting> {
    PodView::of_json(pod).filter(|view| view.phase == Phase::Pending)?;
    let is_placed = !text(pod, &["spec", "nodeName"]).is_empty();
    let wait = waits_for(pod);
    let why = match wait.words() {
        words if words != "Pending" && !words.is_empty() => words,
        _ if is_placed => "its node has not said anything of it yet".to_owned(),
        _ => "no scheduler has said anything of it yet".to_owned(),
    };
    Some(Waiting { replica: replica(pod), is_placed, why })
}

fn asks(group: &Value) -> String {
    match group["spec"]["minMember"].as_u64() {
        Some(least) if least > 1 => format!("{least} pods together or none"),
        _ => String::new(),
    }
}

fn queue_name(group: &Value) -> &str {
    match text(group, &["spec", "queue"]) {
        "" => "default",
        name => name,
    }
}

fn queue(group: &Value) -> String {
    let mut words = queue_name(group).to_owned();
    let phase = text(group, &["status", "phase"]);
    if !phase.is_empty() {
        let _ = write!(words, "; the PodGroup {} is {phase}", text(group, &["metadata", "name"]));
    }
    words
}

/// What speaks against the group now.
fn because(group: &Value) -> String {
    let status = GroupStatus::deserialize(&group["status"]).unwrap_or_default();
    status.obstacle().map_or_else(String::new, |condition| one_line(&condition.message))
}

fn about(event: &Value) -> String {
    let object = &event["involvedObject"];
    format!("{}/{}", text(object, &["kind"]).to_lowercase(), text(object, &["name"]))
}

/// The warnings among events in their order, each of the same words once.
fn warnings(events: &[Value]) -> Vec<Warning<'_>> {
    let mut found: Vec<Warning<'_>> = Vec::new();
    for event in events.iter().filter(|event| event["type"] == "Warning") {
        let words = |event: &Value| (event["reason"].clone(), event["message"].clone());
        let at = found.iter().position(|one| words(one.event) == words(event));
        let mut others = 0;
        if let Some(before) = at.map(|at| found.remove(at)) {
            others = before.others + usize::from(about(before.event) != about(event));
        }
        found.push(Warning { event, others });
    }
    found
}

impl Warning<'_> {
    fn words(&self, now: Timestamp) -> String {
        let Self { event, others } = self;
        let others = if *others > 0 { format!(" and {others} more") } else { String::new() };
        format!(
            "{}, {} of {}{others}: {}",
            events::when(event, now),
            text(event, &["reason"]),
            about(event),
            one_line(text(event, &["message"]))
        )
    }
}

/// What is not known without a resource.
fn tells(resource: &str) -> &'static str {
    match resource {
        "nodes" => " (what each has left, and what keeps it out)",
        "pods" => " of all namespaces (who has what is short)",
        "podgroups" => " of all namespaces (its place among those that wait)",
        "queues" => " (the share and limits of its queue)",
        "priorityclasses" => " (who goes first)",
        "persistentvolumeclaims" | "persistentvolumes" => " (which nodes its volumes bind it to)",
        _ => "",
    }
}

/// A refusal without the words that every one begins with.
fn refusal(problem: &str) -> String {
    let words = problem.split_once(" is forbidden: ").map_or(problem, |(_, words)| words);
    format!("forbidden: {}", one_line(words))
}

#[cfg(test)]
mod tests;
