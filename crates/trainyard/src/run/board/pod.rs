//! What a pod's status says about its replica.

use serde_json::Value;

use super::replica::{Ended, Replica, State};
use super::{Notice, Weight};
use crate::commands::job_logs::pods::waits_for;
use crate::present::time::time;
use crate::present::{items, text};
use crate::run::names;

/// Where the node says how a pod is reached from this machine.
const ADDRESS: &str = "trainyard.dev/address";
/// Waiting that is a matter of moments.
const PASSING: [&str; 4] = ["Pending", "ContainerCreating", "PodInitializing", ""];

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
        if in_place > self.in_place {
            self.restarts += in_place - self.in_place;
            self.in_place = in_place;
            notices.push(restarted(self.ends.last()));
        }
        let address = text(pod, &["metadata", "annotations", ADDRESS]);
        if !address.is_empty() && self.address != address {
            address.clone_into(&mut self.address);
            notices.push(Notice::new(Weight::Normal, "Address", format!("is at {address}")));
        }
        let before = std::mem::replace(&mut self.state, state(pod));
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
                let before = (last, restarts.saturating_sub(1), false);
                for (end, run, stopped) in [before, (now, restarts, stopped)] {
                    if end.is_object() {
                        self.note(Ended {
                            uid: uid.to_owned(),
                            container: text(status, &["name"]).to_owned(),
                            run,
                            code: end["exitCode"].as_i64().unwrap_or_default(),
                            reason: text(end, &["reason"]).to_owned(),
                            at: time(&end["finishedAt"]),
                            stopped,
                        });
                    }
                }
            }
        }
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
        Some(end) if !end.stopped && end.code != 0 => {
            let words = names::meaning(end.code, &end.reason);
            format!("restarts: {}, {words}", names::code(end.code, &end.reason))
        }
        _ => "starts again".to_owned(),
    };
    Notice::new(Weight::Warning, "Restarted", text)
}

fn state(pod: &Value) -> State {
    let is_leaving = !pod["metadata"]["deletionTimestamp"].is_null();
    match text(pod, &["status", "phase"]) {
        "Succeeded" => State::Succeeded,
        "Failed" if is_leaving => State::Stopped,
        "Failed" => {
            let codes = items(pod, &["status", "containerStatuses"])
                .chain(items(pod, &["status", "initContainerStatuses"]))
                .filter_map(|status| status["state"]["terminated"]["exitCode"].as_i64());
            State::Failed(codes.max().unwrap_or(1))
        }
        "Running" => match crashing(pod) {
            Some(why) => State::Waiting(why),
            None => State::Running,
        },
        _ => {
            let message = items(pod, &["status", "containerStatuses"])
                .map(|status| text(status, &["state", "waiting", "message"]))
                .find(|message| !message.is_empty());
            let reason = waits_for(pod);
            // Its gang is being made.
            let passes = PASSING.contains(&reason.as_str()) || reason.starts_with("waiting for ");
            let why = message.filter(|_| !passes).map_or(reason, str::to_owned);
            State::Waiting(if passes { String::new() } else { why })
        }
    }
}

/// Whether its main container waits for its next attempt.
fn crashing(pod: &Value) -> Option<String> {
    items(pod, &["status", "containerStatuses"]).find_map(|status| {
        let waiting = &status["state"]["waiting"];
        let reason = text(waiting, &["reason"]);
        (reason == "CrashLoopBackOff").then(|| text(waiting, &["message"]).to_owned())
    })
}
