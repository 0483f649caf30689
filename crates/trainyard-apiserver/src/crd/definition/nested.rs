//! What may stand inside `allOf`, `anyOf`, `oneOf` and `not`: checks of values, no structure.

use serde_json::Value;
use trainyard_schema::FieldError;

use super::{
    parts::{below, is_given, list, members, schema, text},
    structural::{is_int_or_string, pattern},
};

/// Which alternatives are let pass: those that say an integer or a string is meant.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Skipped {
    any_of: bool,
    first_all_of: bool,
}

/// The two ways in which a schema may say so.
pub(super) fn int_or_string(written: &Value) -> Skipped {
    Skipped {
        any_of: is_int_or_string(&written["anyOf"]),
        first_all_of: is_int_or_string(&written["allOf"][0]["anyOf"]),
    }
}

/// The alternatives of a schema.
pub(super) fn values(written: &Value, path: &str, skipped: Skipped, errors: &mut Vec<FieldError>) {
    for keyword in ["anyOf", "allOf", "oneOf"] {
        if keyword == "anyOf" && skipped.any_of {
            continue;
        }
        for (index, clause) in list(&written[keyword]).iter().enumerate() {
            let any_of = keyword == "allOf" && index == 0 && skipped.first_all_of;
            let skipped = Skipped { any_of, first_all_of: false };
            visit(clause, &format!("{path}.{keyword}[{index}]"), skipped, errors);
        }
    }
    if let Some(clause) = schema(written, "not") {
        visit(clause, &below(path, "not"), Skipped::default(), errors);
    }
    errors.extend(pattern(written, path));
}

fn visit(clause: &Value, path: &str, skipped: Skipped, errors: &mut Vec<FieldError>) {
    values(clause, path, skipped, errors);
    if let Some(items) = schema(clause, "items") {
        visit(items, &below(path, "items"), Skipped::default(), errors);
    }
    for (name, child) in members(&clause["properties"]) {
        let path = format!("{path}.properties[{name}]");
        visit(child, &path, Skipped::default(), errors);
    }
    let mut forbid = |keyword: &str, words: &str| {
        errors
            .push(FieldError::forbidden(below(path, keyword), format!("{words} to be structural")));
    };
    for keyword in ["type", "title", "description"] {
        if !text(&clause[keyword]).is_empty() {
            forbid(keyword, "must be empty");
        }
    }
    let additional =
        clause["additionalProperties"].is_object() || clause["additionalProperties"] == true;
    if additional {
        forbid("additionalProperties", "must be undefined");
    }
    for keyword in ["default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if is_given(clause, keyword) {
            forbid(keyword, "must be undefined");
        }
    }
    for keyword in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if clause[keyword] == true {
            forbid(keyword, "must be false");
        }
    }
    for keyword in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if !list(&clause[keyword]).is_empty() {
            forbid(keyword, "must be empty");
        }
    }
    if clause["properties"].get("metadata").is_some() {
        let words = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(format!("{path}.properties[metadata]"), words));
    }
}

/// What the alternatives of the root name must stand on the spine as well.
pub(super) fn completeness(root: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    alternatives(root, Some(root), path, path, &mut errors);
    errors
}

fn alternatives(
    clause: &Value,
    spine: Option<&Value>,
    spine_path: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    if let Some(inner) = schema(clause, "not") {
        complete(inner, spine, spine_path, &below(path, "not"), errors);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (index, inner) in list(&clause[keyword]).iter().enumerate() {
            complete(inner, spine, spine_path, &format!("{path}.{keyword}[{index}]"), errors);
        }
    }
}

fn complete(
    clause: &Value,
    spine: Option<&Value>,
    spine_path: &str,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let Some(spine) = spine else {
        let words = format!("because it is defined in {path}");
        errors.push(FieldError::required(spine_path, words));
        return;
    };
    alternatives(clause, Some(spine), spine_path, path, errors);
    if let Some(items) = schema(clause, "items") {
        let (spine_path, path) = (below(spine_path, "items"), below(path, "items"));
        complete(items, schema(spine, "items"), &spine_path, &path, errors);
    }
    for (name, child) in members(&clause["properties"]) {
        let step = format!("properties[{name}]");
        let (spine_path, path) = (below(spine_path, &step), below(path, &step));
        complete(child, spine["properties"].get(name.as_str()), &spine_path, &path, errors);
    }
}
