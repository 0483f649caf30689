//! Tests only: what nodes and those who look after them do to pods.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};

use super::World;
use crate::{
    node::on_lost_node,
    view::{PodView, Unreachable},
};

impl World {
    /// A pod as the operator knows it, with what is known of its node.
    pub(crate) fn view(&self, pod: &Value) -> PodView {
        let view = PodView::deserialize(pod).unwrap();
        let since = self.lost.get(&*view.uid).copied();
        let lost = since.and_then(|_| on_lost_node(&view, Unreachable { since }));
        lost.unwrap_or(view)
    }

    /// The node of a pod is lost, and nothing is written into the pod: it was not ready.
    pub(crate) fn silence_node(&mut self, replica: &str) {
        let uid = self.pod(replica)["metadata"]["uid"].as_str().unwrap().to_owned();
        self.lost.insert(uid, self.now);
    }

    /// Whoever hears of the kubelet of a pod knows that its node is back.
    pub(super) fn find_node_of(&mut self, replica: &str) {
        let uid = self.pod(replica)["metadata"]["uid"].as_str().unwrap().to_owned();
        self.lost.remove(&uid);
    }

    /// All nodes are back.
    pub(crate) fn find_all_nodes(&mut self) {
        self.lost.clear();
    }

    /// The containers of a pod run and are not ready.
    pub(crate) fn unready(&mut self, replica: &str) {
        let reason = "ContainersNotReady";
        self.pod(replica)["status"]["conditions"] = json!([
            {"type": "ContainersReady", "status": "False", "reason": reason},
            {"type": "Ready", "status": "False", "reason": reason},
        ]);
    }

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

    /// A pod goes at once; whoever watches learns what it was at last.
    pub(crate) fn vanish(&mut self, replica: &str) {
        let pod = self.pods.remove(&format!("j-{replica}")).unwrap();
        self.departed.extend(Some(Arc::new(self.view(&pod))).filter(|pod| pod.restarts() > 0));
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
