//! Nodes that are lost, as the node controller writes it into their pods.

use anyhow::Result;

use super::{BETWEEN, Kubelet, status};

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

    /// The node has gone: its pod is not `Ready`, then it is being deleted and no kubelet will ever finish that.
    pub async fn node_lost(&self, pod: &str) -> Result<()> {
        self.lose_contact(pod).await?;
        tokio::time::sleep(BETWEEN).await;
        self.disrupt(pod, "DeletionByTaintManager", Some(1)).await
    }

    async fn turn_ready(&self, pod: &str, word: &str) -> Result<()> {
        let found = self.get(pod).await?;
        self.publish(&found, |pod, at| status::turned(pod, word, at)).await.map(drop)
    }
}
