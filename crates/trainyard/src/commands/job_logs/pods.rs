//! The containers of pods whose logs are wanted, and how far they are.

use serde_json::Value;
use trainyard_api::names::CONTAINER;

use super::Logs;
use super::find::{Found, replica};
use crate::cluster::{Cluster, Query};
use crate::failure::Failure;
use crate::present::{items, text};

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
                let label = if self.all_containers && wanted.len() > 1 {
                    format!("{replica}/{container}")
                } else {
                    replica.clone()
                };
                has_run.then(|| Run {
                    label,
                    pod: text(pod, &["metadata", "name"]).to_owned(),
                    uid: text(pod, &["metadata", "uid"]).to_owned(),
                    container,
                    restart,
                })
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
