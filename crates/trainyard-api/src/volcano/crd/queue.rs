//! The schema of Queue and its rules.
//!
//! Owns its fields. What depends on other queues, on annotations or on deletion no rule can say:
//! the scheduler reports it. Must not know how a queue is served.

use serde_json::{Value, json};

use super::fields::{
    NAME_MAX, amounts, at_least, choice, described, list, number, object, resource, short_text,
    text,
};
use crate::crd::template;

/// Most resources in the lists that rules go through. An amount may be a number or a text, and the
/// API server estimates the cost of a rule from the longest text that a request can hold.
const MAX_RESOURCES: u32 = 15;

/// The schema of a Queue.
pub(super) fn schema() -> Value {
    resource(
        "A share of the cluster, in which jobs wait.",
        &json!({"spec": spec(), "status": status()}),
        json!([{
            "rule": "!has(self.spec) || !has(self.spec.parent) \
                || self.spec.parent != self.metadata.name",
            "fieldPath": ".spec.parent",
            "message": "a queue cannot use itself as parent; name another one or leave it out",
        }]),
    )
}

fn spec() -> Value {
    let mut spec = object("What the queue may have.", &fields());
    spec["default"] = json!({});
    spec["x-kubernetes-validations"] = json!([
        within("deserved", "deserved", "capability", "capability"),
        within("guarantee.resource", "guarantee", "deserved", "deserved"),
        within("guarantee.resource", "guarantee", "capability", "capability"),
    ]);
    spec
}

fn fields() -> Value {
    let mut weight =
        at_least(0, "Its share beside the other queues that want something; 0 counts as 1.");
    weight["default"] = json!(1);
    weight["maximum"] = json!(65535);
    json!({
        "affinity": affinity(),
        "capability": amounts("The most that its jobs may hold. Left out: no limit."),
        "dequeueStrategy": choice(
            &["fifo", "traverse"],
            "Whether a job that does not fit lets those behind it pass. traverse (the default): \
                it does. fifo: it does not.",
        ),
        "deserved": bounded("What it gets back when others hold it."),
        "extendClusters": list(
            "Other clusters; stored and not used.", 100,
            &json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
        ),
        "guarantee": object(
            "What is kept free for it.",
            &json!({"resource": bounded("How much of each resource.")}),
        ),
        "parent": short_text("The queue it is a part of. Left out: root.", NAME_MAX),
        "priority": at_least(0, "Higher ones are served first."),
        "reclaimable": {
            "type": "boolean",
            "default": true,
            "description": "Whether others may take back what it holds beyond its share.",
        },
        "type": text("What kind of queue it is; stored and not used."),
        "weight": weight,
    })
}

fn bounded(description: &str) -> Value {
    let mut amounts = amounts(description);
    amounts["maxProperties"] = json!(MAX_RESOURCES);
    amounts["additionalProperties"] = amount();
    amounts
}

fn amount() -> Value {
    let mut amount = template::quantity();
    amount["maxLength"] = json!(64);
    amount
}

/// Groups of nodes that it may use, or may not.
fn affinity() -> Value {
    let group = |description: &str| {
        let names = |description: &str| list(description, 1000, &json!({"type": "string"}));
        object(
            description,
            &json!({
                "preferredDuringSchedulingIgnoredDuringExecution":
                    names("Groups that are preferred."),
                "requiredDuringSchedulingIgnoredDuringExecution":
                    names("Groups that are required."),
            }),
        )
    };
    object(
        "Which groups of nodes it may use.",
        &json!({
            "nodeGroupAffinity": group("Groups of nodes that it may use."),
            "nodeGroupAntiAffinity": group("Groups of nodes that it may not use."),
        }),
    )
}

/// Says that no amount of one list is above the same resource's in another.
fn within(less: &str, less_name: &str, more: &str, more_name: &str) -> Value {
    let given = |path: &str| match path.split_once('.') {
        Some((outer, _)) => format!("has(self.{outer}) && has(self.{path})"),
        None => format!("has(self.{path})"),
    };
    let amount = |path: &str| {
        format!(
            "(type(self.{path}[k]) == int ? double(self.{path}[k]) \
             : quantity(self.{path}[k]).asApproximateFloat())"
        )
    };
    let fits = format!("{} <= {}", amount(less), amount(more));
    json!({
        "rule": format!(
            "!({} && {}) || self.{less}.all(k, !(k in self.{more}) || {fits})",
            given(less), given(more),
        ),
        "fieldPath": format!(".{less_name}"),
        "message": format!(
            "{less_name} should less equal than {more_name} for each resource; \
             lower the one or raise the other"
        ),
    })
}

fn status() -> Value {
    let amounts = |description| {
        let mut amounts = described(amounts(""), description);
        // It is written whatever there is in the cluster.
        if let Some(amounts) = amounts.as_object_mut() {
            amounts.remove("maxProperties");
        }
        amounts
    };
    object(
        "What is in the queue. Written by the scheduler only.",
        &json!({
            "allocated": amounts("What its jobs hold."),
            "completed": number("Groups that are done."),
            "inqueue": number("Groups whose pods may be made."),
            "pending": number("Groups that wait."),
            "reservation": object(
                "What is set aside for it.",
                &json!({
                    "nodes": {
                        "type": "array",
                        "description": "Nodes.",
                        "items": {"type": "string"},
                    },
                    "resource": amounts("How much of each resource."),
                }),
            ),
            "running": number("Groups that run."),
            "state": choice(
                &["Open", "Closed", "Closing", "Unknown", ""],
                "Open queues take jobs. Closing: none any more, but there still are some.",
            ),
            "unknown": number("Groups of which nothing is known."),
        }),
    )
}
