//! The defaults of a schema: each must be what its own schema allows.

use serde_json::Value;
use trainyard_schema::{FieldError, structural::Schema};

use super::parts::{below, is_given, members, schema};

/// What is wrong with the defaults of a schema that is structural.
pub(super) fn check(written: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    visit(written, path, &mut errors);
    errors
}

fn visit(written: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if is_given(written, "default") {
        errors.extend(faults(written, &below(path, "default")));
    }
    // Below additionalProperties there are none.
    if let Some(items) = schema(written, "items") {
        visit(items, &below(path, "items"), errors);
    }
    for (name, child) in members(&written["properties"]) {
        visit(child, &format!("{path}.properties[{name}]"), errors);
    }
}

fn faults(written: &Value, path: &str) -> Vec<FieldError> {
    let default = &written["default"];
    let embedded = written["x-kubernetes-embedded-resource"] == true;
    let read = if embedded { Schema::parse(written) } else { Schema::parse_part(written) };
    let Ok(schema) = read else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let mut pruned = default.clone();
    schema.prune(&mut pruned);
    if pruned != *default {
        let words = "must not have unknown fields";
        errors.push(FieldError::invalid(path, default.clone(), words));
    }
    let mut wrong = schema.validate(default, None);
    if wrong.is_empty() {
        wrong = schema.rules_anew(default, Some(default));
    }
    if wrong.is_empty() {
        wrong = schema.rules_anew(default, None);
    }
    errors.extend(wrong.into_iter().map(|mut error| {
        let dot = if error.path.is_empty() || error.path.starts_with('[') { "" } else { "." };
        error.path = format!("{path}{dot}{}", error.path);
        error
    }));
    errors
}
