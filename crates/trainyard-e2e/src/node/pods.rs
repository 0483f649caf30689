//! Pods of one namespace: made, waited for, looked at.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::{Value, json};

use super::Stage;

const PATIENCE: Duration = Duration::from_mins(2);

/// The pods of one namespace.
pub struct Pods<'a> {
    /// The stage they stand on.
    pub stage: &'a Stage,
    /// The namespace.
    pub namespace: String,
    api: Api<Pod>,
}

impl<'a> Pods<'a> {
    /// A new namespace.
    pub async fn open(stage: &'a Stage, name: &str) -> Result<Self> {
        let namespace = stage.namespace(name).await?;
        let api = Api::namespaced(stage.client.clone(), &namespace);
        Ok(Self { stage, namespace, api })
    }

    /// A pod with one container that runs a shell script; `more` is merged into its spec.
    pub async fn shell(&self, name: &str, script: &str, more: Value) -> Result<Pod> {
        let mut spec = json!({
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "test", "command": ["sh", "-c", script]}],
        });
        merge(&mut spec, more);
        self.create(name, spec).await
    }

    /// A pod of this spec.
    pub async fn create(&self, name: &str, spec: Value) -> Result<Pod> {
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod = serde_json::from_value(pod).context("the case's pod is malformed")?;
        Ok(self.api.create(&PostParams::default(), &pod).await?)
    }

    /// The pod as it is.
    pub async fn get(&self, name: &str) -> Result<Pod> {
        Ok(self.api.get(name).await?)
    }

    /// Asks for its end.
    pub async fn delete(&self, name: &str, grace: Option<u32>) -> Result<()> {
        let params = DeleteParams { grace_period_seconds: grace, ..DeleteParams::default() };
        self.api.delete(name, &params).await?;
        Ok(())
    }

    /// Waits until the pod is as told.
    pub async fn until(&self, name: &str, what: &str, holds: impl Fn(&Pod) -> bool) -> Result<Pod> {
        let started = Instant::now();
        loop {
            let pod = self.get(name).await?;
            if holds(&pod) {
                return Ok(pod);
            }
            if started.elapsed() > PATIENCE {
                let status = serde_json::to_string(&pod.status)?;
                let events = self.events(name).await?.join("\n");
                bail!("{name} is not {what}; its status: {status}\nits events:\n{events}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Waits for a phase.
    pub async fn until_phase(&self, name: &str, phase: &str) -> Result<Pod> {
        self.until(name, phase, |pod| phase_of(pod) == phase).await
    }

    /// Waits until the object is gone.
    pub async fn until_gone(&self, name: &str) -> Result<()> {
        let started = Instant::now();
        while self.api.get_opt(name).await?.is_some() {
            if started.elapsed() > PATIENCE {
                bail!("{name} is not gone");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// What the real kubectl shows of a container's log.
    pub async fn logs(&self, words: &[&str]) -> Result<String> {
        let all = [&["logs", "-n", &self.namespace][..], words].concat();
        self.stage.kubectl.run(&all).await?.stdout_of_success()
    }

    /// `REASON: message` of all events about a pod, oldest first.
    pub async fn events(&self, name: &str) -> Result<Vec<String>> {
        let api: Api<Event> = Api::namespaced(self.stage.client.clone(), &self.namespace);
        let params = ListParams::default().fields(&format!("involvedObject.name={name}"));
        let mut events = api.list(&params).await?.items;
        events.sort_by_key(|event| event.metadata.creation_timestamp.clone());
        Ok(events
            .iter()
            .map(|event| {
                let mut line = event.reason.clone().unwrap_or_default();
                let _ = write!(line, ": {}", event.message.as_deref().unwrap_or_default());
                line
            })
            .collect())
    }

    /// Waits for an event whose line contains these words.
    pub async fn until_event(&self, name: &str, words: &str) -> Result<String> {
        let started = Instant::now();
        loop {
            let events = self.events(name).await?;
            if let Some(found) = events.iter().find(|line| line.contains(words)) {
                return Ok(found.clone());
            }
            if started.elapsed() > PATIENCE {
                bail!("no event of {name} says {words:?}; there are:\n{}", events.join("\n"));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// A pod's phase.
pub(crate) fn phase_of(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

/// The exit code of a container that has ended.
#[must_use]
pub fn exit_code(pod: &Pod, container: &str) -> Option<i32> {
    let statuses = pod.status.as_ref()?;
    let all = statuses.init_container_statuses.iter().flatten();
    let mut all = all.chain(statuses.container_statuses.iter().flatten());
    let status = all.find(|status| status.name == container)?;
    Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)
}

/// Why a container waits.
#[must_use]
pub fn waiting_reason(pod: &Pod, container: &str) -> Option<String> {
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    let status = statuses.iter().find(|status| status.name == container)?;
    status.state.as_ref()?.waiting.as_ref()?.reason.clone()
}

/// Merges objects; lists and values are replaced, containers by index.
fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (Value::Array(into), Value::Array(from)) => {
            for (index, value) in from.into_iter().enumerate() {
                match into.get_mut(index) {
                    Some(slot) => merge(slot, value),
                    None => into.push(value),
                }
            }
        }
        (into, from) => *into = from,
    }
}
