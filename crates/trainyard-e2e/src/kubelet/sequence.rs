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

    /// Whether the next one follows within moments, and a kubelet in a hurry writes that one alone.
    fn is_of_a_moment(&self, next: Option<&Self>) -> bool {
        let waits = |line: &String| {
            ["waiting ContainerCreating", "waiting PodInitializing"].contains(&line.as_str())
        };
        match self.phase.as_str() {
            "Pending" => !self.deleting && self.containers.iter().all(waits),
            "Running" => next.is_some_and(|next| {
                let is_lost = |line: &String| line.starts_with("terminated 255 Unknown");
                next.phase == "Failed" && self.containers.iter().all(is_lost)
            }),
            _ => self.containers.iter().any(|line| line.starts_with("running")),
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

fn file(folder: &str, name: &str) -> PathBuf {
    let all = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/kubelet");
    all.join(folder).join(format!("{name}.yaml"))
}

fn known(name: &str) -> Result<Vec<PodState>> {
    let file = FOLDERS.map(|folder| file(folder, name)).into_iter().find(|file| file.exists());
    let file = file.with_context(|| format!("no sequence {name}"))?;
    Ok(serde_saphyr::from_str(&fs::read_to_string(file)?)?)
}

/// A real kubelet's states must be among those that were recorded, in that order, up to the last one, and tell the
/// same [`story`]. With the variable above they are the recording.
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

/// Whether the states are a part of others in their order, with the same end, and tell the same story.
fn is_part(states: &[PodState], of: &[PodState]) -> bool {
    let mut rest = of.iter();
    states.iter().all(|state| rest.any(|other| other == state))
        && states.last() == of.last()
        && story(states) == story(of)
}

/// What no kubelet leaves out, however much of a hurry it is in. It writes the newest status of a pod that it has, so
/// that what follows within moments takes the place of what was not written yet. Seen to be left out are, before
/// anything of the pod has run, that its containers are being created; of a pod that its kubelet ends, that they still
/// run; of one whose containers were lost with the node, that they are, before the pod's last phase; and always,
/// whether there is a sandbox. Everything else is seen: that a container runs, or cannot; how it has ended, before the
/// pod's last phase is told; what others write.
fn story(states: &[PodState]) -> Vec<PodState> {
    let mut story = Vec::new();
    for (place, state) in states.iter().enumerate() {
        if state.is_of_a_moment(states.get(place + 1)) {
            continue;
        }
        let mut state = state.clone();
        state.conditions.retain(|line| !line.starts_with("PodReadyToStartContainers="));
        add(&mut story, state);
    }
    story
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

    /// The recording of that name, without the states at these places.
    fn without(name: &str, left_out: &[usize]) -> (Vec<PodState>, Vec<PodState>) {
        let all = known(name).unwrap();
        let kept = all.iter().enumerate().filter(|(place, _)| !left_out.contains(place));
        (kept.map(|(_, state)| state.clone()).collect(), all)
    }

    #[test]
    fn a_hurried_kubelet_leaves_out_what_lasts_for_a_moment_and_no_end() {
        let passes = |name, left_out: &[usize]| {
            let (states, all) = without(name, left_out);
            is_part(&states, &all)
        };
        assert!(passes("success", &[]));
        for creating in 0..4 {
            assert!(passes("success", &[creating]), "{creating}");
        }
        assert!(passes("success", &[0, 1, 2, 3]));
        for (told, what) in [(4, "it runs"), (5, "it has ended"), (6, "the phase")] {
            assert!(!passes("success", &[told]), "{what}");
        }
        assert!(!passes("success", &[0, 1, 2, 3, 4, 5]), "only the last state");
        for place in 4..9 {
            assert!(!passes("crash_loop", &[place]), "{place}");
        }
        assert!(!passes("image_that_cannot_be_pulled", &[4]));
        assert!(!passes("node_loss", &[4]), "what the node controller writes");
        assert!(passes("eviction_by_the_kubelet", &[5]), "it is about to be stopped");
        assert!(!passes("eviction_by_the_kubelet", &[6]), "how it has ended");
        assert!(passes("node_reboot_without_restart", &[6]), "it is told with the phase");
        assert!(!passes("node_reboot", &[6, 7]), "its containers were lost");
        for place in [6, 7] {
            assert!(passes("node_reboot", &[place]), "whether there is a sandbox");
        }
    }

    #[test]
    fn states_have_their_order_and_are_told_once() {
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
