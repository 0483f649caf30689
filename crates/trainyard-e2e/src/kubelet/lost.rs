//! Nodes that are lost, as the node controller writes it into their pods, and nodes that start anew.

use anyhow::Result;

use super::status::{self, Doing, End, Moment};
use super::{BETWEEN, Kubelet};
use crate::seen::text;

/// What containerd says of a container whose processes it does not find.
const LOST: Doing<'_> = Doing::Ended(End { code: 255, reason: "Unknown", message: "" });

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

    /// The node of the pod has started anew: nothing of the pod runs there any more. Its kubelet starts it again in
    /// place if its policy lets it.
    pub async fn reboot(&self, pod: &str) -> Result<()> {
        let found = self.get(pod).await?;
        let ended = Moment { beside: LOST, ..Moment::running(LOST) };
        let mut moments = vec![Moment { has_sandbox: false, ..ended }];
        if text(&found["spec"]["restartPolicy"]) == "Never" {
            moments.push(Moment::over(End::unknown()));
        } else {
            moments.push(Moment::running(Doing::Same));
            moments.push(Moment { beside: Doing::Runs, ..Moment::running(Doing::Runs) });
        }
        self.play(&found, &moments).await.map(drop)
    }

    async fn turn_ready(&self, pod: &str, word: &str) -> Result<()> {
        let found = self.get(pod).await?;
        self.publish(&found, |pod, at| status::turned(pod, word, at)).await.map(drop)
    }
}
