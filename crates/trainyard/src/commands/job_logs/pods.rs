//! The containers of pods whose logs are wanted, and how far they are.

use serde_json::Value;
use trainyard_api::names::CONTAINER;

use super::Logs;
use super::find::{Found, replica};
use crate::cluster::{Cluster, Query};
use crate::failure::Failure;
use crate::present::{items, one_line, text};

const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// One container of one pod, in one of its runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Run {
    /// What stands before its lines.
    pub(super) label: String,
    pub(super) pod: String,
    pub(super) uid: String,
    pub(super) container: String,
    /// How often it was restarted in this pod.
    pub(super) restart: u64,
    /// The node that has its log.
    pub(super) node: String,
}

/// The pods of what was found, in the order of their names.
pub(super) async fn list(cluster: &Cluster, found: &Found) -> Result<Vec<Value>, Failure> {
    let query = match &found.selector {
        Some(selector) => Query::default().with("labelSelector", selector),
        None => Query::default().with("fieldSelector", format!("metadata.name={}", found.name)),
    };
    let mut pods = cluster.objects(&found.pods, Some(&found.namespace), &query).await?;
    if let Some((_, job)) = &found.job {
        // A job of the same name before this one may still have pods.
        let uid = text(job, &["metadata", "uid"]);
        pods.retain(|pod| {
            let mut owners = items(pod, &["metadata", "ownerReferences"]).peekable();
            owners.peek().is_none() || owners.any(|owner| owner["uid"] == uid)
        });
    }
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
        statuses
            .filter(|status| wanted.contains(&text(status, &["name"])))
            .filter_map(|status| {
                let restart = status["restartCount"].as_u64().unwrap_or_default();
                // One that waits for its next run has printed in the one before.
                let has_run = status["state"]["waiting"].is_null() || restart > 0;
                let container = text(status, &["name"]).to_owned();
                has_run.then(|| Run {
                    label: self.label(&replica, &container, wanted.len()),
                    pod: text(pod, &["metadata", "name"]).to_owned(),
                    uid: text(pod, &["metadata", "uid"]).to_owned(),
                    container,
                    restart,
                    node: text(pod, &["spec", "nodeName"]).to_owned(),
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

/// Why a container of a pod never ran.
fn never_ran(pod: &Value) -> String {
    if !["Failed", "Succeeded"].contains(&text(pod, &["status", "phase"])) {
        return one_line(&waits_for(pod));
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

/// Why a pod has no log yet.
pub(crate) fn waits_for(pod: &Value) -> String {
    let waiting = items(pod, &["status", "containerStatuses"]).find_map(|status| {
        let reason = text(status, &["state", "waiting", "reason"]);
        (!reason.is_empty()).then(|| reason.to_owned())
    });
    let unplaced = items(pod, &["status", "conditions"])
        .find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
        .map(|condition| text(condition, &["message"]).to_owned());
    waiting
        .or(unplaced)
        .filter(|why| !why.is_empty())
        .unwrap_or_else(|| text(pod, &["status", "phase"]).to_owned())
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
