//! The schema of a Volcano Job's `spec`, with descriptions for `kubectl explain`.
//!
//! Owns which fields a job has and what they may hold. What a type, an enumeration or a minimum
//! can say is said here; the rest stands in the rules. Must not know the operator.

use serde_json::{Value, json};

use super::{
    fields::{
        LABEL_MAX, NAME_MAX, SUBDOMAIN, at_least, choice, described, duration, list,
        network_topology, object, short_text, text, within,
    },
    job_rules,
    policy::policies,
    task_rules,
};
use crate::{
    crd::template,
    limits::{ARGUMENTS_MAX, PODS_MAX, TASKS_MAX, VOLUMES_MAX},
    volcano::names,
};

/// The schema of a job's specification.
pub(super) fn spec() -> Value {
    let mut retries = at_least(
        0,
        "The number of restarts that makes the job fail: with 3 it runs three times at most.",
    );
    retries["default"] = json!(names::MAX_RETRY);
    let mut spec = object(
        "What the job asks for.",
        &json!({
            "maxRetry": retries,
            "minAvailable": within(
                PODS_MAX,
                "How many pods start all together, and how many make the job a running one. Left \
                    out or 0: all that its tasks need.",
            ),
            "minSuccess": at_least(1, "So many pods that end well complete the job."),
            "networkTopology": network_topology(),
            "plugins": plugins(),
            "policies": policies(
                "What is done when something happens. Policies of a task go before these.",
            ),
            "priorityClassName": text(
                "The priority class of the job, and of pods whose template names none.",
            ),
            "queue": queue(),
            "runningEstimate": duration("How long it may run, for people; nothing depends on it."),
            "schedulerName": short_text(
                "The scheduler of pods whose template names none. Left out: volcano.", LABEL_MAX,
            ),
            "tasks": tasks(),
            "ttlSecondsAfterFinished": at_least(
                0,
                "Seconds after its end at which the job itself is deleted. Left out: it is kept.",
            ),
            "volumes": volumes(),
        }),
    );
    spec["x-kubernetes-validations"] = job_rules::spec();
    spec
}

fn plugins() -> Value {
    json!({
        "type": "object",
        "description": "What the pods are given, and its arguments. env: VC_TASK_INDEX. svc: a \
            name for each pod, and all names in /etc/volcano. tensorflow: TF_CONFIG.",
        "maxProperties": task_rules::MAX_PLUGINS,
        "additionalProperties": {
            "type": "array",
            "nullable": true,
            "maxItems": ARGUMENTS_MAX,
            "items": {"type": "string"},
        },
        "x-kubernetes-validations": task_rules::plugins(),
    })
}

fn queue() -> Value {
    let mut queue = short_text("The queue that the job waits in. Left out: default.", NAME_MAX);
    queue["default"] = json!(names::QUEUE);
    queue["pattern"] = json!(format!("^$|{SUBDOMAIN}"));
    queue["x-kubernetes-validations"] = json!([{
        "rule": "self != 'root'",
        "message": "can not submit job to root queue; name one of its children",
    }]);
    queue
}

fn tasks() -> Value {
    let mut tasks = list(
        "The tasks of the job, each of them pods of one template (required). The pods are named \
         <job>-<task>-<index>.",
        TASKS_MAX,
        &task(),
    );
    tasks["x-kubernetes-validations"] = task_rules::tasks();
    tasks
}

fn task() -> Value {
    let mut name = short_text("Its name. Left out: default<index>.", LABEL_MAX);
    name["pattern"] = json!("^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
    let mut pod = template::complete();
    pod["properties"]["spec"]["properties"]["restartPolicy"]["enum"] =
        json!(["Always", "OnFailure", "Never", ""]);
    let mut task = object(
        "Pods of one template.",
        &json!({
            "dependsOn": object(
                "Tasks that must be ready before pods of this one are made.",
                &json!({
                    "iteration": choice(
                        &["any", "all", ""],
                        "Whether one of them is enough. Left out: all.",
                    ),
                    "name": list(
                        "Their names.",
                        TASKS_MAX,
                        &json!({"type": "string", "maxLength": LABEL_MAX}),
                    ),
                }),
            ),
            "maxRetry": at_least(
                -1,
                "Restarts of its containers that make the task a failed one. Left out or 0: 3. \
                    -1: none.",
            ),
            "minAvailable": within(
                PODS_MAX, "How many of its pods the job needs. Left out: all.",
            ),
            "name": name,
            "partitionPolicy": partition_policy(),
            "policies": policies("What is done when something happens to this task."),
            "replicas": within(
                PODS_MAX, &format!("How many pods; of all tasks together at most {PODS_MAX}."),
            ),
            "template": described(
                pod, "The pod of each replica, as in any Kubernetes pod template.",
            ),
            "topologyPolicy": choice(
                &["none", "best-effort", "restricted", "single-numa-node", ""],
                "How the pods use the memory of their nodes; passed on to them. All but none need \
                    whole CPUs.",
            ),
        }),
    );
    task["x-kubernetes-validations"] = task_rules::task();
    task
}

/// Declared so that it can be refused by name.
fn partition_policy() -> Value {
    json!({
        "type": "object",
        "description": "Equal parts of a task. Not supported yet: split the task into several.",
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

fn volumes() -> Value {
    let mut volume = object(
        "A claim and where it is mounted: one of the two kinds of claim must be given.",
        &json!({
            "mountPath": short_text(
                "Where it is mounted in every container (required).", task_rules::MAX_MOUNT_PATH,
            ),
            "volumeClaim": described(
                template::volume_claim(), "A claim that is made for the job.",
            ),
            "volumeClaimName": short_text("A claim that is there.", NAME_MAX),
        }),
    );
    volume["x-kubernetes-validations"] = task_rules::volume();
    let mut volumes = list("Volumes of all pods of the job.", VOLUMES_MAX, &volume);
    volumes["x-kubernetes-validations"] = task_rules::volumes();
    volumes
}
