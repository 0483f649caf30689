//! What the cases look at: parts of a pod's status, processes of the machine, a folder shared with
//! containers.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, Pod,
    PodCondition,
};
use serde_json::{Value, json};

/// Longer than anything that is waited for here.
const PATIENCE: Duration = Duration::from_mins(1);

/// A folder of the machine that a pod sees at `/gate`: what one side writes the other waits for.
pub(super) struct Gate(tempfile::TempDir);

impl Gate {
    pub(super) fn new() -> Result<Self> {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::Builder::new().prefix("trainyard-gate-").tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777))?;
        Ok(Self(folder))
    }

    /// The volume, for a pod's spec.
    pub(super) fn volume(&self) -> Value {
        json!({"name": "gate", "hostPath": {"path": self.0.path(), "type": "Directory"}})
    }

    /// Where containers see it.
    pub(super) fn mount() -> Value {
        json!({"name": "gate", "mountPath": "/gate"})
    }

    /// A spec's part that gives it to the first container of a pod.
    pub(super) fn spec(&self) -> Value {
        json!({"volumes": [self.volume()], "containers": [{"volumeMounts": [Self::mount()]}]})
    }

    /// Makes a file in it.
    pub(super) fn open(&self, name: &str) -> Result<()> {
        Ok(fs::write(self.0.path().join(name), "")?)
    }

    /// Removes a file from it.
    pub(super) fn close(&self, name: &str) -> Result<()> {
        Ok(fs::remove_file(self.0.path().join(name))?)
    }

    /// Whether a file is there.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.path().join(name).exists()
    }

    /// What a file holds; nothing if it is not there.
    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
    }

    /// Waits for a file.
    pub(super) async fn until(&self, name: &str) -> Result<()> {
        let path = self.0.path().join(name);
        until(&format!("the file {name}"), async || Ok(path.exists())).await
    }
}

/// Waits until something holds.
pub(super) async fn until(what: &str, holds: impl AsyncFn() -> Result<bool>) -> Result<()> {
    let started = Instant::now();
    while !holds().await? {
        if started.elapsed() > PATIENCE {
            bail!("{what}: not within {PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// A container's status.
pub(super) fn container<'a>(pod: &'a Pod, name: &str) -> Result<&'a ContainerStatus> {
    seen(pod, name).with_context(|| format!("container {name} has no status: {:?}", pod.status))
}

/// The same, if it has one.
pub(super) fn seen<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let mut all = status
        .init_container_statuses
        .iter()
        .flatten()
        .chain(status.container_statuses.iter().flatten());
    all.find(|status| status.name == name)
}

/// How a container's present run ended.
pub(super) fn ended<'a>(pod: &'a Pod, name: &str) -> Result<&'a ContainerStateTerminated> {
    terminated(container(pod, name)?.state.as_ref())
        .with_context(|| format!("container {name} has not ended: {:?}", pod.status))
}

/// How a container's last run but this one ended.
pub(super) fn ended_before<'a>(pod: &'a Pod, name: &str) -> Result<&'a ContainerStateTerminated> {
    terminated(container(pod, name)?.last_state.as_ref())
        .with_context(|| format!("container {name} has no last state: {:?}", pod.status))
}

fn terminated(state: Option<&ContainerState>) -> Option<&ContainerStateTerminated> {
    state?.terminated.as_ref()
}

/// What a container waits for.
pub(super) fn waiting<'a>(pod: &'a Pod, name: &str) -> Option<&'a ContainerStateWaiting> {
    seen(pod, name)?.state.as_ref()?.waiting.as_ref()
}

/// Whether a container waits with this reason.
pub(super) fn waits(pod: &Pod, name: &str, reason: &str) -> bool {
    waiting(pod, name).and_then(|waiting| waiting.reason.as_deref()) == Some(reason)
}

/// Whether a container runs.
pub(super) fn runs(pod: &Pod, name: &str) -> bool {
    seen(pod, name).and_then(|c| c.state.as_ref()).is_some_and(|state| state.running.is_some())
}

/// A condition's status and reason, as `True` or `False/ContainersNotReady`.
pub(super) fn condition(pod: &Pod, kind: &str) -> String {
    let all = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let found: Option<&PodCondition> =
        all.into_iter().flatten().find(|condition| condition.type_ == kind);
    found.map_or_else(String::new, |condition| match condition.reason.as_deref() {
        None | Some("") => condition.status.clone(),
        Some(reason) => format!("{}/{reason}", condition.status),
    })
}

/// The four conditions, in this order: scheduled, initialized, containers ready, ready.
pub(super) fn conditions(pod: &Pod) -> [String; 4] {
    ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(|kind| condition(pod, kind))
}

/// A pod's own reason and message.
pub(super) fn verdict(pod: &Pod) -> (&str, &str) {
    let status = pod.status.as_ref();
    (
        status.and_then(|status| status.reason.as_deref()).unwrap_or_default(),
        status.and_then(|status| status.message.as_deref()).unwrap_or_default(),
    )
}

/// How many processes of the machine, in whatever namespace, have this word in their command line.
pub(super) fn processes(word: &str) -> usize {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders
        .filter(|folder| {
            let line: PathBuf = folder.path().join("cmdline");
            let line = fs::read(line).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|word_of| word_of == word.as_bytes())
        })
        .count()
}

/// Seconds to sleep that no other case sleeps: names a process.
pub(super) fn mark(number: usize) -> String {
    format!("600.{}{number:04}", std::process::id())
}
