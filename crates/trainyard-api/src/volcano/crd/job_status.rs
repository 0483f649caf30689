//! The schema of a Volcano Job's `status`: what [`crate::volcano::VolcanoStatus`] writes.
//!
//! Must not validate more than types: a status that cannot be written helps nobody.

use serde_json::{Value, json};

use super::fields::{number, object, text, time};

/// The schema of a job's status.
pub(super) fn status() -> Value {
    object(
        "What has been observed. Written by the operator only.",
        &json!({
            "actedOn": {
                "type": "array",
                "description": "What holds of tasks or of the PodGroup and has been dealt with.",
                "items": {"type": "string"},
            },
            "conditions": conditions(),
            "controlledResources": {
                "type": "object",
                "description": "Plugins and claims that belong to the job.",
                "additionalProperties": {"type": "string"},
            },
            "failed": number("Pods that ended badly."),
            "lastCommand": text("The Command that was carried out last; never a second time."),
            "minAvailable": number("The minAvailable that counts."),
            "pending": number("Pods that wait."),
            "pods": pods(),
            "retiredGroup": text("UID of the PodGroup that a restart has given up."),
            "retryCount": number("How often the job was restarted."),
            "running": number("Pods that run."),
            "runningDuration": text("How long the job has run."),
            "state": state(),
            "succeeded": number("Pods that ended well."),
            "taskStatusCount": task_counts(),
            "terminating": number("Pods that are being deleted."),
            "timers": timers(),
            "unknown": number("Pods of which nothing is known."),
            "version": number("Grows each time that all pods of the job are ended."),
        }),
    )
}

fn state() -> Value {
    object(
        "How far the job is.",
        &json!({
            "lastTransitionTime": time("Since when."),
            "message": text("Why, for people."),
            "phase": text(
                "Pending, Running, Restarting, Aborting, Aborted, Completing, Completed, \
                 Terminating, Terminated or Failed.",
            ),
            "reason": text("Why, in one word."),
        }),
    )
}

fn conditions() -> Value {
    json!({
        "type": "array",
        "description": "Phases, in the order of their last visit.",
        "items": {
            "type": "object",
            "properties": {
                "lastTransitionTime": time("When it was entered."),
                "status": text("The phase."),
            },
        },
    })
}

fn task_counts() -> Value {
    json!({
        "type": "object",
        "description": "Pods by task and phase.",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "phase": {
                    "type": "object",
                    "description": "How many pods are in each phase.",
                    "additionalProperties": {"type": "integer", "format": "int32"},
                },
            },
        },
    })
}

fn pods() -> Value {
    json!({
        "type": "object",
        "description": "Pods that were there when this was written, by name: the evidence that \
            one has disappeared or was dealt with.",
        "additionalProperties": {
            "type": "object",
            "properties": {
                "phase": text("The phase in which the pod was last dealt with."),
                "uid": text("The identity of the pod."),
            },
        },
    })
}

fn timers() -> Value {
    json!({
        "type": "array",
        "description": "Actions that wait for their time.",
        "items": {
            "type": "object",
            "properties": {
                "action": text("The action."),
                "due": time("When it is due."),
                "event": text("What armed it."),
                "pod": text("The pod it is about."),
                "task": text("The task of that pod."),
                "uid": text("The identity of that pod."),
            },
        },
    })
}
