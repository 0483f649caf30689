//! The conditions of a pod, as its kubelet writes them and as others do. Pure.

use serde_json::{Value, json};

use crate::seen::text;

/// Those that a kubelet writes; it leaves the others alone.
const OWN: [&str; 5] =
    ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];

/// What the conditions follow from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts<'a> {
    /// The phase that is published with them.
    pub(super) phase: &'a str,
    /// Whether there is a sandbox.
    pub(super) has_sandbox: bool,
    /// Whether all init containers have done their work.
    pub(super) is_initialized: bool,
    /// The containers that are not ready.
    pub(super) unready: &'a [&'a str],
}

impl Facts<'_> {
    /// Why a condition does not hold.
    fn reason(&self, kind: &str) -> &'static str {
        match (kind, self.phase) {
            ("PodReadyToStartContainers", _) => "",
            (_, "Succeeded") => "PodCompleted",
            ("Initialized", _) => "ContainersNotInitialized",
            (_, "Failed") => "PodFailed",
            _ => "ContainersNotReady",
        }
    }
}

/// The conditions that a kubelet writes, and those of the pod that others wrote.
pub(super) fn of_kubelet(pod: &Value, facts: &Facts<'_>, at: &str) -> Vec<Value> {
    let mut all = foreign(pod);
    // Of a pod that has failed nothing is ready, though some of it may still run.
    let is_ready = facts.unready.is_empty() && facts.phase != "Failed";
    for kind in OWN {
        let holds = match kind {
            "PodReadyToStartContainers" => facts.has_sandbox,
            "Initialized" => facts.is_initialized,
            "PodScheduled" => true,
            _ => is_ready,
        };
        let reason = if holds { "" } else { facts.reason(kind) };
        let mut condition = turned(pod, kind, holds, reason, at);
        if reason == "ContainersNotReady" {
            let words = format!("containers with unready status: [{}]", facts.unready.join(" "));
            condition["message"] = words.into();
        }
        all.push(condition);
    }
    all
}

/// Those that no kubelet writes.
pub(super) fn foreign(pod: &Value) -> Vec<Value> {
    let is_foreign = |condition: &&Value| !OWN.contains(&text(&condition["type"]));
    of(pod).iter().filter(is_foreign).cloned().collect()
}

/// The mark that the cluster ends a pod, beside these conditions.
pub(super) fn marked(mut all: Vec<Value>, reason: &str, message: &str, at: &str) -> Vec<Value> {
    all.retain(|condition| condition["type"] != "DisruptionTarget");
    all.push(json!({
        "type": "DisruptionTarget", "status": "True", "reason": reason, "message": message,
        "lastTransitionTime": at,
    }));
    all
}

/// All conditions of a pod.
pub(super) fn of(pod: &Value) -> &[Value] {
    pod["status"]["conditions"].as_array().map_or(&[], Vec::as_slice)
}

/// Whether a condition of the pod holds.
pub(super) fn holds(pod: &Value, kind: &str) -> bool {
    of(pod).iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// A condition; the time of its last turn stays unless it turns.
fn turned(pod: &Value, kind: &str, holds: bool, reason: &str, at: &str) -> Value {
    let word = if holds { "True" } else { "False" };
    let before = of(pod).iter().find(|one| one["type"] == kind && one["status"] == word);
    let since = before.and_then(|before| before["lastTransitionTime"].as_str()).unwrap_or(at);
    let mut condition = json!({"type": kind, "status": word, "lastTransitionTime": since});
    if !reason.is_empty() {
        condition["reason"] = reason.into();
    }
    condition
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_of_others_are_kept_and_one_that_stays_keeps_its_time() {
        let pod = json!({"status": {"conditions": [
            {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"},
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": "1"},
            {"type": "Ready", "status": "True", "lastTransitionTime": "1"},
        ]}});
        let facts = Facts {
            phase: "Running",
            has_sandbox: true,
            is_initialized: true,
            unready: &["a", "b"],
        };
        let all = of_kubelet(&pod, &facts, "2");
        let find = |kind: &str| all.iter().find(|one| one["type"] == kind).unwrap();
        assert_eq!(all.len(), 6);
        assert_eq!(find("DisruptionTarget"), &pod["status"]["conditions"][0]);
        assert_eq!(find("PodScheduled")["lastTransitionTime"], "1");
        let ready = find("Ready");
        assert_eq!(
            (&ready["status"], &ready["lastTransitionTime"]),
            (&json!("False"), &json!("2"))
        );
        assert_eq!(ready["message"], "containers with unready status: [a b]");
        assert!(find("PodReadyToStartContainers")["reason"].is_null());
        assert_eq!(foreign(&pod).len(), 1);
    }
}
