//! The cells of pods, above all what became of them in one word.
//!
//! Must not know other kinds.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Shown;
use super::duration;
use super::read::{condition, condition_holds, has, is_going, list, number, text, text_or, yes};

/// What the containers of a pod tell.
struct Told {
    reason: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Told {
    /// Counts the restarts of one container.
    fn count(&mut self, status: &Value) {
        self.restarts += number(status, "/restartCount");
        self.last_restart = self.last_restart.max(last_end(status));
    }
}

/// When a container ended the time before.
fn last_end(status: &Value) -> Option<Timestamp> {
    duration::time(status.pointer("/lastState/terminated/finishedAt"))
}

pub(super) fn pod(shown: &Shown<'_>) -> Vec<Value> {
    let pod = shown.object;
    let told = told(pod);
    let ago = told.last_restart.filter(|_| told.restarts != 0);
    let restarts = match ago {
        Some(last) => {
            let ago = duration::human(shown.now.duration_since(last));
            format!("{} ({ago} ago)", told.restarts)
        }
        None => told.restarts.to_string(),
    };
    vec![
        json!(shown.name()),
        json!(format!("{}/{}", told.ready, told.total)),
        json!(told.reason),
        json!(restarts),
        json!(shown.age()),
        json!(text_or(pod, "/status/podIPs/0/ip", "<none>")),
        json!(text_or(pod, "/spec/nodeName", "<none>")),
        json!(text_or(pod, "/status/nominatedNodeName", "<none>")),
        json!(readiness_gates(pod)),
    ]
}

/// What the row of a pod that is done says of itself; null while it is not.
pub(super) fn completed(pod: &Value) -> Value {
    let (reason, message) = match text(pod, "/status/phase") {
        "Succeeded" => ("Succeeded", "The pod has completed successfully."),
        "Failed" => ("Failed", "The pod failed."),
        _ => return Value::Null,
    };
    json!([{"type": "Completed", "status": "True", "reason": reason, "message": message}])
}

fn told(pod: &Value) -> Told {
    let mut told = Told {
        reason: text_or(pod, "/status/reason", text(pod, "/status/phase")).to_owned(),
        ready: 0,
        total: list(pod, "/spec/containers").len(),
        restarts: 0,
        last_restart: None,
    };
    let gated = |condition: &&Value| {
        text(condition, "/type") == "PodScheduled"
            && text(condition, "/reason") == "SchedulingGated"
    };
    if list(pod, "/status/conditions").iter().any(|condition| gated(&condition)) {
        "SchedulingGated".clone_into(&mut told.reason);
    }
    if !initialising(pod, &mut told) || condition_holds(pod, "Initialized") {
        running(pod, &mut told);
    }
    let ended = matches!(text(pod, "/status/phase"), "Failed" | "Succeeded");
    if is_going(pod) && text(pod, "/status/reason") == "NodeLost" {
        "Unknown".clone_into(&mut told.reason);
    } else if is_going(pod) && !ended {
        "Terminating".clone_into(&mut told.reason);
    }
    told
}

/// Whether a container before the main ones goes on beside them (a sidecar).
fn goes_on(pod: &Value, name: &str) -> bool {
    list(pod, "/spec/initContainers")
        .iter()
        .rfind(|container| text(container, "/name") == name)
        .is_some_and(|container| text(container, "/restartPolicy") == "Always")
}

/// Looks at the containers that run first; whether the pod is still at them.
fn initialising(pod: &Value, told: &mut Told) -> bool {
    let first = list(pod, "/spec/initContainers");
    told.total += first.iter().filter(|one| text(one, "/restartPolicy") == "Always").count();
    let mut sidecars = (0, None);
    for (index, status) in list(pod, "/status/initContainerStatuses").iter().enumerate() {
        told.count(status);
        let goes_on = goes_on(pod, text(status, "/name"));
        if goes_on {
            sidecars.0 += number(status, "/restartCount");
            sidecars.1 = sidecars.1.max(last_end(status));
        }
        let terminated = status.pointer("/state/terminated").filter(|state| !state.is_null());
        if terminated.is_some_and(|state| number(state, "/exitCode") == 0) {
            continue;
        }
        if goes_on && yes(status, "/started") {
            told.ready += usize::from(yes(status, "/ready"));
            continue;
        }
        let waiting = text(status, "/state/waiting/reason");
        told.reason = match terminated {
            Some(state) => format!("Init:{}", why_ended(state)),
            None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
            None => format!("Init:{index}/{}", first.len()),
        };
        if condition_holds(pod, "Initialized") {
            (told.restarts, told.last_restart) = sidecars;
        }
        return true;
    }
    (told.restarts, told.last_restart) = sidecars;
    false
}

/// Why a container ended, in one word.
fn why_ended(state: &Value) -> String {
    match (text(state, "/reason"), number(state, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(state, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}

/// Looks at the main containers.
fn running(pod: &Value, told: &mut Told) {
    let mut some_run = false;
    let mut failure = None;
    for status in list(pod, "/status/containerStatuses").iter().rev() {
        told.count(status);
        let waiting = text(status, "/state/waiting/reason");
        if !waiting.is_empty() {
            waiting.clone_into(&mut told.reason);
        } else if has(status, "/state/terminated") {
            let state = &status["state"]["terminated"];
            told.reason = why_ended(state);
            if number(state, "/exitCode") != 0 {
                failure = Some(told.reason.clone());
            }
        } else if yes(status, "/ready") && has(status, "/state/running") {
            some_run = true;
            told.ready += 1;
        }
    }
    // A pod of which one container has completed still runs while another does.
    if told.reason == "Completed" {
        if some_run && condition_holds(pod, "Ready") {
            "Running".clone_into(&mut told.reason);
        } else if let Some(failure) = failure {
            told.reason = failure;
        } else if some_run {
            "NotReady".clone_into(&mut told.reason);
        }
    }
}

fn readiness_gates(pod: &Value) -> String {
    let gates = list(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let passed = gates.iter().filter(|gate| {
        condition(pod, text(gate, "/conditionType"))
            .is_some_and(|condition| text(condition, "/status") == "True")
    });
    format!("{}/{}", passed.count(), gates.len())
}
