//! Played kubelets: pods move as a test says, through the API and in no other way.
//!
//! Owns what kubelets, the scheduler and the node controller do to pods. Must not know jobs, the
//! operator, or which server is behind the client.

mod auto;
mod lost;
pub(crate) mod presence;
pub(crate) mod sequence;
mod status;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};

pub use auto::Auto;
pub use status::End;

use crate::rest::{Resource, Rest, is_another, is_conflict, is_missing};
use crate::seen::{terminating, text};
use crate::view::View;

/// The node that pods go to when nobody says otherwise.
pub const NODE: &str = "node-1";

/// Between two statuses that a kubelet publishes one after the other: long enough for whoever
/// watches to act on the first.
const BETWEEN: Duration = Duration::from_millis(30);

/// Exit code of a program that obeyed `SIGTERM`.
const TERMINATED: i64 = 143;

/// Moves single pods of one namespace.
#[derive(Clone)]
pub struct Kubelet {
    rest: Rest,
    view: View,
}

impl Kubelet {
    /// Plays the kubelets of the pods in the namespace of `rest`.
    #[must_use]
    pub const fn new(rest: Rest, view: View) -> Self {
        Self { rest, view }
    }

    /// The kubelets' way to the server.
    pub(crate) const fn rest(&self) -> &Rest {
        &self.rest
    }

    /// Puts a pod on a node, as a scheduler does.
    pub async fn bind(&self, pod: &str, node: &str) -> Result<()> {
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        });
        let path = format!("{}/{pod}/binding", self.rest.path(Resource::Pods));
        self.rest
            .send(Method::POST, &path, Some(&binding))
            .await
            .with_context(|| format!("binding pod {pod}"))?;
        Ok(())
    }

    /// All containers of the pod are created and run; binds it first where needed.
    pub async fn start(&self, pod: &str) -> Result<()> {
        let found = self.get(pod).await?;
        if text(&found["spec"]["nodeName"]).is_empty() {
            self.bind(pod, NODE).await?;
        }
        self.write(pod, &status::creating(&found)).await?;
        self.write(pod, &status::running(&found, 0)).await
    }

    /// Starts several pods.
    pub async fn start_all(&self, pods: &[&str]) -> Result<()> {
        for pod in pods {
            self.start(pod).await?;
        }
        Ok(())
    }

    /// The program ends with that code and the pod with it.
    pub async fn exit(&self, pod: &str, code: i64) -> Result<()> {
        self.end(pod, End { code, reason: "", message: "" }).await
    }

    /// The kernel kills the program for its memory.
    pub async fn oom(&self, pod: &str) -> Result<()> {
        self.end(pod, End { code: 137, reason: "OOMKilled", message: "" }).await
    }

    /// The program ends as told and the pod with it.
    pub async fn end(&self, pod: &str, end: End<'_>) -> Result<()> {
        let found = self.get(pod).await?;
        let policy = text(&found["spec"]["restartPolicy"]);
        let in_place = policy == "Always" || (policy == "OnFailure" && end.code != 0);
        ensure!(
            !in_place,
            "a kubelet restarts {pod} in place (its policy is {policy}): use restart_in_place"
        );
        self.terminate(&found, end).await
    }

    /// Publishes the end of a pod as a kubelet does: the terminated containers first, the final
    /// phase when the sandbox is gone. A pod that was deleted in between goes.
    async fn terminate(&self, found: &Value, end: End<'_>) -> Result<()> {
        let name = text(&found["metadata"]["name"]);
        self.write(name, &status::terminated(found, end)).await?;
        tokio::time::sleep(BETWEEN).await;
        let path = format!("{name}/status");
        let phase = status::final_phase(found, end);
        let written = match self.rest.merge(Resource::Pods, &path, &phase).await {
            // The pod has gone, and another may have its name.
            Err(error) if is_missing(&error) || is_another(&error) => return Ok(()),
            written => written.with_context(|| format!("writing the phase of pod {name}"))?,
        };
        self.view.reach(Resource::Pods, &written).await?;
        if terminating(&written) { self.remove(&written).await } else { Ok(()) }
    }

    /// The program ends with that code; other containers of the pod, which know nothing of it, run
    /// on.
    pub async fn main_exits(&self, pod: &str, code: i64) -> Result<()> {
        let found = self.get(pod).await?;
        let end = End { code, reason: "", message: "" };
        self.write(pod, &status::main_ended(&found, end)).await
    }

    /// The first init container fails and the pod never starts.
    pub async fn init_fails(&self, pod: &str, code: i64, message: &str) -> Result<()> {
        self.bind(pod, NODE).await?;
        let found = self.get(pod).await?;
        self.write(pod, &status::init_failed(&found, code, message)).await
    }

    /// The kubelet has restarted the container in place for the `restarts`-th time.
    pub async fn restart_in_place(&self, pod: &str, restarts: i64) -> Result<()> {
        let found = self.get(pod).await?;
        self.write(pod, &status::running(&found, restarts)).await
    }

    /// The container has ended `restarts` times and its kubelet waits before the next start.
    pub async fn crash_loop(&self, pod: &str, restarts: i64) -> Result<()> {
        let found = self.get(pod).await?;
        self.write(pod, &status::crash_loop(&found, restarts)).await
    }

    /// The pod is on a node and its containers wait, for instance for an image.
    pub async fn waiting(&self, pod: &str, reason: &str, message: &str) -> Result<()> {
        self.bind(pod, NODE).await?;
        let found = self.get(pod).await?;
        self.write(pod, &status::waiting(&found, reason, message)).await
    }

    /// No node takes the pod.
    pub async fn unschedulable(&self, pod: &str, message: &str) -> Result<()> {
        self.write(pod, &status::unschedulable(message)).await
    }

    /// The kubelet throws the pod out for want of memory; `marked` tells whether it says that this
    /// was no fault of the pod, as newer kubelets do.
    pub async fn evict(&self, pod: &str, marked: bool) -> Result<()> {
        let found = self.get(pod).await?;
        self.write(pod, &status::evicted(&found, marked)).await
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

    /// The node has gone: the pod is being deleted and no kubelet will ever finish that.
    pub async fn node_lost(&self, pod: &str) -> Result<()> {
        self.disrupt(pod, "DeletionByTaintManager", Some(1)).await
    }

    async fn disrupt(&self, pod: &str, reason: &str, grace_seconds: Option<i64>) -> Result<()> {
        let found = self.get(pod).await?;
        self.write(pod, &status::disrupted(&found, reason)).await?;
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

    /// The kubelet completes a deletion: the program obeys `SIGTERM`, the pod goes.
    pub async fn finish_termination(&self, pod: &str) -> Result<()> {
        self.finish_termination_with(pod, TERMINATED).await
    }

    /// The same with another exit code.
    pub async fn finish_termination_with(&self, pod: &str, code: i64) -> Result<()> {
        let found = match self.rest.get(Resource::Pods, pod).await {
            Err(error) if is_missing(&error) => return Ok(()),
            found => found?,
        };
        if found["status"]["phase"] == "Running" {
            let end = End { code, reason: "", message: "" };
            return self.terminate(&found, end).await;
        }
        self.remove(&found).await
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

    /// Deletes a pod as a person would and lets its kubelet complete it.
    pub async fn delete_and_finish(&self, pod: &str) -> Result<()> {
        self.delete(pod, None).await?;
        self.finish_termination(pod).await
    }

    async fn get(&self, pod: &str) -> Result<Value> {
        self.rest.get(Resource::Pods, pod).await.with_context(|| format!("reading pod {pod}"))
    }

    async fn write(&self, pod: &str, patch: &Value) -> Result<()> {
        let written = self
            .rest
            .merge(Resource::Pods, &format!("{pod}/status"), patch)
            .await
            .with_context(|| format!("writing the status of pod {pod}"))?;
        self.view.reach(Resource::Pods, &written).await
    }
}
