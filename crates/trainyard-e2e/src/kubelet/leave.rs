//! Pods that leave: deleted, taken away by the cluster, or thrown out by their kubelet.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::status::{self, End, Moment, Why};
use super::{BETWEEN, Kubelet};
use crate::rest::{Resource, is_conflict, is_missing};
use crate::seen::{terminating, text};

/// How a program ends that obeys `SIGTERM`.
const TERMINATED: End<'_> = End::by(143);

/// How long a deletion that is to be completed may stay away.
const ASKED: Duration = Duration::from_secs(10);

impl Kubelet {
    /// The kubelet throws the pod out for want of memory; `is_marked` tells whether it says that this
    /// was no fault of the pod, as newer kubelets do.
    pub async fn evict(&self, pod: &str, is_marked: bool) -> Result<()> {
        let message = "The node was low on resource: memory. ";
        self.throw_out(pod, Why { reason: "Evicted", message, is_marked }).await
    }

    /// The kubelet throws the pod out because it has used more storage than its volume may hold.
    pub async fn evict_for_its_storage(&self, pod: &str) -> Result<()> {
        let message = "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\". ";
        self.throw_out(pod, Why { reason: "Evicted", message, is_marked: false }).await
    }

    /// The same, and when it looks how the program has ended there is no container any more.
    pub async fn evict_unseen(&self, pod: &str) -> Result<()> {
        let found = self.get(pod).await?;
        let message = "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\". ";
        let why = Why { reason: "Evicted", message, is_marked: false };
        let moments = [Moment::stopping(why), Moment::stopped(End::unknown(), why)];
        self.play(&found, &moments).await.map(drop)
    }

    /// The node shuts down in an orderly way.
    pub async fn shut_down(&self, pod: &str) -> Result<()> {
        let message = "Pod was terminated in response to imminent node shutdown.";
        self.throw_out(pod, Why { reason: "Terminated", message, is_marked: true }).await
    }

    async fn throw_out(&self, pod: &str, why: Why<'_>) -> Result<()> {
        let found = self.get(pod).await?;
        ensure!(status::runs(&found), "a kubelet throws out what runs, and {pod} does not");
        let moments = [Moment::stopping(why), Moment::stopped(TERMINATED, why)];
        self.play(&found, &moments).await.map(drop)
    }

    /// The kubelet does not take the pod that somebody has put on its node.
    pub async fn reject(&self, pod: &str, reason: &str, message: &str) -> Result<()> {
        let found = self.bound(pod).await?;
        self.publish(&found, |pod, at| status::rejected(pod, reason, message, at)).await.map(drop)
    }

    /// The scheduler takes the place of the pod for a more important one. The pod is being deleted
    /// afterwards; its kubelet has not finished yet.
    pub async fn preempt(&self, pod: &str) -> Result<()> {
        self.disrupt(pod, "PreemptionByScheduler", None).await
    }

    /// The node is drained. The pod is being deleted afterwards; its kubelet has not finished yet.
    pub async fn drain(&self, pod: &str) -> Result<()> {
        self.disrupt(pod, "EvictionByEvictionAPI", None).await
    }

    /// Somebody of the cluster marks the pod and deletes it.
    pub(super) async fn disrupt(
        &self,
        pod: &str,
        reason: &str,
        grace_seconds: Option<i64>,
    ) -> Result<()> {
        let found = self.get(pod).await?;
        self.publish(&found, |pod, at| status::disrupted(pod, reason, at)).await?;
        tokio::time::sleep(BETWEEN).await;
        self.delete(pod, grace_seconds).await
    }

    /// Somebody deletes the pod. With a grace period and a kubelet it is still there afterwards.
    pub async fn delete(&self, pod: &str, grace_seconds: Option<i64>) -> Result<()> {
        let found = self.get(pod).await?;
        self.rest
            .delete(Resource::Pods, pod, grace_seconds)
            .await
            .with_context(|| format!("deleting pod {pod}"))?;
        self.view.reach_deletion(Resource::Pods, &found, grace_seconds == Some(0)).await
    }

    /// Deletes a pod as a person would and lets its kubelet complete it.
    pub async fn delete_and_finish(&self, pod: &str) -> Result<()> {
        self.delete(pod, None).await?;
        self.finish_termination(pod).await
    }

    /// The kubelet completes a deletion: the program obeys `SIGTERM`, the pod goes.
    pub async fn finish_termination(&self, pod: &str) -> Result<()> {
        self.finish_termination_with(pod, TERMINATED.code).await
    }

    /// The same with another exit code. The deletion is waited for: whoever has told of it may not have asked for
    /// it yet.
    pub async fn finish_termination_with(&self, pod: &str, code: i64) -> Result<()> {
        let until = Instant::now() + ASKED;
        loop {
            let found = match self.rest.get(Resource::Pods, pod).await {
                Err(error) if is_missing(&error) => return Ok(()),
                found => found?,
            };
            if terminating(&found) {
                return self.finish(&found, End::by(code)).await;
            }
            ensure!(Instant::now() < until, "nobody has asked for the deletion of pod {pod}");
            tokio::time::sleep(BETWEEN).await;
        }
    }

    /// Completes the deletion of a pod that was found, if it is being deleted: what still runs ends like this.
    pub(super) async fn finish(&self, found: &Value, end: End<'_>) -> Result<()> {
        let name = text(&found["metadata"]["name"]);
        let now = match self.rest.get(Resource::Pods, name).await {
            Err(error) if is_missing(&error) => return Ok(()),
            now => now.with_context(|| format!("reading pod {name}"))?,
        };
        if now["metadata"]["uid"] != found["metadata"]["uid"] || !terminating(&now) {
            return Ok(());
        }
        let moments = status::farewell(&now, end);
        self.play(&now, &moments).await?;
        if !moments.is_empty() {
            tokio::time::sleep(BETWEEN).await;
        }
        self.remove(&now).await
    }

    /// Ends a deletion: nothing of the pod is left on its node.
    async fn remove(&self, found: &Value) -> Result<()> {
        let pod = text(&found["metadata"]["name"]);
        let options = json!({
            "kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0,
            "preconditions": {"uid": found["metadata"]["uid"]},
        });
        let path = format!("{}/{pod}", self.rest.path(Resource::Pods));
        match self.rest.send(Method::DELETE, &path, Some(&options)).await {
            // It has gone, and another may have its name.
            Err(error) if is_missing(&error) || is_conflict(&error) => Ok(()),
            answer => answer.map(|_| ()).with_context(|| format!("removing pod {pod}")),
        }
    }
}
