//! Kubelets that behave: every new pod runs at once, every graceful deletion is completed at once.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;
use tokio::task::JoinSet;

use super::{Kubelet, NODE};
use crate::rest::Resource;
use crate::seen::{terminating, text};

/// A failed move is tried again after this pause.
const AGAIN: Duration = Duration::from_millis(50);

/// Well-behaved kubelets; they stop when this is dropped.
#[must_use = "the kubelets stop when this is dropped"]
pub struct Auto {
    _task: JoinSet<()>,
}

/// Which new pods are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Starts {
    /// None.
    None,
    /// All; those that nobody has bound go to the usual node.
    All,
    /// Those that a scheduler has bound, to whatever node.
    Bound,
}

/// What is to be done for a pod; each step once per pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Start(String),
    Finish(String),
}

impl Kubelet {
    /// Starts every new pod and completes every graceful deletion.
    pub fn auto(&self) -> Auto {
        self.automatic(Starts::All)
    }

    /// Starts every pod that a scheduler has bound and completes every graceful deletion.
    pub fn auto_bound(&self) -> Auto {
        self.automatic(Starts::Bound)
    }

    /// Completes every graceful deletion; starts nothing.
    pub fn auto_finish(&self) -> Auto {
        self.automatic(Starts::None)
    }

    fn automatic(&self, starts: Starts) -> Auto {
        let mut task = JoinSet::new();
        task.spawn(play(self.clone(), starts));
        Auto { _task: task }
    }
}

/// Plays each pod on its own, as the workers of a kubelet do.
async fn play(kubelet: Kubelet, starts: Starts) {
    let mut view = kubelet.view.clone();
    let (mut done, mut steps) = (BTreeSet::new(), JoinSet::new());
    loop {
        let seen = view.now();
        for (name, pod) in seen.all(Resource::Pods) {
            if let Some(step) = next_step(pod, starts)
                && done.insert(step.clone())
            {
                steps.spawn(take(kubelet.clone(), name.to_owned(), step));
            }
        }
        drop(seen);
        tokio::select! {
            Some(ended) = steps.join_next() => {
                if let Ok(Some(failed)) = ended {
                    done.remove(&failed);
                }
            }
            () = view.change() => {}
        }
    }
}

/// Takes a step; gives it back after a pause if it has failed.
async fn take(kubelet: Kubelet, pod: String, step: Step) -> Option<Step> {
    let taken = match step {
        Step::Start(_) => kubelet.start(&pod).await,
        Step::Finish(_) => kubelet.finish_termination(&pod).await,
    };
    taken.err()?;
    tokio::time::sleep(AGAIN).await;
    Some(step)
}

fn next_step(pod: &Value, starts: Starts) -> Option<Step> {
    let uid = text(&pod["metadata"]["uid"]).to_owned();
    let node = text(&pod["spec"]["nodeName"]);
    if terminating(pod) {
        // A finalizer holds the object, not the kubelet.
        let over = pod["metadata"]["deletionGracePeriodSeconds"] == 0;
        return (!over && !node.is_empty()).then_some(Step::Finish(uid));
    }
    let is_ours = match starts {
        Starts::None => false,
        Starts::All => node.is_empty() || node == NODE,
        Starts::Bound => !node.is_empty(),
    };
    (is_ours && is_to_be_started(&pod["status"])).then_some(Step::Start(uid))
}

/// Whether no container has started. A start that failed half-way has left containers that are being created.
fn is_to_be_started(status: &Value) -> bool {
    let containers = status["containerStatuses"].as_array().into_iter().flatten();
    let mut reasons = containers.map(|container| text(&container["state"]["waiting"]["reason"]));
    let creates = ["ContainerCreating", "PodInitializing"];
    status["phase"] == "Pending" && reasons.all(|reason| creates.contains(&reason))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_start_that_failed_half_way_is_tried_again() {
        let pod = |state: Value| {
            json!({
                "metadata": {"uid": "u"}, "spec": {"nodeName": NODE},
                "status": {"phase": "Pending", "containerStatuses": [{"state": state}]},
            })
        };
        let creating = pod(json!({"waiting": {"reason": "ContainerCreating"}}));
        let start = Some(Step::Start("u".to_owned()));
        assert_eq!(next_step(&creating, Starts::All), start);
        assert_eq!(next_step(&json!({"status": {"phase": "Pending"}}), Starts::Bound), None);
        let stuck = pod(json!({"waiting": {"reason": "ImagePullBackOff"}}));
        assert_eq!(next_step(&stuck, Starts::All), None, "a scenario has written that");
        let mut running = pod(json!({"running": {}}));
        running["status"]["phase"] = json!("Running");
        assert_eq!(next_step(&running, Starts::All), None);
    }
}
