//! Tests only: what nodes and those who look after them do to pods.

use serde_json::json;

use super::World;

impl World {
    /// The control plane loses the node of a pod and says so, as the node controller does.
    pub(crate) fn lose_node(&mut self, replica: &str) {
        let since = self.now.to_string();
        self.pod(replica)["status"]["conditions"] = json!([
            {"type": "ContainersReady", "status": "True"},
            {"type": "Ready", "status": "False", "lastTransitionTime": since},
        ]);
    }

    /// The node of a pod is back, and the pod with it.
    pub(crate) fn find_node(&mut self, replica: &str) {
        self.pod(replica)["status"]["conditions"] = json!([
            {"type": "ContainersReady", "status": "True"},
            {"type": "Ready", "status": "True"},
        ]);
    }

    /// Somebody of the cluster marks a pod and deletes it.
    pub(crate) fn disrupt(&mut self, replica: &str, reason: &str) {
        let status = &mut self.pod(replica)["status"];
        if !status["conditions"].is_array() {
            status["conditions"] = json!([]);
        }
        let mark = json!({"type": "DisruptionTarget", "status": "True", "reason": reason});
        status["conditions"].as_array_mut().unwrap().push(mark);
        self.delete_pod(replica);
    }

    /// The node evicts a pod.
    pub(crate) fn evict(&mut self, replica: &str) {
        self.pod(replica)["status"] = json!({"phase": "Failed", "reason": "Evicted"});
    }

    /// The kubelets have stopped what is being deleted and ask for its deletion without grace: the API
    /// server writes that before it removes the pods.
    pub(crate) fn cut_grace_periods(&mut self) {
        let now = self.now.to_string();
        for pod in self.pods.values_mut() {
            if !pod["metadata"]["deletionTimestamp"].is_null() {
                pod["metadata"]["deletionTimestamp"] = now.as_str().into();
                pod["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            }
        }
    }
}
