//! Specimens of what runs, and of what it is given.

use serde_json::json;

use super::specimen::Specimen;

/// Nobody's image: a program of the machine stands in for it where pods run.
const IMAGE: &str = "test";

pub(super) const KINDS: &[Specimen] = &[
    Specimen {
        kind: "TFJob",
        resource: "tfjobs",
        short: "tfjob",
        version: "kubeflow.org/v1",
        namespaced: true,
        columns: "NAME, STATE, AGE, RESTARTS*, UNAVAILABLE*, SINCE*, FAILURE*, MESSAGE*",
        field: ("tfjob.spec.runPolicy.backoffLimit", "<integer>"),
        described: &["Tf Replica Specs:", "Worker:", "Image:"],
        body: || {
            json!({"spec": {"tfReplicaSpecs": {"Worker": {
                "replicas": 1,
                "template": {"spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "tensorflow", "image": IMAGE, "command": ["sleep", "3600"],
                    }],
                }},
            }}}})
        },
    },
    Specimen {
        kind: "Pod",
        resource: "pods",
        short: "po",
        version: "v1",
        namespaced: true,
        columns: "NAME, READY, STATUS, RESTARTS, AGE, IP*, NODE*, NOMINATED NODE*, READINESS \
                  GATES*",
        field: ("pod.spec.containers.image", "<string>"),
        described: &["Containers:", "Image:", "QoS Class:", "Tolerations:"],
        body: || {
            json!({"spec": {
                "terminationGracePeriodSeconds": 1,
                "containers": [{"name": "main", "image": IMAGE, "command": ["sleep", "3600"]}],
            }})
        },
    },
    Specimen {
        kind: "Job",
        resource: "jobs",
        short: "job",
        version: "batch/v1",
        namespaced: true,
        columns: "NAME, STATUS, COMPLETIONS, DURATION, AGE, CONTAINERS*, IMAGES*, SELECTOR*",
        field: ("job.spec.backoffLimit", "<integer>"),
        described: &["Parallelism:", "Completions:", "Pods Statuses:"],
        body: || {
            json!({"spec": {"suspend": true, "template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": IMAGE, "command": ["true"]}],
            }}}})
        },
    },
    Specimen {
        kind: "Service",
        resource: "services",
        short: "svc",
        version: "v1",
        namespaced: true,
        columns: "NAME, TYPE, CLUSTER-IP, EXTERNAL-IP, PORT(S), AGE, SELECTOR*",
        field: ("service.spec.clusterIP", "<string>"),
        described: &["Selector:", "Type:", "ClusterIP", "2222/TCP", "Session Affinity:"],
        body: || {
            json!({"spec": {
                "selector": {"app": "matrix"},
                "ports": [{"name": "tfjob-port", "port": 2222}],
            }})
        },
    },
    Specimen {
        kind: "EndpointSlice",
        resource: "endpointslices",
        short: "endpointslice",
        version: "discovery.k8s.io/v1",
        namespaced: true,
        columns: "NAME, ADDRESSTYPE, PORTS, ENDPOINTS, AGE",
        field: ("endpointslice.addressType", "<string>"),
        described: &["AddressType:", "IPv4", "Endpoints:", "10.1.2.3"],
        body: || {
            json!({
                "addressType": "IPv4",
                "endpoints": [{"addresses": ["10.1.2.3"], "conditions": {"ready": true}}],
                "ports": [{"name": "", "port": 2222, "protocol": "TCP"}],
            })
        },
    },
    Specimen {
        kind: "ConfigMap",
        resource: "configmaps",
        short: "cm",
        version: "v1",
        namespaced: true,
        columns: "NAME, DATA, AGE",
        field: ("configmap.data", "<map[string]string>"),
        described: &["Data", "train.py:", "print(1)", "BinaryData"],
        body: || json!({"data": {"train.py": "print(1)\n"}}),
    },
    Specimen {
        kind: "Secret",
        resource: "secrets",
        short: "secret",
        version: "v1",
        namespaced: true,
        columns: "NAME, TYPE, DATA, AGE",
        field: ("secret.type", "<string>"),
        // Its content is not shown.
        described: &["Type:", "Opaque", "password:", "6 bytes"],
        body: || json!({"type": "Opaque", "data": {"password": "c2VjcmV0"}}),
    },
    Specimen {
        kind: "Event",
        resource: "events",
        short: "ev",
        version: "v1",
        namespaced: true,
        columns: "LAST SEEN, TYPE, REASON, OBJECT, SUBOBJECT*, SOURCE*, MESSAGE, FIRST SEEN*, \
                  COUNT*, NAME*",
        field: ("event.reason", "<string>"),
        described: &["Reason:", "Departed", "Message:"],
        body: || {
            json!({
                "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "engine"},
                "type": "Normal", "reason": "Departed", "message": "It has left the yard.",
                "source": {"component": "matrix"},
                "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:05Z",
                "count": 1,
            })
        },
    },
];
