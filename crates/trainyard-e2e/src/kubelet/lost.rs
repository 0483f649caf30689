//! Nodes that are lost, as the node controller writes it into their pods, and pods that a kubelet
//! throws out for their own use of storage.

use anyhow::Result;
use serde_json::{Value, json};

use super::{Kubelet, status};

impl Kubelet {
    /// The node of the pod cannot be reached: the node controller turns the pod's `Ready` and leaves
    /// the rest as the kubelet wrote it last.
    pub async fn lose_contact(&self, pod: &str) -> Result<()> {
        self.turn_ready(pod, "False").await
    }

    /// The node is back; its kubelet writes the status of its pods anew.
    pub async fn regain_contact(&self, pod: &str) -> Result<()> {
        self.turn_ready(pod, "True").await
    }

    async fn turn_ready(&self, pod: &str, word: &str) -> Result<()> {
        let found = self.get(pod).await?;
        self.write(pod, &turned(&found, word)).await
    }

    /// The kubelet throws the pod out because it has used more storage than its volume may hold.
    pub async fn evict_for_its_storage(&self, pod: &str) -> Result<()> {
        let evicted = json!({"status": {
            "phase": "Failed", "reason": "Evicted", "containerStatuses": null,
            "message": "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\". ",
        }});
        self.write(pod, &evicted).await
    }
}

/// The conditions of the pod with another word for `Ready`, and no reason.
fn turned(pod: &Value, word: &str) -> Value {
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    for condition in conditions.iter_mut().filter(|condition| condition["type"] == "Ready") {
        condition["status"] = word.into();
        condition["lastTransitionTime"] = status::now().into();
    }
    json!({"status": {"conditions": conditions}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ready_is_turned() {
        let pod = json!({"status": {"conditions": [
            {"type": "ContainersReady", "status": "True"}, {"type": "Ready", "status": "True"}]}});
        let patch = turned(&pod, "False");
        let conditions = &patch["status"]["conditions"];
        assert_eq!(conditions[0], pod["status"]["conditions"][0]);
        assert_eq!(conditions[1]["status"], "False");
        assert!(conditions[1]["lastTransitionTime"].is_string());
    }
}
