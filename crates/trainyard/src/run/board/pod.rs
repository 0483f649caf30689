//! What a pod's status says about its replica.

use serde_json::Value;
use trainyard_core::{ContainerState, ContainerView, Phase, PodState, PodView};

use super::replica::{Ended, Replica, State};
use super::{Notice, Weight};
use crate::commands::job_logs::wait::waits_for;
use crate::present::time::time;
use crate::present::{items, one_line, text};

/// Where the node says how a pod is reached from this machine.
const ADDRESS: &str = "trainyard.dev/address";
/// The reason of a container whose program could not be started.
const START_ERROR: &str = "StartError";

impl Replica {
    /// Takes a pod's status in; answers with what is new.
    pub(super) fn see(&mut self, pod: &Value, is_gone: bool) -> Vec<Notice> {
        let uid = text(pod, &["metadata", "uid"]);
        let mut notices = Vec::new();
        if is_gone {
            // The end of a pod that has a successor is no news.
            if uid == self.uid {
                self.has_pod = false;
                self.memory = 0;
                self.cpu_millis = 0;
                if !self.state.is_over() {
                    self.state = State::Stopped;
                }
            }
            return notices;
        }
        if self.uid != uid {
            if !self.uid.is_empty() {
                self.restarts += 1;
                notices.push(restarted(self.ends.last()));
            }
            self.renew(uid);
        }
        self.has_pod = true;
        self.take_ends(pod, uid);
        let in_place: u64 = items(pod, &["status", "containerStatuses"])
            .filter_map(|status| status["restartCount"].as_u64())
            .sum();
        let view = PodView::of_json(pod);
        let pause = view.as_ref().and_then(PodView::back_off).map(pause);
        if in_place > self.in_place {
            self.restarts += in_place - self.in_place;
            // Its wait was told with the reason, or is told below.
            if self.backed_off != Some(self.in_place) && pause.is_none() {
                notices.push(restarted(self.ends.last()));
            }
            self.in_place = in_place;
        }
        if let Some(pause) = pause
            && self.backed_off != Some(in_place)
        {
            self.backed_off = Some(in_place);
            notices.push(backs_off(self.ends.last(), &pause));
        }
        let address = text(pod, &["metadata", "annotations", ADDRESS]);
        if !address.is_empty() && self.address != address {
            address.clone_into(&mut self.address);
            notices.push(Notice::new(Weight::Normal, "Address", format!("is at {address}")));
        }
        items(pod, &["status", "containerStatuses"])
            .chain(items(pod, &["status", "initContainerStatuses"]))
            .map(|status| text(status, &["state", "waiting", "reason"]))
            .find(|reason| !reason.is_empty())
            .unwrap_or_default()
            .clone_into(&mut self.waits_by);
        self.is_unplaced = view.as_ref().is_some_and(|view| {
            let why = view.unscheduled.as_ref();
            view.phase == Phase::Pending
                && why.is_some_and(|(reason, _)| &**reason == "Unschedulable")
        });
        let state = view.map_or_else(|| State::Waiting(String::new()), |view| state(&view, pod));
        let before = std::mem::replace(&mut self.state, state);
        if self.state.is_over() {
            self.memory = 0;
            self.cpu_millis = 0;
        }
        if let State::Waiting(why) = &self.state
            && !why.is_empty()
            && !says(&before, why)
        {
            notices.push(Notice::new(Weight::Warning, "Waiting", format!("waits: {why}")));
        }
        notices
    }

    fn take_ends(&mut self, pod: &Value, uid: &str) {
        let stopped = !pod["metadata"]["deletionTimestamp"].is_null();
        for list in ["initContainerStatuses", "containerStatuses"] {
            for status in items(pod, &["status", list]) {
                let restarts = status["restartCount"].as_u64().unwrap_or_default();
                let last = &status["lastState"]["terminated"];
                let now = &status["state"]["terminated"];
                // Of a container that waits for its next attempt the last run is the one that is counted.
                let waits = status["state"]["waiting"].is_object();
                let before = (last, restarts.saturating_sub(u64::from(!waits)), false);
                for (end, run, stopped) in [before, (now, restarts, stopped)] {
                    if end.is_object() {
                        self.note(Ended {
                            uid: uid.to_owned(),
                            container: text(status, &["name"]).to_owned(),
                            run,
                            code: end["exitCode"].as_i64().unwrap_or_default(),
                            reason: text(end, &["reason"]).to_owned(),
                            not_started: not_started(end),
                            at: time(&end["finishedAt"]),
                            stopped,
                        });
                    }
                }
            }
        }
    }
}

/// Why a program could not be started, in its node's words.
fn not_started(end: &Value) -> String {
    if text(end, &["reason"]) == START_ERROR {
        one_line(text(end, &["message"]))
    } else {
        String::new()
    }
}

/// Whether a state has said the same before, in other words around it or not.
fn says(before: &State, why: &str) -> bool {
    match before {
        State::Waiting(said) => {
            !said.is_empty() && (why.contains(said.as_str()) || said.contains(why))
        }
        _ => false,
    }
}

fn restarted(last: Option<&Ended>) -> Notice {
    let text = match last {
        Some(end) if !end.stopped && end.code != 0 => format!("restarts: {}", end.words()),
        _ => "starts again".to_owned(),
    };
    Notice::new(Weight::Warning, "Restarted", text)
}

fn backs_off(last: Option<&Ended>, pause: &str) -> Notice {
    let why = last.map_or_else(String::new, |end| format!(": {}", end.words()));
    let text = format!("failed{why}; starts again in {pause}");
    Notice::new(Weight::Warning, "BackOff", text)
}

fn state(view: &PodView, pod: &Value) -> State {
    match view.state() {
        PodState::Succeeded => State::Succeeded,
        PodState::Failed if view.deletion.is_some() => State::Stopped,
        PodState::Failed => {
            let containers = view.containers.iter().chain(view.init_steps());
            State::Failed(containers.filter_map(exit_code).max().unwrap_or(1))
        }
        // Its end has been told; when it starts again is told then.
        PodState::Restarting => State::Waiting(String::new()),
        PodState::Running => State::Running,
        PodState::Leaving => State::Stopping,
        PodState::Lost => State::Waiting("its node cannot be reached".to_owned()),
        PodState::Waiting => {
            let wait = waits_for(pod);
            // Its gang is being made.
            let passes = wait.passes() || wait.message.starts_with("waiting for ");
            let why = if wait.message.is_empty() { wait.reason } else { wait.message };
            State::Waiting(if passes { String::new() } else { why })
        }
    }
}

fn exit_code(container: &ContainerView) -> Option<i64> {
    match container.state {
        ContainerState::Terminated { exit_code, .. } => Some(exit_code),
        _ => None,
    }
}

/// How long a container waits for its next attempt, in the words of its kubelet.
fn pause(words: &str) -> String {
    let pause = words.strip_prefix("back-off ").and_then(|words| words.split(' ').next());
    pause.filter(|pause| !pause.is_empty()).unwrap_or("a while").to_owned()
}
