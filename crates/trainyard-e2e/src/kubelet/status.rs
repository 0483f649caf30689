//! Pod statuses as a kubelet or a scheduler writes them. Pure.

use jiff::{Timestamp, ToSpan as _, Unit};
use serde_json::{Value, json};

use crate::seen::text;

/// Now, in the precision of the API.
pub(super) fn now() -> String {
    let now = Timestamp::now();
    now.round(Unit::Second).unwrap_or(now).to_string()
}

fn conditions(ready: bool) -> Value {
    let word = if ready { "True" } else { "False" };
    json!([
        {"type": "PodScheduled", "status": "True", "lastTransitionTime": now()},
        {"type": "Initialized", "status": "True", "lastTransitionTime": now()},
        {"type": "ContainersReady", "status": word, "lastTransitionTime": now()},
        {"type": "Ready", "status": word, "lastTransitionTime": now()},
    ])
}

/// One status per container of the pod; `state` is asked for each by name.
fn containers(pod: &Value, restarts: i64, ready: bool, state: impl Fn(&str) -> Value) -> Value {
    let specs = pod["spec"]["containers"].as_array().map_or(&[][..], Vec::as_slice);
    specs
        .iter()
        .map(|spec| {
            let name = text(&spec["name"]);
            json!({
                "name": name, "image": spec["image"], "imageID": "played", "ready": ready,
                "restartCount": if name == "tensorflow" { restarts } else { 0 },
                "state": state(name),
            })
        })
        .collect()
}

/// All containers run.
pub(super) fn running(pod: &Value, restarts: i64) -> Value {
    json!({"status": {
        "phase": "Running", "startTime": now(), "conditions": conditions(true),
        "containerStatuses":
            containers(pod, restarts, true, |_| json!({"running": {"startedAt": now()}})),
    }})
}

/// How a container ended.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// Its exit code.
    pub code: i64,
    /// The kubelet's word; `Completed` or `Error` when empty.
    pub reason: &'a str,
    /// Its termination message.
    pub message: &'a str,
}

impl End<'_> {
    fn state(self, container: &str, at: &str) -> Value {
        let code = if container == "tensorflow" { self.code } else { 0 };
        let reason = match (self.reason, code) {
            (_, 0) => "Completed",
            ("", _) => "Error",
            (reason, _) => reason,
        };
        let message = if code == self.code { self.message } else { "" };
        json!({"terminated": {
            "exitCode": code, "reason": reason, "message": message,
            "startedAt": at, "finishedAt": at,
        }})
    }
}

/// Now, and not before the deletion of the pod was asked for: a server in paused time is ahead of the
/// clock on the wall.
fn now_for(pod: &Value) -> String {
    let metadata = &pod["metadata"];
    let due = text(&metadata["deletionTimestamp"]).parse::<Timestamp>().ok();
    let grace = metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
    let asked = due.and_then(|due| due.checked_sub(grace.seconds()).ok());
    asked.map_or_else(now, |asked| asked.to_string().max(now()))
}

/// The conditions that a kubelet writes, and those of the pod that others wrote.
fn unready(pod: &Value) -> Value {
    let mut all = conditions(false);
    let own = ["PodScheduled", "Initialized", "ContainersReady", "Ready"];
    let before = pod["status"]["conditions"].as_array().into_iter().flatten();
    let foreign = before.filter(|condition| !own.contains(&text(&condition["type"])));
    if let Value::Array(all) = &mut all {
        all.extend(foreign.cloned());
    }
    all
}

/// All containers have terminated, `tensorflow` as told. The phase is still the one that was
/// published before.
pub(super) fn terminated(pod: &Value, end: End<'_>) -> Value {
    let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap_or(0);
    let at = now_for(pod);
    json!({"status": {
        "phase": "Running",
        "conditions": unready(pod),
        "containerStatuses": containers(pod, restarts, false, |name| end.state(name, &at)),
    }})
}

/// The final phase of a pod whose containers have terminated. As a kubelet's, the patch carries the UID, so
/// that a successor of the same name refuses it.
pub(super) fn final_phase(pod: &Value, end: End<'_>) -> Value {
    json!({
        "metadata": {"uid": pod["metadata"]["uid"]},
        "status": {"phase": if end.code == 0 { "Succeeded" } else { "Failed" }},
    })
}

/// The containers are being created.
pub(super) fn creating(pod: &Value) -> Value {
    waiting(pod, "ContainerCreating", "")
}

/// `tensorflow` has ended as told; the others run on.
pub(super) fn main_ended(pod: &Value, end: End<'_>) -> Value {
    let at = now_for(pod);
    let state = |name: &str| match name {
        "tensorflow" => end.state(name, &at),
        _ => json!({"running": {"startedAt": now()}}),
    };
    json!({"status": {
        "phase": "Running", "conditions": conditions(false),
        "containerStatuses": containers(pod, 0, false, state),
    }})
}

/// The first init container has ended as told, and with it the pod.
pub(super) fn init_failed(pod: &Value, code: i64, message: &str) -> Value {
    let first = &pod["spec"]["initContainers"][0];
    let waiting = json!({"waiting": {"reason": "PodInitializing"}});
    json!({"status": {
        "phase": "Failed", "startTime": now(), "conditions": conditions(false),
        "initContainerStatuses": [{
            "name": first["name"], "image": first["image"], "imageID": "played",
            "ready": false, "restartCount": 0,
            "state": {"terminated": {
                "exitCode": code, "reason": "Error", "message": message,
                "startedAt": now(), "finishedAt": now(),
            }},
        }],
        "containerStatuses": containers(pod, 0, false, |_| waiting.clone()),
    }})
}

/// `tensorflow` has ended and its kubelet waits before the next start.
pub(super) fn crash_loop(pod: &Value, restarts: i64) -> Value {
    let waiting = json!({"waiting": {
        "reason": "CrashLoopBackOff",
        "message": "back-off 10s restarting failed container=tensorflow",
    }});
    json!({"status": {
        "phase": "Running", "startTime": now(), "conditions": conditions(false),
        "containerStatuses": containers(pod, restarts, false, |_| waiting.clone()),
    }})
}

/// The containers wait for something.
pub(super) fn waiting(pod: &Value, reason: &str, message: &str) -> Value {
    let waiting = json!({"waiting": {"reason": reason, "message": message}});
    json!({"status": {
        "phase": "Pending", "startTime": now(), "conditions": conditions(false),
        "containerStatuses": containers(pod, 0, false, |_| waiting.clone()),
    }})
}

/// No node will take the pod.
pub(super) fn unschedulable(message: &str) -> Value {
    json!({"status": {"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": message, "lastTransitionTime": now(),
    }]}})
}

/// The kubelet has thrown the pod out; it says nothing of its containers.
pub(super) fn evicted(pod: &Value, marked: bool) -> Value {
    let mut status = json!({"status": {
        "phase": "Failed", "reason": "Evicted",
        "message": "The node was low on resource: memory.",
        "containerStatuses": null,
    }});
    if marked {
        status["status"]["conditions"] =
            disrupted(pod, "TerminationByKubelet")["status"]["conditions"].take();
    }
    status
}

/// The conditions of the pod plus the mark that the cluster ends it.
pub(super) fn disrupted(pod: &Value, reason: &str) -> Value {
    let mut conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.retain(|condition| condition["type"] != "DisruptionTarget");
    conditions.push(json!({
        "type": "DisruptionTarget", "status": "True", "reason": reason,
        "message": "the cluster takes this pod away", "lastTransitionTime": now(),
    }));
    json!({"status": {"conditions": conditions}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_training_container_fails() {
        let pod = json!({"spec": {"containers": [
            {"name": "tensorflow", "image": "a"}, {"name": "proxy", "image": "b"}]}});
        let end = End { code: 3, reason: "", message: "boom" };
        let status = terminated(&pod, end);
        assert_eq!(status["status"]["phase"], "Running");
        assert_eq!(final_phase(&pod, end)["status"]["phase"], "Failed");
        let ends = &status["status"]["containerStatuses"];
        assert_eq!(ends[0]["state"]["terminated"]["exitCode"], 3);
        assert_eq!(ends[0]["state"]["terminated"]["reason"], "Error");
        assert_eq!(ends[0]["state"]["terminated"]["message"], "boom");
        assert_eq!(ends[1]["state"]["terminated"]["reason"], "Completed");
    }

    #[test]
    fn the_end_of_a_pod_keeps_the_mark_of_others() {
        let pod = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let marked = disrupted(&pod, "EvictionByEvictionAPI");
        let ended = terminated(&marked, End { code: 1, reason: "", message: "" });
        let conditions = ended["status"]["conditions"].as_array().unwrap();
        let kinds: Vec<_> = conditions.iter().map(|condition| text(&condition["type"])).collect();
        let wanted =
            ["PodScheduled", "Initialized", "ContainersReady", "Ready", "DisruptionTarget"];
        assert_eq!(kinds, wanted);
    }

    #[test]
    fn a_mark_keeps_the_other_conditions() {
        let pod = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        let patch = disrupted(&pod, "PreemptionByScheduler");
        assert_eq!(patch["status"]["conditions"][0]["type"], "Ready");
        assert_eq!(patch["status"]["conditions"][1]["reason"], "PreemptionByScheduler");
    }
}
