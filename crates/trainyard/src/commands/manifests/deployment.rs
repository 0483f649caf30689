//! The operator's pod: how it runs, is probed and found.
//!
//! It passes the Pod Security Standard *restricted*.

use serde_json::{Value, json};

use super::{NAME, labels};

const METRICS_PORT: u16 = 8080;
const PROBES_PORT: u16 = 8081;
/// Any account but root; the number that images without a user database have agreed on.
const USER: u32 = 65532;

/// Labels by which the Deployment and the Service find the pods. A Deployment's cannot change.
fn selector() -> Value {
    json!({"app.kubernetes.io/name": "trainyard", "app.kubernetes.io/component": "operator"})
}

/// The labels of the pods: ours, and those by which people and tools know a TFJob operator.
fn pod_labels() -> Value {
    let mut labels = labels();
    labels["name"] = "tf-job-operator".into();
    labels["control-plane"] = "kubeflow-training-operator".into();
    labels
}

pub(super) fn service(namespace: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": NAME, "namespace": namespace, "labels": labels(),
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/path": "/metrics",
                "prometheus.io/port": METRICS_PORT.to_string(),
            },
        },
        "spec": {
            "selector": selector(),
            "ports": [{"name": "monitoring-port", "port": METRICS_PORT, "targetPort": "metrics"}],
        },
    })
}

pub(super) fn deployment(namespace: &str, image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": namespace, "labels": labels()},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": selector()},
            "template": {
                "metadata": {
                    "labels": pod_labels(),
                    "annotations": {"sidecar.istio.io/inject": "false"},
                },
                "spec": {
                    "serviceAccountName": NAME,
                    "terminationGracePeriodSeconds": 30,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container(image)],
                },
            },
        },
    })
}

fn container(image: &str) -> Value {
    json!({
        "name": "operator",
        "image": image,
        "args": ["operator", "--leader-elect"],
        "env": [
            own_field("MY_POD_NAMESPACE", "metadata.namespace"),
            own_field("MY_POD_NAME", "metadata.name"),
        ],
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "probes", "containerPort": PROBES_PORT},
        ],
        "livenessProbe": probe("/healthz", 15, 20),
        "readinessProbe": probe("/readyz", 1, 10),
        // The caches hold a few hundred bytes per pod of a job: the limit is for ten thousands.
        "resources": {
            "requests": {"cpu": "100m", "memory": "64Mi"},
            "limits": {"cpu": "2", "memory": "512Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        },
    })
}

fn own_field(variable: &str, path: &str) -> Value {
    json!({"name": variable, "valueFrom": {"fieldRef": {"fieldPath": path}}})
}

fn probe(path: &str, first_after_s: u32, every_s: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": "probes"},
        "initialDelaySeconds": first_after_s,
        "periodSeconds": every_s,
        "timeoutSeconds": 3,
    })
}
