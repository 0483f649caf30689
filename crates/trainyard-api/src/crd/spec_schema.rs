//! The schema of `spec`, with descriptions for `kubectl explain`.
//!
//! Owns which fields a job has and what they may hold. What a type, an enumeration or a minimum
//! can say is said here; the rest stands in [`super::rules`]. Must not know the operator.

use serde_json::{Map, Value, json};

use super::{rules, template};
use crate::{
    limits::{PODS_MAX, RESOURCES_MAX},
    names,
};

/// How much of a pod template a version declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Every field; unknown ones are refused or dropped.
    Complete,
    /// What the rules look at; the rest passes.
    Open,
}

impl Depth {
    fn template(self) -> Value {
        match self {
            Self::Complete => template::complete(),
            Self::Open => template::open(),
        }
    }

    /// An object of our own; in the old versions it takes unknown fields as well.
    fn object(self, description: &str, properties: &Value) -> Value {
        let mut object =
            json!({"type": "object", "description": description, "properties": properties});
        if self == Self::Open {
            object["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }
        object
    }
}

fn seconds(description: &str) -> Value {
    json!({"type": "integer", "format": "int64", "minimum": 0, "description": description})
}

fn count(description: &str) -> Value {
    json!({
        "type": "integer", "format": "int32", "minimum": 0, "maximum": i32::MAX,
        "description": description,
    })
}

fn choice(values: &[&str], description: &str) -> Value {
    json!({"type": "string", "enum": values, "description": description})
}

/// The schema of a job's specification.
pub(super) fn spec(depth: Depth) -> Value {
    let mut fields = json!({
        "enableDynamicWorker": {
            "type": "boolean",
            "description": "Workers may come and go while the job runs: each one is told only \
                about itself and the parameter servers, and a worker that fails does not fail \
                the job.",
        },
        "runPolicy": run_policy(depth),
        "successPolicy": choice(
            &["AllWorkers", "ChiefWorker", ""],
            "When a job without Chief or Master has succeeded. Left out: when worker 0 has. \
                AllWorkers: when all workers have.",
        ),
        "tensorBoard": tensorboard(depth),
        "tfReplicaSpecs": {
            "type": "object",
            "description": "The processes of the job by replica type (required). Types, in any \
                case: Chief or Master (drives the training, at most one), Worker (trains), PS \
                (parameter server), Evaluator (computes metrics beside the training). Every \
                replica gets a pod and a service named <job>-<type>-<index>, and TF_CONFIG \
                describes the whole cluster to each of them.",
            "maxProperties": rules::MAX_REPLICA_TYPES,
            "additionalProperties": replica(depth),
            "x-kubernetes-validations": rules::replica_types(),
        },
    });
    if let Some(fields) = fields.as_object_mut() {
        for (name, mut schema) in lifted_fields() {
            let description = format!(
                "The older place of runPolicy.{name}, which wins when both are given. {}",
                schema["description"].as_str().unwrap_or_default()
            );
            schema["description"] = json!(description);
            fields.insert(name, schema);
        }
    }
    let mut spec = depth.object("What the job asks for.", &fields);
    spec["x-kubernetes-validations"] = rules::spec();
    spec
}

/// Fields that stood directly under `spec` before there was a run policy.
fn lifted_fields() -> Map<String, Value> {
    let fields = json!({
        "activeDeadlineSeconds": seconds(
            "Seconds after the start at which a job that has not ended is stopped and fails.",
        ),
        "backoffLimit": count("Restarts after which the job fails. Left out: no limit."),
        "cleanPodPolicy": choice(
            &["Running", "All", "None", ""],
            "Which pods are deleted when the job has ended: those that still run, all of them, \
                or none. Left out: the operator's default, Running.",
        ),
        "ttlSecondsAfterFinished": count(
            "Seconds after its end at which the job itself is deleted. Left out: it is kept.",
        ),
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

fn run_policy(depth: Depth) -> Value {
    let mut fields = json!({
        "managedBy": choice(
            &[names::MANAGED_BY_US, names::MANAGED_BY_MULTIKUEUE],
            "Who looks after the job. Left out: this operator. Cannot be changed.",
        ),
        "nodeLossTolerationSeconds": count(
            "Seconds that a pod stays bound to a node that cannot be reached or is not ready, \
                before it is taken away: the tolerations of node.kubernetes.io/unreachable and \
                node.kubernetes.io/not-ready on pods whose template does not set them. Left out: \
                as the cluster has it, usually 300. A change holds for pods that are made after it.",
        ),
        "restartScope": choice(
            &["Replica", "Job", ""],
            "What is restarted when a replica is. Replica (the default): that replica alone. \
                Job: all replicas together, as synchronous training needs it.",
        ),
        "schedulingPolicy": scheduling_policy(depth),
        "startTimeoutSeconds": seconds(
            "Seconds after which a job whose pods do not all run fails, naming the pod that \
                waits and what it waits for. Left out: no limit.",
        ),
        "suspend": {
            "type": "boolean",
            "default": false,
            "description": "Nothing runs while this is true: pods are deleted, and created again \
                when it becomes false.",
        },
    });
    if let Some(fields) = fields.as_object_mut() {
        fields.extend(lifted_fields());
    }
    let mut policy = depth.object("How the job is run and cleaned up.", &fields);
    policy["default"] = json!({});
    policy["x-kubernetes-validations"] = rules::run_policy();
    policy
}

fn scheduling_policy(depth: Depth) -> Value {
    depth.object(
        "How the pods of the job are scheduled together, where the operator has a gang scheduler.",
        &json!({
            "minAvailable": {
                "type": "integer",
                "format": "int32",
                "minimum": 1,
                "maximum": i32::MAX,
                "description": "Pods that must fit at once before any of them starts. Left out: \
                    all; with dynamic workers one worker and everybody else.",
            },
            "minResources": {
                "type": "object",
                "description": "Resources that must be free before any pod starts. Left out: \
                    what the pods that must fit at once ask for.",
                "maxProperties": RESOURCES_MAX,
                "additionalProperties": template::quantity(),
            },
            "priorityClass": {
                "type": "string",
                "description": "Priority class of the group of pods. Left out: the one that all \
                    pod templates name.",
            },
            "queue": {
                "type": "string",
                "maxLength": 253,
                "description": "Queue that the job waits in. Left out: default. Cannot be changed.",
                "x-kubernetes-validations": rules::queue(),
            },
            "scheduleTimeoutSeconds": {
                "type": "integer",
                "format": "int32",
                "minimum": 0,
                "maximum": i32::MAX,
                "description": "Seconds that the group may wait for room; only the scheduler \
                    plugins know such a limit.",
            },
        }),
    )
}

fn replica(depth: Depth) -> Value {
    let mut pod_template = depth.template();
    pod_template["description"] = json!(
        "The pod of each replica, as in any Kubernetes pod template. The container that trains is \
         the one with name tensorflow. A restartPolicy in here counts when the replica has none."
    );
    let mut replica = depth.object(
        "One replica type: how many, what each runs, and what happens when one ends.",
        &json!({
            "replicas": {
                "type": "integer",
                "format": "int32",
                "minimum": 0,
                "maximum": PODS_MAX,
                "description": format!(
                    "How many replicas of this type; of all types together at most {PODS_MAX}. \
                        Left out: 1."
                ),
            },
            "restartPolicy": choice(
                &template::RESTART_POLICIES,
                "What happens when a replica ends. Never: it stays ended. OnFailure: it runs \
                    again unless its exit code was 0. Always: it runs again. ExitCode: it runs \
                    again when the exit code says that this may help (130, 137, 138, 143 and \
                    others above 128; not 1 to 128 nor 139). Left out: as the template says, else \
                    Never.",
            ),
            "template": pod_template,
        }),
    );
    replica["x-kubernetes-validations"] = rules::replica();
    replica
}

fn tensorboard(depth: Depth) -> Value {
    let open = || {
        json!({"type": "array", "items": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        }})
    };
    let (mut volumes, mut mounts) = match depth {
        Depth::Complete => (template::volumes(), template::volume_mounts()),
        Depth::Open => (open(), open()),
    };
    volumes["description"] = json!(
        "Volumes of the TensorBoard pod. Left out together with volumeMounts: those of the \
         replica that decides the job."
    );
    mounts["description"] = json!("Where the TensorBoard container mounts them.");
    let mut board = depth.object(
        "A TensorBoard beside the training: one more pod and service, <job>-tensorboard-0. It \
         stays after the training until the job is deleted.",
        &json!({
            "image": {
                "type": "string",
                "description": "Image with TensorBoard. Left out: that of the replica that \
                    decides the job.",
            },
            "logDir": {
                "type": "string",
                "description": "Directory that holds the summaries (required).",
            },
            "serviceType": choice(
                &["ClusterIP", "NodePort", "LoadBalancer", ""],
                "Type of the service. Left out: ClusterIP.",
            ),
            "volumeMounts": mounts,
            "volumes": volumes,
        }),
    );
    board["x-kubernetes-validations"] = rules::tensorboard();
    board
}
