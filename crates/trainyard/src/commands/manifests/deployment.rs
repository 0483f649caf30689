//! The pods of the operator and the scheduler: how they run, are probed and found.
//!
//! They pass the Pod Security Standard *restricted*.

use serde_json::{Value, json};

use super::{NAME, labels_of, scheduler};

const METRICS_PORT: u16 = 8080;
const PROBES_PORT: u16 = 8081;
/// Any account but root; the number that images without a user database have agreed on.
const USER: u32 = 65532;

/// A program that runs in a pod.
pub(super) struct Program {
    name: &'static str,
    component: &'static str,
    /// Labels by which people and tools know it, beside ours.
    known_by: &'static [(&'static str, &'static str)],
}

pub(super) const OPERATOR: Program = Program {
    name: NAME,
    component: "operator",
    known_by: &[("name", "tf-job-operator"), ("control-plane", "kubeflow-training-operator")],
};

pub(super) const SCHEDULER: Program =
    Program { name: scheduler::NAME, component: "scheduler", known_by: &[] };

/// Labels by which the Deployment and the Service find the pods. A Deployment's cannot change.
fn selector(program: &Program) -> Value {
    json!({
        "app.kubernetes.io/name": "trainyard",
        "app.kubernetes.io/component": program.component,
    })
}

fn pod_labels(program: &Program) -> Value {
    let mut labels = labels_of(program.component);
    for (name, value) in program.known_by {
        labels[*name] = (*value).into();
    }
    labels
}

pub(super) fn service(namespace: &str, program: &Program) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {
            "name": program.name, "namespace": namespace, "labels": labels_of(program.component),
            "annotations": {
                "prometheus.io/scrape": "true",
                "prometheus.io/path": "/metrics",
                "prometheus.io/port": METRICS_PORT.to_string(),
            },
        },
        "spec": {
            "selector": selector(program),
            "ports": [{"name": "monitoring-port", "port": METRICS_PORT, "targetPort": "metrics"}],
        },
    })
}

pub(super) fn deployment(
    namespace: &str,
    image: &str,
    program: &Program,
    args: &[String],
) -> Value {
    let Program { name, component, .. } = program;
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels_of(component)},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": selector(program)},
            "template": {
                "metadata": {
                    "labels": pod_labels(program),
                    "annotations": {"sidecar.istio.io/inject": "false"},
                },
                "spec": {
                    "serviceAccountName": name,
                    "terminationGracePeriodSeconds": 30,
                    "securityContext": {
                        "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [container(image, component, args)],
                },
            },
        },
    })
}

fn container(image: &str, name: &str, args: &[String]) -> Value {
    json!({
        "name": name,
        "image": image,
        "args": args,
        "env": [
            own_field("MY_POD_NAMESPACE", "metadata.namespace"),
            own_field("MY_POD_NAME", "metadata.name"),
        ],
        "ports": [
            {"name": "metrics", "containerPort": METRICS_PORT},
            {"name": "probes", "containerPort": PROBES_PORT},
        ],
        "livenessProbe": probe("/healthz", 15, 20),
        // It is ready in a second, and an upgrade waits for it.
        "readinessProbe": probe("/readyz", 1, 2),
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
    // A server adds the version. Without it, a later server-side apply would set the reference to another value than
    // it has, and whoever installed by plain apply owns that.
    json!({"name": variable, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}})
}

fn probe(path: &str, first_after_s: u32, every_s: u32) -> Value {
    json!({
        "httpGet": {"path": path, "port": "probes"},
        "initialDelaySeconds": first_after_s,
        "periodSeconds": every_s,
        "timeoutSeconds": 3,
    })
}
