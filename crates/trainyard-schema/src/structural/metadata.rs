//! The metadata that every object has, which no schema of a custom resource describes.
//!
//! Owns which fields there are and of what types; what they may say is for the server.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::{
    node::{Marks, Node, Type},
    read,
};

static SHAPE: LazyLock<Node> =
    LazyLock::new(|| read::custom(&schema()).unwrap_or_else(|_| Node::open()));

/// What `metadata` looks like.
pub(super) fn shape() -> &'static Node {
    &SHAPE
}

static VISIBLE: LazyLock<Node> = LazyLock::new(|| {
    let names = json!({"type": "object", "properties": {
        "name": {"type": "string"}, "generateName": {"type": "string"},
    }});
    read::custom(&names).unwrap_or_else(|_| Node::open())
});

static TEXT: LazyLock<Node> = LazyLock::new(|| Node { kind: Some(Type::Text), ..Node::default() });

/// What rules see of it.
pub(super) fn visible() -> &'static Node {
    &VISIBLE
}

/// A plain text, as `kind` is.
pub(super) fn text() -> &'static Node {
    &TEXT
}

/// Finds the resources that stand inside a value.
pub(super) fn embedded<'a>(
    node: &Node,
    path: &str,
    value: &'a Value,
    found: &mut Vec<(String, &'a Value)>,
) {
    if !node.has(Marks::HAS_EMBEDDED) {
        return;
    }
    match value {
        Value::Object(fields) => {
            if node.has(Marks::EMBEDDED) {
                found.push((path.to_owned(), value));
            }
            for (name, field) in fields {
                let Some(child) = node.child(name) else { continue };
                let below = match (node.property(name), path) {
                    (Some(_), "") => name.clone(),
                    (Some(_), path) => format!("{path}.{name}"),
                    (None, path) => format!("{path}[{name}]"),
                };
                embedded(child, &below, field, found);
            }
        }
        Value::Array(items) => {
            let Some(element) = node.items() else { return };
            for (index, item) in items.iter().enumerate() {
                embedded(element, &format!("{path}[{index}]"), item, found);
            }
        }
        _ => {}
    }
}

fn schema() -> Value {
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "object", "additionalProperties": {"type": "string"}});
    let number = || json!({"type": "integer", "format": "int64"});
    let time = || json!({"type": "string", "nullable": true});
    json!({"type": "object", "properties": {
        "name": text(), "generateName": text(), "namespace": text(), "selfLink": text(),
        "uid": text(), "resourceVersion": text(), "generation": number(),
        "creationTimestamp": time(), "deletionTimestamp": time(),
        "deletionGracePeriodSeconds": number(),
        "labels": texts(), "annotations": texts(),
        "finalizers": {"type": "array", "items": text()},
        "ownerReferences": {"type": "array", "items": {"type": "object", "properties": {
            "apiVersion": text(), "kind": text(), "name": text(), "uid": text(),
            "controller": {"type": "boolean"}, "blockOwnerDeletion": {"type": "boolean"},
        }}},
        "managedFields": {"type": "array", "items": {"type": "object", "properties": {
            "manager": text(), "operation": text(), "apiVersion": text(), "time": time(),
            "fieldsType": text(), "subresource": text(),
            "fieldsV1": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    }})
}
