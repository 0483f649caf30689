//! The containers of pods whose logs are wanted, and how far they are.

use serde_json::Value;
use trainyard_api::names::CONTAINER;
use trainyard_core::view::Unreachable;
use trainyard_core::{Phase, PodView};

use super::Logs;
use super::find::{Found, replica};
use super::wait::waits_for;
use crate::cluster::{Cluster, Error, Query};
use crate::present::{items, one_line, text};

const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// One container of one pod, in one of its runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// What stands before its lines.
    pub(super) label: String,
    pub(super) replica: String,
    pub(super) pod: String,
    pub(super) uid: String,
    pub(super) container: String,
    /// How often it was restarted in this pod.
    pub(super) restart: u64,
    pub(super) place: Place,
}

/// Where a log is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// The node that has it.
    pub(super) node: String,
    /// That the cluster does not reach the node.
    pub(super) lost: Option<Unreachable>,
}

impl Found {
    /// What its pods are listed and watched by.
    pub(super) fn query(&self) -> Query {
        match &self.selector {
            Some(selector) => Query::default().with("labelSelector", selector),
            None => Query::default().with("fieldSelector", format!("metadata.name={}", self.name)),
        }
    }

    /// Whether a pod that was listed belongs to it: a job of the same name before this one may still have pods.
    pub(super) fn owns(&self, pod: &Value) -> bool {
        let Some((_, job)) = &self.job else { return true };
        let uid = text(job, &["metadata", "uid"]);
        let mut owners = items(pod, &["metadata", "ownerReferences"]).peekable();
        owners.peek().is_none() || owners.any(|owner| owner["uid"] == uid)
    }
}

/// The pods of what was found, in the order of their names.
pub(super) async fn list(cluster: &Cluster, found: &Found) -> Result<Vec<Value>, Error> {
    let query = found.query();
    let mut pods = cluster.objects(&found.pods, Some(&found.namespace), &query).await?;
    pods.retain(|pod| found.owns(pod));
    pods.sort_by_key(replica);
    Ok(pods)
}

impl Logs {
    /// The containers of a pod that have printed or print now.
    pub(super) fn runs(&self, pod: &Value) -> Vec<Run> {
        let replica = replica(pod);
        if !self.wants(&replica) {
            return Vec::new();
        }
        let statuses = ["initContainerStatuses", "containerStatuses"]
            .into_iter()
            .flat_map(|list| items(pod, &["status", list]));
        let wanted = self.containers(pod);
        let place = place(pod);
        statuses
            .filter(|status| wanted.contains(&text(status, &["name"])))
            .filter_map(|status| {
                let restart = status["restartCount"].as_u64().unwrap_or_default();
                // One that waits for its next run has printed in the one before.
                let has_run = status["state"]["waiting"].is_null()
                    || restart > 0
                    || status["lastState"]["terminated"].is_object();
                let container = text(status, &["name"]).to_owned();
                has_run.then(|| Run {
                    label: self.label(&replica, &container, wanted.len()),
                    replica: replica.clone(),
                    pod: text(pod, &["metadata", "name"]).to_owned(),
                    uid: text(pod, &["metadata", "uid"]).to_owned(),
                    container,
                    restart,
                    place: place.clone(),
                })
            })
            .collect()
    }

    fn label(&self, replica: &str, container: &str, containers: usize) -> String {
        if self.all_containers && containers > 1 {
            format!("{replica}/{container}")
        } else {
            replica.to_owned()
        }
    }

    /// The containers of a pod that have not printed because they never ran, each with the reason.
    pub(super) fn unstarted(&self, pod: &Value) -> Vec<(String, String)> {
        let replica = replica(pod);
        if !self.wants(&replica) {
            return Vec::new();
        }
        let runs = self.runs(pod);
        let wanted = self.containers(pod);
        wanted
            .iter()
            .filter(|name| has_container(pod, name))
            .filter(|name| runs.iter().all(|run| run.container != **name))
            .map(|name| {
                let label = self.label(&replica, name, wanted.len());
                (label, format!("it has not started: {}", never_ran(pod)))
            })
            .collect()
    }

    fn containers<'a>(&'a self, pod: &'a Value) -> Vec<&'a str> {
        if let Some(container) = &self.container {
            return vec![container];
        }
        let own: Vec<&str> = items(pod, &["spec", "containers"])
            .map(|container| text(container, &["name"]))
            .collect();
        if self.all_containers {
            let first = items(pod, &["spec", "initContainers"]);
            return first.map(|container| text(container, &["name"])).chain(own).collect();
        }
        let told = text(pod, &["metadata", "annotations", DEFAULT_CONTAINER]);
        let usual = [told, CONTAINER].into_iter().find(|name| own.contains(name));
        usual.or(own.first().copied()).into_iter().collect()
    }
}

/// Whether a pod has a container of that name.
pub(super) fn has_container(pod: &Value, name: &str) -> bool {
    ["initContainers", "containers"]
        .into_iter()
        .flat_map(|list| items(pod, &["spec", list]))
        .any(|container| text(container, &["name"]) == name)
}

/// Where the logs of a pod are.
pub(super) fn place(pod: &Value) -> Place {
    let lost = PodView::of_json(pod).and_then(|view| view.unreachable);
    let node = text(pod, &["spec", "nodeName"]).to_owned();
    Place { node, lost }
}

/// Why a container of a pod never ran.
fn never_ran(pod: &Value) -> String {
    if !PodView::of_json(pod).map_or(Phase::Unknown, |view| view.phase).is_finished() {
        return waits_for(pod).words();
    }
    let (reason, message) =
        (text(pod, &["status", "reason"]), one_line(text(pod, &["status", "message"])));
    match (reason, message.as_str()) {
        ("", "") => "its pod ended before".to_owned(),
        (reason, "") => reason.to_owned(),
        ("", message) => message.to_owned(),
        (reason, message) => format!("{reason}: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        logs: Logs,
    }

    fn logs(words: &[&str]) -> Logs {
        Line::parse_from([&["logs", "mnist"], words].concat()).logs
    }

    fn pod(status: &Value) -> Value {
        json!({
            "metadata": {"name": "mnist-worker-0", "labels": {
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/replica-index": "0"}},
            "spec": {"containers": [{"name": "tensorflow"}, {"name": "side"}]},
            "status": status,
        })
    }

    #[test]
    fn a_container_between_two_runs_has_printed_in_the_one_before() {
        let between = pod(&json!({"phase": "Running", "containerStatuses": [
            {"name": "tensorflow", "restartCount": 0, "state": {"waiting": {"reason": "x"}},
             "lastState": {"terminated": {"exitCode": 1}}}]}));
        assert_eq!(logs(&[]).runs(&between).len(), 1);
        assert_eq!(logs(&[]).unstarted(&between), []);
    }

    #[test]
    fn a_log_on_a_lost_node_is_known_to_be_there() {
        let mut lost = pod(&json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "ContainersReady", "status": "True"}],
            "containerStatuses": [{"name": "tensorflow", "state": {"running": {}}}]}));
        lost["spec"]["nodeName"] = json!("b");
        let since = Some("2026-01-01T00:00:00Z".parse().unwrap());
        let place = Place { node: "b".to_owned(), lost: Some(Unreachable { since }) };
        assert_eq!(logs(&[]).runs(&lost)[0].place, place);
    }

    #[test]
    fn containers_that_never_ran_say_why() {
        let waits = pod(&json!({"phase": "Pending", "containerStatuses": [
            {"name": "tensorflow", "state": {"waiting": {"reason": "ErrImagePull"}}},
            {"name": "side", "state": {"running": {}}}]}));
        let told = |words: &[&str], pod: &Value| logs(words).unstarted(pod);
        let why = "it has not started: ErrImagePull".to_owned();
        assert_eq!(told(&[], &waits), [("worker-0".to_owned(), why.clone())]);
        assert_eq!(told(&["--all-containers"], &waits), [("worker-0/tensorflow".to_owned(), why)]);
        assert_eq!(told(&["-c", "side"], &waits), []);
        assert_eq!(told(&["-c", "other"], &waits), [], "a container that no pod has");
        assert_eq!(told(&["--replica=ps"], &waits), []);
        let evicted =
            pod(&json!({"phase": "Failed", "reason": "Evicted", "message": "low on\nmemory"}));
        assert_eq!(told(&[], &evicted)[0].1, "it has not started: Evicted: low on memory");
    }
}
