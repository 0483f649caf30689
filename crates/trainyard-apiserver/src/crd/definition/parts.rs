//! Looking into a definition without minding what is missing.

use serde_json::{Map, Value};

/// A text, or the empty one.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The elements of a list, or none.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The members of an object, or none.
pub(super) fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// A schema, where there is one.
pub(super) fn schema<'a>(schema: &'a Value, keyword: &str) -> Option<&'a Value> {
    schema.get(keyword).filter(|value| value.is_object())
}

/// Whether a keyword is given.
pub(super) fn is_given(schema: &Value, keyword: &str) -> bool {
    schema.get(keyword).is_some_and(|value| !value.is_null())
}

/// What counts as saying nothing: empty lists and objects, false, no text.
pub(super) fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

/// A path with one more step.
pub(super) fn below(path: &str, step: &str) -> String {
    format!("{path}.{step}")
}

/// The schemas that stand directly in another, with their steps.
pub(super) fn children(schema: &Value) -> Vec<(String, &Value)> {
    let mut children = Vec::new();
    for keyword in ["additionalProperties", "not", "items", "additionalItems"] {
        if let Some(child) = self::schema(schema, keyword) {
            children.push((keyword.to_owned(), child));
        }
    }
    for keyword in ["properties", "patternProperties", "definitions", "dependencies"] {
        let named = schema.get(keyword).unwrap_or(&Value::Null);
        for (name, child) in members(named).filter(|(_, child)| child.is_object()) {
            children.push((format!("{keyword}[{name}]"), child));
        }
    }
    for keyword in ["allOf", "oneOf", "anyOf", "items"] {
        let listed = list(schema.get(keyword).unwrap_or(&Value::Null));
        for (index, child) in listed.iter().enumerate().filter(|(_, child)| child.is_object()) {
            children.push((format!("{keyword}[{index}]"), child));
        }
    }
    children
}
