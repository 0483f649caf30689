//! For what a pod waits before it prints. Pure.

use serde_json::Value;

use crate::present::{items, one_line, text};

/// Reasons that are a matter of moments.
const PASSING: [&str; 4] = ["", "Pending", "ContainerCreating", "PodInitializing"];

/// For what a pod waits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Wait {
    /// One word; empty where nobody has given one.
    pub(crate) reason: String,
    /// The same for people.
    pub(crate) message: String,
}

impl Wait {
    fn new(reason: &str, message: &str) -> Self {
        Self { reason: reason.to_owned(), message: message.trim().to_owned() }
    }

    /// Whether it is over in a moment, as far as one can tell.
    pub(crate) fn passes(&self) -> bool {
        let is_told = self.reason.is_empty() && !self.message.is_empty();
        PASSING.contains(&self.reason.as_str()) && !is_told
    }

    /// Both in one line.
    pub(crate) fn words(&self) -> String {
        match (self.reason.as_str(), one_line(&self.message)) {
            (reason, message) if message.is_empty() => reason.to_owned(),
            // The scheduler's sentence says it all.
            ("" | "Unschedulable", message) => message,
            (reason, message) => format!("{reason}: {message}"),
        }
    }
}

/// Why a pod has no log yet.
pub(crate) fn waits_for(pod: &Value) -> Wait {
    // While an init container is stuck the others only say that they wait for it.
    let of = |list: &'static str| items(pod, &["status", list]);
    let mut waiting = of("initContainerStatuses").chain(of("containerStatuses")).map(|status| {
        let waiting = &status["state"]["waiting"];
        Wait::new(text(waiting, &["reason"]), text(waiting, &["message"]))
    });
    let stuck = waiting.clone().find(|wait| !wait.passes());
    let unplaced = items(pod, &["status", "conditions"])
        .find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False")
        .map(|condition| Wait::new(text(condition, &["reason"]), text(condition, &["message"])))
        .filter(|wait| !wait.message.is_empty());
    stuck
        .or(unplaced)
        .or_else(|| waiting.find(|wait| !wait.reason.is_empty()))
        .unwrap_or_else(|| Wait::new(text(pod, &["status", "phase"]), ""))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(name: &str, reason: &str, message: &str) -> Value {
        json!({"name": name, "state": {"waiting": {"reason": reason, "message": message}}})
    }

    #[test]
    fn an_init_container_that_is_stuck_is_what_its_pod_waits_for() {
        let pod = json!({"status": {"phase": "Pending",
            "initContainerStatuses": [status("fetch", "ImagePullBackOff", "no\nsuch image")],
            "containerStatuses": [status("tensorflow", "PodInitializing", "")]}});
        let wait = waits_for(&pod);
        assert_eq!(wait.words(), "ImagePullBackOff: no such image");
        assert!(!wait.passes());
    }

    #[test]
    fn the_scheduler_says_what_a_pod_without_a_node_waits_for() {
        let pod = json!({"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled",
            "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}]}});
        let wait = waits_for(&pod);
        assert_eq!((wait.words().as_str(), wait.passes()), ("0/1 nodes are available", false));
    }

    #[test]
    fn what_is_a_matter_of_moments_passes() {
        let pod = json!({"status": {"phase": "Pending",
            "containerStatuses": [status("tensorflow", "ContainerCreating", "")]}});
        assert_eq!(waits_for(&pod), Wait::new("ContainerCreating", ""));
        assert!(waits_for(&pod).passes() && waits_for(&json!({})).passes());
    }
}
