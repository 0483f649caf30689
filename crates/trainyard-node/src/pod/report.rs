//! Writes a pod's status whenever its record has changed: the latest state only, one write at a time.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::live::Live;
use crate::status::{ContainerRecord, PodRecord, State, status};

/// Most pods are past their preparation by then: its own report would only be in the way of their start.
const FIRST: Duration = Duration::from_millis(50);
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_LONGEST: Duration = Duration::from_secs(10);

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// It stands.
    Yes,
    /// The pod is gone, or another has its name.
    Gone,
}

/// Waits until there is more to be said of a pod than that it is being prepared.
async fn until_more_is_known(live: &Live, mut changes: watch::Receiver<u64>) {
    while is_being_prepared(&live.record()) {
        if changes.changed().await.is_err() {
            return;
        }
    }
}

fn is_being_prepared(record: &PodRecord) -> bool {
    let mut containers = record.init.iter().chain(&record.containers);
    let is_new = |container: &ContainerRecord| match &container.state {
        State::Waiting { reason, .. } => {
            container.last.is_none()
                && ["ContainerCreating", "PodInitializing"].contains(&&**reason)
        }
        _ => false,
    };
    record.verdict.is_none() && !record.ending && containers.all(is_new)
}

/// The writer of one pod's status.
pub(crate) struct Report<'a> {
    client: Client,
    live: &'a Live,
    last: Value,
}

impl<'a> Report<'a> {
    /// Nothing is written yet.
    pub(crate) fn new(client: Client, live: &'a Live) -> Self {
        let status = live.pod().status.clone().unwrap_or_default();
        // A status that cannot be put in JSON does not exist; then every time is new.
        let last = serde_json::to_value(status).unwrap_or_default();
        Self { client, live, last }
    }

    /// Writes every change until the end. A write that is under way then is waited for: one that was
    /// given up could still arrive, after later ones.
    pub(crate) async fn keep(&mut self, end: &CancellationToken) {
        let mut changes = self.live.changes();
        tokio::select! {
            biased;
            () = end.cancelled() => {}
            () = sleep(FIRST) => {}
            () = until_more_is_known(self.live, changes.clone()) => {}
        }
        loop {
            changes.borrow_and_update();
            self.write().await;
            tokio::select! {
                biased;
                () = end.cancelled() => return,
                told = changes.changed() => if told.is_err() { return },
            }
        }
    }

    /// Writes the state of now, if it differs from what was written; returns when it stands.
    pub(crate) async fn write(&mut self) {
        let mut wait = RETRY_FIRST;
        loop {
            let record = self.live.record();
            let (next, _) = status(&self.live.pod(), &record, &self.last, Timestamp::now());
            if next == self.last || self.live.gone.is_cancelled() {
                return;
            }
            match self.patch(&next).await {
                Ok(Written::Yes) => {
                    self.last = next;
                    return;
                }
                Ok(Written::Gone) => return,
                Err(error) => {
                    let (namespace, pod) = (&self.live.namespace, &self.live.name);
                    tracing::warn!(namespace, pod, %error, "its status could not be written; trying again");
                    sleep(wait).await;
                    wait = (wait * 2).min(RETRY_LONGEST);
                }
            }
        }
    }

    async fn patch(&self, status: &Value) -> Result<Written, kube::Error> {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.live.namespace);
        // The UID makes sure that it is about this pod, not about a later one of the same name.
        let mut patch = json!({"metadata": {"uid": self.live.uid}, "status": status});
        // These lists are merged by address: one that the pod had under an agent before this one would
        // stay beside the new one.
        for list in ["podIPs", "hostIPs"] {
            if let Some(addresses) = patch["status"][list].as_array_mut() {
                addresses.push(json!({"$patch": "replace"}));
            }
        }
        let params = PatchParams::default();
        match api.patch_status(&self.live.name, &params, &Patch::Strategic(patch)).await {
            Ok(_) => Ok(Written::Yes),
            Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => {
                Ok(Written::Gone)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes the object of a pod that was asked to end and has ended.
    pub(crate) async fn remove(&self) {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &self.live.namespace);
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions {
                uid: Some(self.live.uid.clone()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        let mut wait = RETRY_FIRST;
        while !self.live.gone.is_cancelled() {
            match api.delete(&self.live.name, &params).await {
                Ok(_) => return,
                Err(kube::Error::Api(answer)) if answer.code == 404 || answer.code == 409 => return,
                Err(error) => {
                    let (namespace, pod) = (&self.live.namespace, &self.live.name);
                    tracing::warn!(namespace, pod, %error, "it could not be removed; trying again");
                    sleep(wait).await;
                    wait = (wait * 2).min(RETRY_LONGEST);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_pod_of_which_nothing_is_known_yet_is_being_prepared() {
        let pod = |spec: Value| serde_json::from_value::<Pod>(json!({"spec": spec})).unwrap();
        let new = |spec: Value| PodRecord::take_over(&pod(spec), Timestamp::UNIX_EPOCH).0;
        let one = || new(json!({"containers": [{"name": "main"}]}));
        assert!(is_being_prepared(&one()));
        let init = json!({"initContainers": [{"name": "first"}], "containers": [{"name": "main"}]});
        assert!(is_being_prepared(&new(init)));
        let changed = |change: fn(&mut PodRecord)| {
            let mut record = one();
            change(&mut record);
            is_being_prepared(&record)
        };
        assert!(!changed(|record| record.ending = true));
        assert!(!changed(|record| {
            record.containers[0].move_to(State::Running(Timestamp::UNIX_EPOCH));
        }));
        assert!(!changed(|record| {
            let (reason, message) = ("ErrImagePull".to_owned(), "no such image".to_owned());
            record.containers[0].move_to(State::Waiting { reason, message });
        }));
    }
}
