//! Parts that the schemas of all kinds are put together from.
//!
//! Must not know what a field means.

use serde_json::{Map, Value, json};

use crate::{crd::template, limits::RESOURCES_MAX};

/// Longest name of an object.
pub(super) const NAME_MAX: u32 = 253;
/// Longest name of a part of an object.
pub(super) const LABEL_MAX: u32 = 63;
/// Names of objects, as Kubernetes has them.
pub(super) const SUBDOMAIN: &str =
    "^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// Durations as Go writes them, `1h30m`.
const DURATION: &str = "^(0|([0-9]+(\\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$";

/// A whole object: what every object has, these properties and these rules.
pub(super) fn resource(description: &str, properties: &Value, rules: Value) -> Value {
    let mut all = json!({
        "apiVersion": {"type": "string", "description": "Group and version of this object."},
        "kind": {"type": "string", "description": "The kind of this object."},
        "metadata": {"type": "object", "properties": {"name": {"type": "string"}}},
    });
    if let (Value::Object(all), Value::Object(more)) = (&mut all, properties) {
        all.extend(more.clone());
    }
    let mut schema = object(description, &all);
    if rules.as_array().is_some_and(|rules| !rules.is_empty()) {
        schema["x-kubernetes-validations"] = rules;
    }
    schema
}

pub(super) fn object(description: &str, properties: &Value) -> Value {
    json!({"type": "object", "description": description, "properties": properties})
}

pub(super) fn list(description: &str, most: u32, items: &Value) -> Value {
    json!({"type": "array", "description": description, "maxItems": most, "items": items})
}

pub(super) fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

/// A text of at most so many characters, which rules may look at.
pub(super) fn short_text(description: &str, most: u32) -> Value {
    json!({"type": "string", "maxLength": most, "description": description})
}

pub(super) fn choice(values: &[&str], description: &str) -> Value {
    json!({"type": "string", "enum": values, "description": description})
}

pub(super) fn duration(description: &str) -> Value {
    json!({
        "type": "string", "maxLength": 64, "pattern": DURATION, "description": description,
    })
}

pub(super) fn time(description: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": description})
}

/// A number of the status: whatever it is, it can be written.
pub(super) fn number(description: &str) -> Value {
    json!({"type": "integer", "format": "int32", "description": description})
}

/// A number that is not below a limit.
pub(super) fn at_least(least: i32, description: &str) -> Value {
    json!({
        "type": "integer", "format": "int32", "minimum": least, "maximum": i32::MAX,
        "description": description,
    })
}

/// A number from 0 up to a limit.
pub(super) fn within(most: u32, description: &str) -> Value {
    json!({
        "type": "integer", "format": "int32", "minimum": 0, "maximum": most,
        "description": description,
    })
}

/// Amounts by resource.
pub(super) fn amounts(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "maxProperties": RESOURCES_MAX,
        "additionalProperties": template::quantity(),
    })
}

/// How far apart in the network pods may be.
pub(super) fn network_topology() -> Value {
    let mut topology = object(
        "How far apart in the network the pods may be.",
        &json!({
            "highestTierAllowed": at_least(0, "The widest tier that the pods may span."),
            "highestTierName": text("The same by the tier's name; instead of the number."),
            "mode": {
                "type": "string",
                "enum": ["hard", "soft"],
                "default": "hard",
                "description": "hard: it must be kept. soft: it is kept if it can be.",
            },
        }),
    );
    topology["x-kubernetes-validations"] = json!([{
        "rule": "!(has(self.highestTierAllowed) && has(self.highestTierName))",
        "message": "must not specify 'highestTierAllowed' and 'highestTierName' in \
            networkTopology simultaneously; keep one",
    }]);
    topology
}

/// Adds a description to a schema that has none.
pub(super) fn described(mut schema: Value, description: &str) -> Value {
    if let Value::Object(schema) = &mut schema {
        let schema: &mut Map<String, Value> = schema;
        schema.insert("description".to_owned(), json!(description));
    }
    schema
}
