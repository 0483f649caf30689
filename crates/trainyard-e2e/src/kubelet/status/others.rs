//! What others than its kubelet write into the status of a pod. Pure.

use serde_json::{Value, json};

use super::conditions;

/// No node will take the pod.
pub(in crate::kubelet) fn unschedulable(message: &str, at: &str) -> Value {
    json!({"status": {"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": message, "lastTransitionTime": at,
    }]}})
}

/// The conditions of the pod plus the mark that the cluster ends it.
pub(in crate::kubelet) fn disrupted(pod: &Value, reason: &str, at: &str) -> Value {
    let all = conditions::of(pod).to_vec();
    let message = "the cluster takes this pod away";
    json!({"status": {"conditions": conditions::marked(all, reason, message, at)}})
}

/// The conditions of the pod with another word for `Ready`, and no reason.
pub(in crate::kubelet) fn turned(pod: &Value, word: &str, at: &str) -> Value {
    let mut all = conditions::of(pod).to_vec();
    let is_turned =
        |condition: &&mut Value| condition["type"] == "Ready" && condition["status"] != word;
    for condition in all.iter_mut().filter(is_turned) {
        condition["status"] = word.into();
        condition["lastTransitionTime"] = at.into();
    }
    json!({"status": {"conditions": all}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ready_is_turned() {
        let pod = json!({"status": {"conditions": [
            {"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "True"}]}});
        let conditions = &turned(&pod, "False", "1")["status"]["conditions"];
        assert_eq!(conditions[0], pod["status"]["conditions"][0]);
        assert_eq!(conditions[1]["status"], "False");
        assert_eq!(conditions[1]["lastTransitionTime"], "1");
    }
}
