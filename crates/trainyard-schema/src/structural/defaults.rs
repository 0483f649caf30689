//! Defaults of a schema, and nulls that count as left out.
//!
//! Owns both walks. The order matters: nulls that have no default go first, then what is absent or
//! null gets its default.

use serde_json::{Map, Value};

use super::node::{Marks, Node};

/// Removes nulls where none may stand and no default would replace them.
pub(super) fn drop_nulls(node: &Node, value: &mut Value) {
    match value {
        Value::Object(fields) => fields.retain(|name, field| {
            let Some(child) = node.child(name) else { return true };
            if field.is_null() {
                return child.has(Marks::NULLABLE) || child.default_value().is_some();
            }
            drop_nulls(child, field);
            true
        }),
        Value::Array(items) => {
            if let Some(element) = node.items() {
                for item in items {
                    drop_nulls(element, item);
                }
            }
        }
        _ => {}
    }
}

/// Fills in what is absent, or null where it may not be.
pub(super) fn fill(node: &Node, value: &mut Value) {
    if !node.has(Marks::HAS_DEFAULTS) {
        return;
    }
    match value {
        Value::Object(fields) => {
            fill_properties(node, fields);
            for (name, field) in fields.iter_mut() {
                if node.property(name).is_none()
                    && let Some(child) = node.child(name)
                {
                    replace_null(child, field);
                }
                if let Some(child) = node.child(name) {
                    fill(child, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(element) = node.items() {
                for item in items {
                    replace_null(element, item);
                    fill(element, item);
                }
            }
        }
        _ => {}
    }
}

fn fill_properties(node: &Node, fields: &mut Map<String, Value>) {
    for (name, child) in &node.properties {
        let Some(default) = child.default_value() else { continue };
        match fields.get_mut(&**name) {
            None => {
                fields.insert(name.to_string(), default.clone());
            }
            Some(field) => replace_null(child, field),
        }
    }
}

fn replace_null(node: &Node, value: &mut Value) {
    if value.is_null()
        && !node.has(Marks::NULLABLE)
        && let Some(default) = node.default_value()
    {
        *value = default.clone();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::structural::Schema;

    #[test]
    fn defaults_fill_what_is_absent_or_a_forbidden_null() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a": {"type": "string", "default": "x"},
            "b": {"type": "object", "default": {}, "properties": {"c": {"type": "integer", "default": 1}}},
            "d": {"type": "string", "nullable": true, "default": "y"},
            "e": {"type": "string"},
            "f": {"type": "object", "properties": {"g": {"type": "string", "default": "z"}}},
            "list": {"type": "array", "items": {"type": "object", "properties": {"h": {"type": "string", "default": "w"}}}},
            "map": {"type": "object", "additionalProperties": {"type": "string", "default": "v"}},
        }}))
        .unwrap();
        let mut object =
            json!({"a": null, "d": null, "e": null, "list": [{}, {"h": "1"}], "map": {"k": null}});
        schema.default(&mut object);
        assert_eq!(
            object,
            json!({
                "a": "x", "b": {"c": 1}, "d": null,
                "list": [{"h": "w"}, {"h": "1"}], "map": {"k": "v"},
            })
        );
    }
}
