//! Plain pods that name Volcano's scheduler get a PodGroup of their own, as from Volcano's
//! controller, so that whoever lists groups and queues sees them.
//!
//! They are scheduled meanwhile: nothing waits for the group. What is in it is decided in
//! `trainyard-core`.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::debug;
use trainyard_api::volcano::names::{ANNOTATION_GROUP, SCHEDULER};
use trainyard_core::volcano::pod_group_for;
use trainyard_sched::PodName;

use super::act::{call, path};
use super::seen::Kind;
use super::world::World;
use crate::backoff::Backoff;
use crate::calls::{Call, CallError, Calls, Verb};

/// Between two looks at all pods.
const PAUSE: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_mins(1);

pub(super) struct LonePods {
    calls: Calls,
    world: Arc<World>,
}

impl LonePods {
    pub(super) fn new(calls: Calls, world: Arc<World>) -> Self {
        Self { calls, world }
    }

    /// Looks after plain pods for ever.
    pub(super) async fn run(self) {
        let mut backoff = Backoff::new(PAUSE, RETRY_MAX);
        loop {
            self.world.pods_changed().await;
            if !self.world.is_served(Kind::Groups) {
                continue;
            }
            let mut failed = false;
            for pod in self.world.read(|state| state.lone_pods(SCHEDULER)) {
                if let Err(error) = self.give_group(&pod).await {
                    debug!(pod = %pod.name, %error, "a plain pod got no group");
                    failed = true;
                }
            }
            if failed {
                sleep(backoff.failed()).await;
                self.world.look_again();
            } else {
                backoff.succeeded();
                sleep(PAUSE).await;
            }
        }
    }

    /// Makes the group, unless a sibling has one, then notes it on the pod.
    async fn give_group(&self, pod: &PodName) -> Result<(), CallError> {
        let path = path(pod);
        let get = call(Verb::Get, "pods", path.clone(), &Value::Null);
        let found = match self.calls.send(Call { body: Vec::new(), ..get }).await {
            Ok(found) => found,
            Err(error) if error.code() == 404 => return Ok(()),
            Err(error) => return Err(error),
        };
        let found: Value = serde_json::from_slice(&found).unwrap_or_default();
        let Some(group) = pod_group_for(&found) else { return Ok(()) };
        let groups =
            format!("/apis/scheduling.volcano.sh/v1beta1/namespaces/{}/podgroups", pod.namespace);
        match self.calls.send(call(Verb::Create, "podgroups", groups, &group)).await {
            Err(error) if error.code() != 409 => return Err(error),
            _ => {}
        }
        let note = json!({"metadata": {
            "uid": found["metadata"]["uid"],
            "annotations": {ANNOTATION_GROUP: group["metadata"]["name"]},
        }});
        match self.calls.send(call(Verb::Patch, "pods", path, &note)).await {
            Err(error) if !matches!(error.code(), 404 | 409) => Err(error),
            _ => Ok(()),
        }
    }
}
