//! The words of kubelets and of the control plane, row by row.

use serde_json::{Value, json};
use trainyard_schema::refusal;

use super::*;

fn pod(spec: &Value, status: &Value) -> PodView {
    let pod = json!({"metadata": {"name": "p", "uid": "u"}, "spec": spec, "status": status});
    serde_json::from_value(pod).unwrap()
}

fn by(status: &Value) -> EndedBy {
    let pod = pod(&json!({"restartPolicy": "Never"}), status);
    ended_by(&pod, Decisive::Training)
}

fn ended(name: &str, code: i64, reason: &str) -> Value {
    json!({"name": name, "state": {"terminated": {"exitCode": code, "reason": reason}}})
}

const MARK: [(&str, &str); 2] = [("type", "DisruptionTarget"), ("status", "True")];

#[test]
fn by_the_reason_of_the_pod() {
    use EndedBy::{Cluster, Deadline, Limit, Program};
    let rows = [
        ("", "", Program),
        (
            "DeadlineExceeded",
            "Pod was active on the node longer than the specified deadline",
            Deadline,
        ),
        ("Evicted", "The node was low on resource: memory. ", Cluster),
        ("Evicted", "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\". ", Limit),
        (
            "Evicted",
            "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. ",
            Limit,
        ),
        (
            "Evicted",
            "Container tensorflow exceeded its local ephemeral storage limit \"1Gi\". ",
            Limit,
        ),
        ("Preempting", "Preempted in order to admit critical pod", Cluster),
        ("NodeLost", "Node which was running pod is unresponsive", Cluster),
        ("Terminated", "Pod was terminated in response to imminent node shutdown.", Cluster),
        ("Shutdown", "Pod was terminated in response to imminent node shutdown.", Cluster),
        ("NodeShutdown", "Pod was rejected as the node is shutting down.", Cluster),
        ("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu", Cluster),
        ("OutOfmemory", "", Cluster),
        ("OutOfpods", "", Cluster),
        ("OutOfephemeral-storage", "", Cluster),
        ("OutOfnvidia.com/gpu", "", Cluster),
        // What the pod asks for is not to be had, here or elsewhere.
        ("PodOSNotSupported", "", Program),
        ("SysctlForbidden", "", Program),
        ("UnsupportedPod", "", Program),
        ("SomethingNew", "", Program),
    ];
    let refused = refusal::REASONS.map(|reason| (reason, "Pod was rejected: …", Cluster));
    for (reason, message, expected) in rows.into_iter().chain(refused) {
        let status = json!({"phase": "Failed", "reason": reason, "message": message});
        assert_eq!(by(&status), expected, "{reason}: {message}");
        // The exit code is the program's answer to a signal then.
        let mut answered = status;
        answered["containerStatuses"] = json!([ended("tensorflow", 143, "Error")]);
        assert_eq!(by(&answered), expected, "{reason}: {message}, answered");
    }
}

#[test]
fn by_the_container_that_nobody_saw_end() {
    use EndedBy::{Cluster, Program};
    let rows = [
        (137, "ContainerStatusUnknown", Cluster),
        (255, "Unknown", Cluster),
        (255, "Error", Program),
        (137, "Error", Program),
        (137, "OOMKilled", Program),
        (143, "Error", Program),
        (1, "Error", Program),
    ];
    for (code, reason, expected) in rows {
        let status = json!({"phase": "Failed", "containerStatuses": [ended("c", code, reason)]});
        assert_eq!(by(&status), expected, "{code} {reason}");
    }
    // One that was lost while it fetched the data.
    let fetching = json!({"phase": "Failed",
        "initContainerStatuses": [ended("fetch", 255, "Unknown")],
        "containerStatuses": [{"name": "tensorflow", "state": {"waiting": {}}}]});
    assert_eq!(by(&fetching), Cluster);
}

#[test]
fn a_mark_says_that_it_was_the_cluster() {
    let mark: serde_json::Map<String, Value> =
        MARK.iter().map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let marked = |reason: &str| {
        by(&json!({"phase": "Failed", "reason": reason, "conditions": [mark],
            "containerStatuses": [ended("tensorflow", 1, "Error")]}))
    };
    assert_eq!(marked(""), EndedBy::Cluster);
    assert_eq!(marked("Evicted"), EndedBy::Cluster);
    assert_eq!(
        marked("DeadlineExceeded"),
        EndedBy::Deadline,
        "before anybody came to take it away"
    );
}

#[test]
fn the_container_that_trains_tells_and_a_sidecar_never_does() {
    let spec = json!({"restartPolicy": "Never",
        "initContainers": [{"name": "proxy", "restartPolicy": "Always"}, {"name": "fetch"}]});
    let name = |containers: &[Value]| {
        let status = json!({"phase": "Failed", "containerStatuses": containers,
            "initContainerStatuses": [ended("proxy", 143, "Error"), ended("fetch", 0, "Completed")]});
        culprit(&pod(&spec, &status), Decisive::Training)
            .map(|container| container.name.to_string())
    };
    let main = |code: i64| ended("tensorflow", code, "");
    assert_eq!(name(&[ended("a", 1, ""), main(0)]).as_deref(), Some("tensorflow"));
    assert_eq!(name(&[ended("a", 0, ""), ended("b", 1, "")]).as_deref(), Some("b"));
    assert_eq!(name(&[]).as_deref(), Some("fetch"));
}

#[test]
fn who_ended_it_stays_open_for_a_while_after_the_last_end() {
    let at = |second: i64| format!("2026-01-01T12:00:0{second}Z");
    let ends = |phase: &str, finished: [Option<i64>; 2]| {
        let [a, b] = finished.map(|second| second.map(at));
        let status = json!({"phase": phase, "containerStatuses": [
            {"name": "tensorflow", "state": {"terminated": {"exitCode": 1, "finishedAt": a}}},
            {"name": "proxy", "state": {"terminated": {"exitCode": 1, "finishedAt": b}}},
        ]});
        open_until(&pod(&json!({"restartPolicy": "Never"}), &status), 5_000)
            .map(|until| until.to_string())
    };
    assert_eq!(ends("Running", [Some(1), Some(3)]), Some(at(8)));
    assert_eq!(ends("Running", [Some(1), None]), Some(at(6)));
    assert_eq!(ends("Running", [None, None]), None, "nobody knows since when");
    assert_eq!(ends("Failed", [Some(1), Some(3)]), None);
    assert_eq!(ends("Succeeded", [Some(1), Some(3)]), None);
}

#[test]
fn beside_a_container_that_runs_only_the_one_that_trains_ends_its_pod() {
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "tensorflow", "state":
            {"terminated": {"exitCode": 1, "finishedAt": "2026-01-01T00:00:00Z"}}},
        {"name": "proxy", "state": {"running": {}}}]});
    let judged = |policy: &str, whose: Decisive, second: i64| {
        let pod = pod(&json!({"restartPolicy": policy}), &status);
        let now = "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap();
        let now = now + SignedDuration::from_secs(second);
        (has_ended(&pod, whose), unclear_until(&pod, whose, now, 5_000).is_some())
    };
    assert_eq!(judged("Never", Decisive::Training, 1), (true, true));
    assert_eq!(judged("Never", Decisive::Training, 5), (true, false));
    assert_eq!(judged("OnFailure", Decisive::Training, 1), (false, false));
    assert_eq!(judged("Never", Decisive::All, 1), (false, false));
}

#[test]
fn where_all_are_alike_only_one_that_ended_badly_tells() {
    let name = |whose: Decisive, containers: &[Value]| {
        let status = json!({"phase": "Failed", "containerStatuses": containers});
        let pod = pod(&json!({"restartPolicy": "Never"}), &status);
        culprit(&pod, whose).map(|container| container.name.to_string())
    };
    let both = [ended("tensorflow", 0, ""), ended("b", 1, "")];
    assert_eq!(name(Decisive::All, &both).as_deref(), Some("b"));
    assert_eq!(name(Decisive::Training, &both).as_deref(), Some("tensorflow"));
    let well = [ended("a", 0, "")];
    assert_eq!(name(Decisive::All, &well), None);
    assert_eq!(name(Decisive::Training, &well).as_deref(), Some("a"));
}

#[test]
fn a_node_that_starts_anew_restarts_in_place_what_it_has_lost() {
    let restarted = |name: &str, reason: &str, code: i64| {
        json!({"name": name, "restartCount": 1, "state": {"running": {}},
            "lastState": {"terminated": {"exitCode": code, "reason": reason}}})
    };
    let lost = |containers: &[Value]| {
        let status = json!({"phase": "Running", "containerStatuses": containers});
        was_lost_in_place(&pod(&json!({"restartPolicy": "OnFailure"}), &status))
    };
    let by_runtime = restarted("tensorflow", "Unknown", 255);
    let by_kubelet = restarted("proxy", "ContainerStatusUnknown", 137);
    assert!(lost(&[by_runtime.clone(), by_kubelet]));
    assert!(!lost(&[by_runtime.clone(), restarted("proxy", "Error", 1)]));
    assert!(lost(&[by_runtime, json!({"name": "proxy", "state": {"running": {}}})]));
    assert!(!lost(&[json!({"name": "tensorflow", "state": {"running": {}}})]));
}
