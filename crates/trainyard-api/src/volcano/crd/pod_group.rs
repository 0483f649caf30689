//! The schema of PodGroup.
//!
//! Owns its fields. Must not know how it is scheduled.

use serde_json::{Value, json};

use super::fields::{
    NAME_MAX, amounts, at_least, described, list, network_topology, number, object, resource,
    short_text, text, time,
};
use crate::{crd::template, limits::GROUP_TASKS_MAX, volcano::names};

/// The schema of a PodGroup.
pub(super) fn schema() -> Value {
    resource(
        "Pods that are scheduled together: so many at once, or none.",
        &json!({"spec": spec(), "status": status()}),
        json!([]),
    )
}

fn spec() -> Value {
    let mut queue = short_text("The queue that it waits in. Left out: default.", NAME_MAX);
    queue["default"] = json!(names::QUEUE);
    object(
        "What the group needs.",
        &json!({
            "minMember": at_least(0, "How many pods start at once. Left out: each by itself."),
            "minResources": amounts("What must be free before its pods are looked at."),
            "minTaskMember": {
                "type": "object",
                "description": "How many pods of each task must be among those that start.",
                "maxProperties": GROUP_TASKS_MAX,
                "additionalProperties": {
                    "type": "integer", "format": "int32", "minimum": 0, "maximum": i32::MAX,
                },
            },
            "networkTopology": network_topology(),
            "priorityClassName": text("The priority class of the group."),
            "queue": queue,
            "subGroupPolicy": list(
                "Parts of the group that belong closer together.",
                100,
                &sub_group(),
            ),
        }),
    )
}

fn sub_group() -> Value {
    let mut size = at_least(1, "How many pods a part has.");
    size["default"] = json!(1);
    let mut least = at_least(0, "How many parts must start.");
    least["default"] = json!(0);
    object(
        "One way of dividing the group.",
        &json!({
            "labelSelector": described(
                template::label_selector(), "Which pods of the group it divides.",
            ),
            "matchLabelKeys": list(
                "Labels by whose values pods belong to one part.", 100, &json!({"type": "string"}),
            ),
            "minSubGroups": least,
            "name": text("Its name."),
            "networkTopology": network_topology(),
            "subGroupSize": size,
        }),
    )
}

fn status() -> Value {
    object(
        "How far it is. Written by the scheduler only.",
        &json!({
            "conditions": {
                "type": "array",
                "maxItems": 100,
                "description": "Whether the group is Scheduled or Unschedulable, and why.",
                "items": {
                    "type": "object",
                    "properties": {
                        "lastTransitionTime": time("When it last changed."),
                        "message": text("Why, for people."),
                        "reason": text("Why, in one word."),
                        "status": text("True, False or Unknown."),
                        "transitionID": text("The pass of the scheduler that wrote it."),
                        "type": text("Unschedulable or Scheduled."),
                    },
                },
            },
            "failed": number("Pods that ended badly."),
            "phase": text("Pending, Inqueue, Running, Unknown or Completed."),
            "running": number("Pods that run."),
            "succeeded": number("Pods that ended well."),
        }),
    )
}
