//! Played kubelets: pods move as a test says, through the API and in no other way.
//!
//! Owns what kubelets, the scheduler and the node controller do to pods. They publish the states that real
//! ones were seen to publish, one after the other; [`plays`] compares them. Must not know jobs, the
//! operator, or which server is behind the client.

mod auto;
mod leave;
mod life;
mod lost;
pub(crate) mod plays;
pub(crate) mod presence;
pub(crate) mod sequence;
mod status;

use std::time::Duration;

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use trainyard_apiserver::Clock;

pub use auto::Auto;
pub use status::End;

use crate::rest::{Resource, Rest, is_another, is_conflict, is_missing};
use crate::seen::{terminating, text};
use crate::view::View;
use status::Moment;

/// The node that pods go to when nobody says otherwise.
pub const NODE: &str = "node-1";

/// Between two statuses that a kubelet publishes one after the other: long enough for whoever
/// watches to act on the first.
const BETWEEN: Duration = Duration::from_millis(30);

/// Moves single pods of one namespace.
#[derive(Clone)]
pub struct Kubelet {
    rest: Rest,
    view: View,
    clock: Clock,
}

impl Kubelet {
    /// Plays the kubelets of the pods in the namespace of `rest`.
    #[must_use]
    pub fn new(rest: Rest, view: View) -> Self {
        Self { rest, view, clock: Clock::of_runtime() }
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

    /// No node takes the pod.
    pub async fn unschedulable(&self, pod: &str, message: &str) -> Result<()> {
        let found = self.get(pod).await?;
        self.publish(&found, |_, at| status::unschedulable(message, at)).await.map(drop)
    }

    async fn get(&self, pod: &str) -> Result<Value> {
        self.rest.get(Resource::Pods, pod).await.with_context(|| format!("reading pod {pod}"))
    }

    /// The pod, on a node.
    async fn bound(&self, pod: &str) -> Result<Value> {
        let found = self.get(pod).await?;
        if text(&found["spec"]["nodeName"]).is_empty() {
            self.bind(pod, NODE).await?;
        }
        Ok(found)
    }

    /// Publishes one moment after the other of a pod that was found; false where that came to nothing.
    async fn play(&self, found: &Value, moments: &[Moment<'_>]) -> Result<bool> {
        for (place, moment) in moments.iter().enumerate() {
            if place > 0 {
                tokio::time::sleep(BETWEEN).await;
            }
            if !self.publish(found, |pod, at| moment.patch(pod, at)).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Publishes a status of a pod that was found, made from the pod as it is now and the time. That comes to nothing where
    /// it has gone, though another may have its name, or where somebody has deleted it since: its kubelet
    /// has other orders then.
    async fn publish(&self, found: &Value, status: impl Fn(&Value, &str) -> Value) -> Result<bool> {
        let (name, uid) = (text(&found["metadata"]["name"]), &found["metadata"]["uid"]);
        loop {
            let now = match self.rest.get(Resource::Pods, name).await {
                Err(error) if is_missing(&error) => return Ok(false),
                now => now.with_context(|| format!("reading pod {name}"))?,
            };
            let metadata = &now["metadata"];
            if metadata["uid"] != *uid || terminating(&now) != terminating(found) {
                return Ok(false);
            }
            let mut patch = status(&now, &presence::text(&self.clock));
            patch["metadata"] = json!({"uid": uid, "resourceVersion": metadata["resourceVersion"]});
            match self.rest.merge(Resource::Pods, &format!("{name}/status"), &patch).await {
                // It has changed in between.
                Err(error) if is_conflict(&error) || is_missing(&error) || is_another(&error) => {}
                written => {
                    let written = written.with_context(|| format!("writing the status of {name}"));
                    self.view.reach(Resource::Pods, &written?).await?;
                    return Ok(true);
                }
            }
        }
    }
}
