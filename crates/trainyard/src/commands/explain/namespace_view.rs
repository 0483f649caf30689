//! Why a job waits as its own namespace tells it: for people who may not read nodes and queues.
//!
//! Conditions and events of the PodGroup and the pods in, text or JSON out. Pure.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};
use trainyard_operator::Denied;

use super::words::Sheet;
use super::{ROLE, groups};
use crate::cluster::Kind;
use crate::commands::job_logs::find::replica;
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

/// What can be seen without rights beyond the namespace.
#[derive(Debug)]
pub(super) struct NamespaceView<'a> {
    /// The state of a job of which nothing waits.
    state: String,
    groups: Vec<&'a Value>,
    pods: usize,
    waiting: Vec<Waiting>,
    /// Warnings, the latest last.
    events: Vec<&'a Value>,
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
        let warnings = events.iter().filter(|event| event["type"] == "Warning");
        let mut warnings: Vec<&Value> = warnings.collect();
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
        for (why, replicas) in self.reasons() {
            sheet.line("pods", &format!("{}: {why}", some(&replicas, NAMED)));
        }
        for event in &self.events {
            sheet.line("event", &event_words(event, now));
        }
        for Denied { resource, problem } in self.denied {
            sheet.line("not seen", &format!("{resource}{}: {}", tells(resource), refusal(problem)));
        }
        sheet.line("rights", &self.rights());
        sheet.0
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
        let events = self.events.iter().map(|event| {
            json!({
                "reason": event["reason"], "message": event["message"],
                "object": about(event),
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
    fn reasons(&self) -> Vec<(&str, Vec<String>)> {
        let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
        for pod in &self.waiting {
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
    if text(pod, &["status", "phase"]) != "Pending" {
        return None;
    }
    let is_placed = !text(pod, &["spec", "nodeName"]).is_empty();
    let unplaced = items(pod, &["status", "conditions"])
        .find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
        .map(|condition| (text(condition, &["reason"]), text(condition, &["message"])));
    let container = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .flat_map(|list| items(pod, &["status", list]))
        .map(|status| &status["state"]["waiting"])
        .find(|waiting| waiting.is_object())
        .map(|waiting| (text(waiting, &["reason"]), text(waiting, &["message"])));
    let why = match if is_placed { container } else { unplaced } {
        Some((reason, "")) if !reason.is_empty() => reason.to_owned(),
        Some((_, message)) if !is_placed && !message.is_empty() => one_line(message),
        Some((reason, message)) if !message.is_empty() => {
            format!("{reason}: {}", one_line(message))
        }
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

/// The last condition that speaks against the group.
fn because(group: &Value) -> String {
    let last = items(group, &["status", "conditions"])
        .rfind(|condition| condition["type"] == "Unschedulable" && condition["status"] == "True");
    last.map_or_else(String::new, |condition| one_line(text(condition, &["message"])))
}

fn about(event: &Value) -> String {
    let object = &event["involvedObject"];
    format!("{}/{}", text(object, &["kind"]).to_lowercase(), text(object, &["name"]))
}

fn event_words(event: &Value, now: Timestamp) -> String {
    format!(
        "{}, {} of {}: {}",
        events::when(event, now),
        text(event, &["reason"]),
        about(event),
        one_line(text(event, &["message"]))
    )
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
mod tests {
    use super::*;

    fn pod(index: u32, status: &Value) -> Value {
        json!({
            "metadata": {"name": format!("mnist-worker-{index}"), "labels": {
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/replica-index": index.to_string()}},
            "spec": {}, "status": status,
        })
    }

    fn unplaced(index: u32) -> Value {
        pod(
            index,
            &json!({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
                "reason": "Unschedulable", "message": "0/1 nodes are available:\n1 Insufficient cpu."}]}),
        )
    }

    fn denied() -> Vec<Denied> {
        let problem = |resource: &str| {
            format!("{resource} is forbidden: User \"ann\" cannot list resource \"{resource}\"")
        };
        ["nodes", "queues"].map(|resource| Denied { resource, problem: problem(resource) }).into()
    }

    #[test]
    fn conditions_and_events_say_why_and_missing_rights_are_named() {
        let kind = Kind::example("kubeflow.org", "v1", "TFJob", "tfjobs", true);
        let job = json!({"metadata": {"name": "mnist", "uid": "u"}});
        let groups = [json!({"metadata": {"name": "mnist", "ownerReferences": [{"uid": "u"}]},
            "spec": {"minMember": 2, "queue": "vision"}, "status": {"phase": "Pending",
            "conditions": [{"type": "Unschedulable", "status": "True", "message": "2/2 tasks wait"}]}})];
        let pods = [unplaced(0), unplaced(1)];
        let events =
            [json!({"type": "Warning", "reason": "FailedScheduling", "message": "no\nroom",
            "lastTimestamp": "2026-01-01T00:00:00Z",
            "involvedObject": {"kind": "Pod", "name": "mnist-worker-0"}})];
        let denied = denied();
        let view = NamespaceView::of(&kind, &job, &groups, &pods, &events, &denied);
        let text = view.text("tfjob.kubeflow.org/mnist", "2026-01-01T00:00:30Z".parse().unwrap());
        let expected = "\
tfjob.kubeflow.org/mnist: 2 pods have no node
  asks       2 pods together or none
  queue      vision; the PodGroup mnist is Pending
  because    2/2 tasks wait
  pods       worker-0 and worker-1: 0/1 nodes are available: 1 Insufficient cpu.
  event      30s ago, FailedScheduling of pod/mnist-worker-0: no room
  not seen   nodes (what each has left, and what keeps it out): forbidden: User \"ann\" cannot list resource \"nodes\"
  not seen   queues (the share and limits of its queue): forbidden: User \"ann\" cannot list resource \"queues\"
  rights     what is short, who has it and what would fit takes the right to list nodes and queues
             an administrator gives it by the ClusterRole trainyard-explain, which `trainyard manifests` brings
";
        assert_eq!(text, expected);
        let mut shown = json!({});
        view.add_to(&mut shown);
        assert_eq!(shown["notSeen"][0]["resource"], "nodes");
        assert_eq!(shown["podGroups"][0]["message"], "2/2 tasks wait");
        assert_eq!(shown["waitingPods"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn a_pod_that_has_a_node_says_what_its_container_waits_for() {
        let kind = Kind::example("", "v1", "Pod", "pods", true);
        let mut one = pod(
            0,
            &json!({"phase": "Pending", "containerStatuses": [{"state": {"waiting":
                {"reason": "ImagePullBackOff", "message": "no such image"}}}]}),
        );
        one["spec"]["nodeName"] = json!("a");
        let denied = denied();
        let view = NamespaceView::of(&kind, &one, &[], &[], &[], &denied);
        let text = view.text("pod/x", Timestamp::UNIX_EPOCH);
        assert!(text.starts_with("pod/x: 1 pod has not started yet\n"), "{text}");
        assert!(
            text.contains("  pods       worker-0: ImagePullBackOff: no such image\n"),
            "{text}"
        );
    }

    #[test]
    fn a_job_that_is_not_let_in_has_no_pods_yet() {
        let kind = Kind::example("batch.volcano.sh", "v1alpha1", "Job", "jobs", true);
        let job = json!({"metadata": {"uid": "u"}, "status": {"state": {"phase": "Pending"}}});
        let group = [json!({"metadata": {"name": "vj-u", "ownerReferences": [{"uid": "u"}]},
            "spec": {"minMember": 3}, "status": {"phase": "Pending"}})];
        let denied = denied();
        let waits = NamespaceView::of(&kind, &job, &group, &[], &[], &denied);
        assert!(waits.headline().starts_with("waits to be let into its queue"));
        let runs = NamespaceView::of(&kind, &job, &[], &[], &[], &denied);
        assert_eq!(runs.headline(), "none of its pods waits; it is Pending");
    }
}
