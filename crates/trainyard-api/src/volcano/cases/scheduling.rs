//! Cases about PodGroups, Queues and Commands.

use serde_json::{Map, Value, json};

use super::Case;
use crate::volcano::kinds::{COMMAND, Kind, POD_GROUP, QUEUE};

fn case(kind: &Kind, name: &str, message: Option<&str>, fields: Value) -> Case {
    let mut object = json!({
        "apiVersion": kind.api_version(), "kind": kind.name, "metadata": {"name": "team-a"},
    });
    if let (Value::Object(object), Value::Object(fields)) = (&mut object, fields) {
        object.extend(fields);
    }
    let name = format!("{}: {name}", kind.name);
    Case { name, object, old: None, refused: message.map(str::to_owned) }
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = queues();
    cases.extend(shares());
    cases.extend(pod_groups());
    cases.extend(commands());
    cases
}

fn queue(name: &str, message: Option<&str>, spec: Value) -> Case {
    case(&QUEUE, name, message, Value::Object(Map::from_iter([("spec".to_owned(), spec)])))
}

fn queues() -> Vec<Case> {
    vec![
        case(&QUEUE, "no spec", None, json!({})),
        queue("nothing", None, json!({})),
        queue(
            "everything",
            None,
            json!({
                "weight": 4, "capability": {"cpu": 8, "nvidia.com/gpu": "2"},
                "deserved": {"cpu": "6"}, "guarantee": {"resource": {"cpu": "2500m"}},
                "reclaimable": false, "priority": 10, "parent": "root", "type": "team",
                "dequeueStrategy": "fifo",
                "affinity": {"nodeGroupAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": ["gpu"],
                }},
                "extendClusters": [{"name": "other", "weight": 1}],
            }),
        ),
        queue("a weight of nothing, which counts as 1", None, json!({"weight": 0})),
        queue(
            "a negative weight",
            Some("should be greater than or equal to 0"),
            json!({"weight": -1}),
        ),
        queue(
            "too much weight",
            Some("should be less than or equal to 65535"),
            json!({"weight": 65536}),
        ),
        queue(
            "a negative priority",
            Some("should be greater than or equal to 0"),
            json!({"priority": -1}),
        ),
        queue(
            "an unknown order",
            Some("Unsupported value: \"lifo\""),
            json!({"dequeueStrategy": "lifo"}),
        ),
        queue("an amount that is none", Some("should match"), json!({"capability": {"cpu": "a"}})),
        queue("its own parent", Some("cannot use itself as parent"), json!({"parent": "team-a"})),
    ]
}

fn shares() -> Vec<Case> {
    let gibi = "memory";
    vec![
        queue(
            "as much as it may have",
            None,
            json!({
                "capability": {"cpu": "2", gibi: "1Gi"},
                "deserved": {"cpu": "2000m", gibi: "1024Mi"},
                "guarantee": {"resource": {"cpu": 2, gibi: 1_073_741_824}},
            }),
        ),
        queue(
            "shares of different resources",
            None,
            json!({"capability": {"cpu": 2}, "deserved": {gibi: "8Gi"}}),
        ),
        queue(
            "deserved above capability",
            Some("deserved should less equal than capability"),
            json!({"capability": {"cpu": "2"}, "deserved": {"cpu": 3}}),
        ),
        queue(
            "deserved a little above capability",
            Some("deserved should less equal than capability"),
            json!({"capability": {"cpu": 2}, "deserved": {"cpu": "2001m"}}),
        ),
        queue(
            "a guarantee above what is deserved",
            Some("guarantee should less equal than deserved"),
            json!({"deserved": {gibi: "1Gi"}, "guarantee": {"resource": {gibi: "1025Mi"}}}),
        ),
        queue(
            "a guarantee above capability",
            Some("guarantee should less equal than capability"),
            json!({"capability": {"cpu": 1}, "guarantee": {"resource": {"cpu": 2}}}),
        ),
    ]
}

fn pod_groups() -> Vec<Case> {
    let group = |name: &str, message: Option<&str>, spec: Value| {
        case(&POD_GROUP, name, message, json!({"spec": spec}))
    };
    vec![
        group("nothing", None, json!({})),
        group(
            "everything",
            None,
            json!({
                "minMember": 3, "minTaskMember": {"ps": 1, "worker": 2}, "queue": "team-a",
                "priorityClassName": "high", "minResources": {"cpu": "3", "pods": 3},
                "networkTopology": {"mode": "soft", "highestTierName": "rack"},
                "subGroupPolicy": [{
                    "name": "worker", "labelSelector": {"matchLabels": {"a": "b"}},
                    "matchLabelKeys": ["volcano.sh/partition-id"],
                }],
            }),
        ),
        case(
            &POD_GROUP,
            "a status beside it",
            None,
            json!({
                "spec": {"minMember": 1},
                "status": {"phase": "Inqueue", "running": 1, "conditions": [{
                    "type": "Unschedulable", "status": "True", "transitionID": "1",
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "NotEnoughResources",
                    "message": "1/3 tasks in gang unschedulable",
                }]},
            }),
        ),
        group(
            "a negative minimum",
            Some("should be greater than or equal to 0"),
            json!({"minMember": -1}),
        ),
        group(
            "a negative minimum of a task",
            Some("should be greater than or equal to 0"),
            json!({"minTaskMember": {"ps": -1}}),
        ),
        group(
            "two network tiers",
            Some("must not specify 'highestTierAllowed' and 'highestTierName'"),
            json!({"networkTopology": {"highestTierAllowed": 2, "highestTierName": "rack"}}),
        ),
    ]
}

fn commands() -> Vec<Case> {
    let target = || {
        json!({
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "mnist",
            "uid": "5c1a", "controller": true, "blockOwnerDeletion": true,
        })
    };
    let mut nameless = target();
    super::remove(&mut nameless, "uid");
    vec![
        case(
            &COMMAND,
            "stop a job",
            None,
            json!({"action": "AbortJob", "target": target(), "reason": "a", "message": "b"}),
        ),
        case(
            &COMMAND,
            "an unknown action",
            Some("Unsupported value: \"Explode\""),
            json!({"action": "Explode", "target": target()}),
        ),
        case(&COMMAND, "no action", Some("for example AbortJob"), json!({"target": target()})),
        case(
            &COMMAND,
            "no target",
            Some("must name the object that is told"),
            json!({"action": "ResumeJob"}),
        ),
        case(
            &COMMAND,
            "a target without identity",
            Some("target.uid: Required value"),
            json!({"action": "ResumeJob", "target": nameless}),
        ),
    ]
}
