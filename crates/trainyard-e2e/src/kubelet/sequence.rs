//! What whoever watches a pod sees of it, version by version; and what real kubelets were seen to publish.
//!
//! The recordings are made and checked by the tier on a complete cluster. What no real kubelet was seen to publish
//! yet is in a folder of its own, as it follows from the kubelet's source; a recording takes its place.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use futures::StreamExt as _;
use http::Request;
use kube::core::WatchEvent;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::rest::{Resource, Rest};
use crate::seen::text;

/// Writes what is seen instead of comparing it, where it is set.
const WRITE: &str = "TRAINYARD_WRITE_RECORDED";

/// How often it is looked whether all of a played kubelet has been seen.
const PATIENCE: usize = 100;
/// The same of a real one, which does its work meanwhile.
const LONGEST: usize = 600;
/// The time between two looks.
const LOOK: Duration = Duration::from_millis(100);

/// What one version of a pod says of its life.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct PodState {
    phase: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
    /// `Type=Status`, with the reason where it tells more, by type.
    conditions: Vec<String>,
    /// One for each container: its state with reason or exit code, its readiness, its restarts.
    containers: Vec<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    deleting: bool,
}

impl PodState {
    fn of(pod: &Value) -> Self {
        let status = &pod["status"];
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut conditions: Vec<_> = list(&status["conditions"]).iter().map(condition).collect();
        conditions.sort();
        let init = list(&status["initContainerStatuses"]);
        let all = init.iter().chain(status["containerStatuses"].as_array().into_iter().flatten());
        Self {
            phase: text(&status["phase"]).to_owned(),
            reason: text(&status["reason"]).to_owned(),
            conditions,
            containers: all.map(container).collect(),
            deleting: !pod["metadata"]["deletionTimestamp"].is_null(),
        }
    }
}

fn condition(condition: &Value) -> String {
    let kind = text(&condition["type"]);
    let line = format!("{kind}={}", text(&condition["status"]));
    if kind == "DisruptionTarget" {
        return format!("{line} {}", text(&condition["reason"]));
    }
    line
}

fn container(status: &Value) -> String {
    let state = &status["state"];
    let mut line = if let Some(code) = state["terminated"]["exitCode"].as_i64() {
        format!("terminated {code} {}", text(&state["terminated"]["reason"]))
    } else if state["running"].is_object() {
        "running".to_owned()
    } else {
        format!("waiting {}", text(&state["waiting"]["reason"]))
    };
    if status["ready"] == true {
        line += " ready";
    }
    match status["restartCount"].as_i64() {
        None | Some(0) => line,
        Some(count) => format!("{line} restarts={count}"),
    }
}

/// Follows a pod from before it is made. It stops when this is dropped.
pub(crate) struct Recorder {
    states: Arc<Mutex<Vec<PodState>>>,
    _watch: JoinSet<()>,
}

impl Recorder {
    /// Starts to follow a pod that is still to be made.
    pub(crate) async fn start(rest: &Rest, pod: &str) -> Result<Self> {
        let list = rest.list(Resource::Pods).await?;
        let from = text(&list["metadata"]["resourceVersion"]);
        let path = format!(
            "{}?watch=1&timeoutSeconds=290&fieldSelector=metadata.name%3D{pod}&resourceVersion={from}",
            rest.path(Resource::Pods),
        );
        let (client, states) = (rest.client().clone(), Arc::<Mutex<Vec<PodState>>>::default());
        let mut watch = JoinSet::new();
        let seen = Arc::clone(&states);
        watch.spawn(async move {
            let Ok(request) = Request::get(path).body(Vec::new()) else { return };
            let Ok(events) = client.request_events::<Value>(request).await else { return };
            let mut events = std::pin::pin!(events);
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(pod) | WatchEvent::Modified(pod) = event {
                    add(
                        &mut seen.lock().unwrap_or_else(PoisonError::into_inner),
                        PodState::of(&pod),
                    );
                }
            }
        });
        Ok(Self { states, _watch: watch })
    }

    /// What has been seen.
    pub(crate) fn states(&self) -> Vec<PodState> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Adds a state unless it is the last one again.
fn add(states: &mut Vec<PodState>, state: PodState) {
    if states.last() != Some(&state) {
        states.push(state);
    }
}

/// Where sequences are: what real kubelets were seen to publish, and what follows from their source.
const FOLDERS: [&str; 2] = ["recorded", "derived"];
    /// Waits until a container has been in this state, and gives what was seen until then.
    pub(crate) async fn until(&self, container: &str) -> Result<Vec<PodState>> {
        let is_there = |state: &PodState| state.containers.iter().any(|line| line == container);
        for _ in 0..LONGEST {
            let mut states = self.states();
            if let Some(place) = states.iter().position(is_there) {
                states.truncate(place + 1);
                return Ok(states);
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("no container was {container}: {}", lines(&self.states())?)
    }


fn file(folder: &str, name: &str) -> PathBuf {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kubelet");
    all.join(folder).join(format!("{name}.yaml"))
}

fn known(name: &str) -> Result<Vec<PodState>> {
    let file = FOLDERS.map(|folder| file(folder, name)).into_iter().find(|file| file.exists());
    let file = file.with_context(|| format!("no sequence {name}"))?;
    Ok(serde_saphyr::from_str(&fs::read_to_string(file)?)?)
}

/// A real kubelet's states must be among those that were recorded, in that order, up to the last one: it leaves
/// out some of them when it is in a hurry. With the variable above they are the recording.
pub(crate) fn settle(name: &str, states: &[PodState]) -> Result<()> {
    if std::env::var_os(WRITE).is_some() {
        fs::write(file(FOLDERS[0], name), lines(states)?)?;
        let derived = file(FOLDERS[1], name);
        return if derived.exists() { Ok(fs::remove_file(derived)?) } else { Ok(()) };
    }
    let recorded = known(name)?;
    ensure!(
        is_part(states, &recorded),
        "{name}: a real kubelet published\n{}recorded are\n{}",
        lines(states)?,
        lines(&recorded)?
    );
    Ok(())
}

/// A played kubelet's states must be those that were recorded, all of them.
pub(crate) async fn is_played(name: &str, recorder: &Recorder) -> Result<()> {
    let known = known(name)?;
    for _ in 0..PATIENCE {
        if recorder.states().last() == known.last() {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    // What comes too much comes now.
    tokio::time::sleep(LOOK).await;
    let played = recorder.states();
    ensure!(
        played == known,
        "{name}: the played kubelet published\n{}real ones publish\n{}",
        lines(&played)?,
        lines(&known)?
    );
    Ok(())
}

/// Whether the states are a part of others in their order, with the same end.
fn is_part(states: &[PodState], of: &[PodState]) -> bool {
    let mut rest = of.iter();
    states.iter().all(|state| rest.any(|other| other == state)) && states.last() == of.last()
}

/// One line for each state.
fn lines(states: &[PodState]) -> Result<String> {
    let mut text = String::new();
    for state in states {
        text.extend(["- ", &serde_json::to_string(state)?, "\n"]);
    }
    Ok(text)
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// The names of all sequences.
    pub(in crate::kubelet) fn names() -> Vec<String> {
        let all = FOLDERS.iter().flat_map(|folder| {
            let folder = file(folder, "any").with_file_name("");
            fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path())
        });
        let mut names: Vec<_> =
            all.map(|path| path.file_stem().unwrap().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_version_of_a_pod_is_told_in_few_words() {
        let state = PodState::of(&json!({
            "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"},
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": "Ready", "status": "False", "reason": "ContainersNotReady"},
                    {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"},
                ],
                "containerStatuses": [
                    {"ready": true, "restartCount": 2, "state": {"running": {}}},
                    {"state": {"terminated": {"exitCode": 3, "reason": "Error"}}},
                    {"state": {"waiting": {"reason": "CrashLoopBackOff"}}},
                ],
            },
        }));
        let wanted = "- {\"phase\":\"Running\",\"conditions\":[\"DisruptionTarget=True \
            EvictionByEvictionAPI\",\"Ready=False\"],\"containers\":[\"running ready restarts=2\",\
            \"terminated 3 Error\",\"waiting CrashLoopBackOff\"],\"deleting\":true}\n";
        assert_eq!(lines(std::slice::from_ref(&state)).unwrap(), wanted);
        assert_eq!(serde_saphyr::from_str::<Vec<PodState>>(wanted).unwrap(), [state]);
    }

    #[test]
    fn a_hurried_kubelet_may_leave_states_out_but_not_the_last() {
        let state = |phase: &str| PodState { phase: phase.to_owned(), ..PodState::default() };
        let all = ["Pending", "Running", "Succeeded"].map(state);
        assert!(is_part(&all, &all) && is_part(&all[1..], &all));
        assert!(!is_part(&all[..2], &all));
        assert!(!is_part(&["Running", "Pending", "Succeeded"].map(state), &all));
        let mut states = Vec::new();
        for phase in ["Pending", "Pending", "Running", "Pending"] {
            add(&mut states, state(phase));
        }
        assert_eq!(states.len(), 3);
    }
}
