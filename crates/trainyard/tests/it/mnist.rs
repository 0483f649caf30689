//! A TFJob `mnist` of four workers in the namespace `team`, its pods and events, as answers of a server.

use serde_json::{Value, json};

use crate::server::Route;

pub(crate) const JOB: &str = "/apis/kubeflow.org/v1/namespaces/team/tfjobs/mnist";
pub(crate) const PODS: &str = "/api/v1/namespaces/team/pods";
pub(crate) const EVENTS: &str = "/api/v1/namespaces/team/events";

/// The job with this many workers and this status.
pub(crate) fn job(workers: u32, status: &Value) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
        "metadata": {"name": "mnist", "namespace": "team", "uid": "u",
            "creationTimestamp": "2025-12-31T00:00:00Z"},
        "spec": {"runPolicy": {"cleanPodPolicy": "All"},
                 "tfReplicaSpecs": {"Worker": {"replicas": workers}}},
        "status": status,
    })
}

/// A status with one condition.
pub(crate) fn condition(kind: &str) -> Value {
    json!({"conditions": [{"type": kind, "status": "True"}]})
}

pub(crate) fn pod(index: u32, uid: &str, spec: &Value, status: &Value) -> Value {
    let mut spec = spec.clone();
    spec["containers"] = json!([{"name": "tensorflow"}]);
    json!({
        "metadata": {"name": format!("mnist-worker-{index}"), "namespace": "team", "uid": uid,
            "ownerReferences": [{"uid": "u"}], "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"training.kubeflow.org/job-name": "mnist",
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/replica-index": index.to_string()}},
        "spec": spec, "status": status,
    })
}

/// A pod that runs on node `b`.
pub(crate) fn runs(index: u32, uid: &str) -> Value {
    let status = json!({"phase": "Running", "containerStatuses": [
        {"name": "tensorflow", "restartCount": 0, "state": {"running": {}}}]});
    pod(index, uid, &json!({"nodeName": "b"}), &status)
}

/// A pod that waits for a node.
pub(crate) fn waits(index: u32, uid: &str) -> Value {
    let status = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
        "status": "False", "message": "0/3 nodes are available:\n3 Insufficient cpu."}]});
    pod(index, uid, &json!({}), &status)
}

/// A list of objects.
pub(crate) fn list(items: &[Value]) -> Value {
    json!({"kind": "List", "items": items})
}

/// An event about an object.
pub(crate) fn event(reason: &str, message: &str, about: &Value) -> Value {
    json!({"type": "Warning", "reason": reason, "message": message,
        "lastTimestamp": "2026-01-01T00:00:00Z", "involvedObject": about})
}

/// Events of a worker and of another job.
pub(crate) fn events() -> Route {
    let pod = json!({"kind": "Pod", "name": "mnist-worker-3"});
    let other = json!({"kind": "TFJob", "name": "digits"});
    let all = [
        event("FailedScheduling", "no\nroom", &pod),
        event("TFJobSucceeded", "all is done", &other),
    ];
    Route::new(EVENTS, 200, list(&all))
}
