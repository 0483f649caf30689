//! A pod's status as JSON, ready for a patch.

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Map, Value, json};

use super::{
    ContainerRecord, Phase, PodRecord, State, Terminated,
    conditions::{Condition, conditions},
    phase,
    record::ID_SCHEME,
};

/// The status of a pod, and its phase. Condition times are carried over from `before`, the status
/// written last, where a condition has not changed.
pub(crate) fn status(
    pod: &Pod,
    record: &PodRecord,
    before: &Value,
    now: Timestamp,
) -> (Value, Phase) {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    let phase = phase(record, policy.unwrap_or("Always"));
    let mut status = Map::new();
    status.insert("phase".into(), phase.name().into());
    let conditions = conditions(record, phase);
    let conditions = conditions.iter().map(|condition| timed(condition, before, now));
    status.insert("conditions".into(), conditions.collect());
    let (reason, message) = match &record.verdict {
        Some(verdict) => (json!(verdict.reason), json!(verdict.message)),
        None => (Value::Null, Value::Null),
    };
    status.insert("reason".into(), reason);
    status.insert("message".into(), message);
    status.insert("startTime".into(), seconds(record.started.unwrap_or(now)));
    if let Some(host) = record.host_ip {
        status.insert("hostIP".into(), json!(host));
        status.insert("hostIPs".into(), json!([{"ip": host}]));
    }
    if let Some(ip) = record.pod_ip {
        status.insert("podIP".into(), json!(ip));
        status.insert("podIPs".into(), json!([{"ip": ip}]));
    }
    if !record.init.is_empty() {
        let init = record.init.iter().map(init_container);
        status.insert("initContainerStatuses".into(), init.collect());
    }
    let containers = record.containers.iter().map(container).collect();
    status.insert("containerStatuses".into(), containers);
    (Value::Object(status), phase)
}

fn timed(condition: &Condition, before: &Value, now: Timestamp) -> Value {
    let holds = if condition.holds { "True" } else { "False" };
    let before = before["conditions"].as_array().into_iter().flatten();
    let since = before
        .filter(|known| known["type"] == condition.kind && known["status"] == holds)
        .find_map(|known| known["lastTransitionTime"].as_str())
        .map_or_else(|| seconds(now), Value::from);
    let mut value = json!({
        "type": condition.kind, "status": holds, "lastProbeTime": null, "lastTransitionTime": since,
    });
    // An absent field of a merged list keeps its old value: say that there is none.
    let text = |text: &str| if text.is_empty() { Value::Null } else { Value::from(text) };
    value["reason"] = text(condition.reason);
    value["message"] = text(&condition.message);
    value
}

fn init_container(record: &ContainerRecord) -> Value {
    let mut value = container(record);
    // An init container is ready when it has done its work.
    let done = matches!(&record.state, State::Terminated(run) if run.exit_code == 0);
    value["ready"] = json!(done);
    value
}

fn container(record: &ContainerRecord) -> Value {
    let mut value = json!({
        "name": record.name,
        "image": record.image,
        "imageID": record.image_id,
        "restartCount": record.restarts,
        "ready": record.ready,
        "started": record.started,
        "state": state(&record.state),
        "lastState": record.last.as_ref().map_or_else(|| json!({}), terminated),
    });
    if !record.id.is_empty() {
        value["containerID"] = json!(format!("{ID_SCHEME}{}", record.id));
    }
    value
}

fn state(state: &State) -> Value {
    match state {
        State::Waiting { reason, message } if message.is_empty() => {
            json!({"waiting": {"reason": reason}})
        }
        State::Waiting { reason, message } => {
            json!({"waiting": {"reason": reason, "message": message}})
        }
        State::Running(since) => json!({"running": {"startedAt": seconds(*since)}}),
        State::Terminated(run) => terminated(run),
    }
}

fn terminated(run: &Terminated) -> Value {
    let mut value = json!({
        "exitCode": run.exit_code,
        "reason": run.reason,
        "startedAt": run.started.map_or(Value::Null, seconds),
        "finishedAt": seconds(run.finished),
    });
    if !run.id.is_empty() {
        value["containerID"] = json!(format!("{ID_SCHEME}{}", run.id));
    }
    if let Some(signal) = run.signal {
        value["signal"] = json!(signal);
    }
    if !run.message.is_empty() {
        value["message"] = json!(run.message);
    }
    json!({"terminated": value})
}

/// Kubernetes keeps these times in whole seconds, cut off: nothing lies in the future.
fn seconds(time: Timestamp) -> Value {
    let whole = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Trunc);
    Value::from(time.round(whole).unwrap_or(time).to_string())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::PodStatus;

    use super::*;

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "p"},
            "spec": {"containers": [{"name": "a", "image": "i"}], "restartPolicy": "Never"},
        }))
        .unwrap()
    }

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn it_reads_back_as_a_status() {
        let (mut record, _) = PodRecord::take_over(&pod(), at("2026-01-01T00:00:00Z"));
        record.containers[0].id = "c-0".into();
        record.containers[0].move_to(State::Terminated(Terminated {
            exit_code: 137,
            signal: Some(9),
            reason: "OOMKilled".into(),
            message: "words".into(),
            started: Some(at("2026-01-01T00:00:01Z")),
            finished: at("2026-01-01T00:00:02Z"),
            id: "c-0".into(),
        }));
        let (value, phase) = status(&pod(), &record, &Value::Null, at("2026-01-01T00:00:03Z"));
        assert_eq!(phase, Phase::Failed);
        let status: PodStatus = serde_json::from_value(value).unwrap();
        let container = &status.container_statuses.unwrap()[0];
        let run = container.state.as_ref().unwrap().terminated.as_ref().unwrap();
        assert_eq!((run.exit_code, run.signal), (137, Some(9)));
        assert_eq!(run.container_id.as_deref(), Some("trainyard://c-0"));
        let kinds: Vec<_> = status.conditions.unwrap().into_iter().map(|c| c.type_).collect();
        assert_eq!(kinds, ["PodScheduled", "Initialized", "Ready", "ContainersReady"]);
    }

    #[test]
    fn no_time_lies_in_the_future() {
        assert_eq!(seconds(at("2026-01-01T00:00:01.999Z")), "2026-01-01T00:00:01Z");
    }

    #[test]
    fn a_condition_that_stays_keeps_its_time() {
        let (mut record, _) = PodRecord::take_over(&pod(), at("2026-01-01T00:00:00Z"));
        let (first, _) = status(&pod(), &record, &Value::Null, at("2026-01-01T00:00:01Z"));
        record.containers[0].move_to(State::Running(at("2026-01-01T00:00:02Z")));
        record.containers[0].ready = true;
        let (second, phase) = status(&pod(), &record, &first, at("2026-01-01T00:00:05Z"));
        assert_eq!(phase, Phase::Running);
        assert_eq!(second["conditions"][0]["lastTransitionTime"], "2026-01-01T00:00:01Z");
        assert_eq!(second["conditions"][2]["status"], "True");
        assert_eq!(second["conditions"][2]["lastTransitionTime"], "2026-01-01T00:00:05Z");
        assert_eq!(second["conditions"][2]["reason"], Value::Null);
    }
}
