//! Whether a schema is structural: every field has a type, outside of any alternative.
//!
//! Owns the invariants on the spine of a schema; what may stand inside alternatives is for
//! [`super::nested`] to say.

use serde_json::{Value, json};
use trainyard_schema::{FieldError, structural::pattern_fault};

use super::{
    nested,
    parts::{below, is_given, is_zero, list, members, schema, text},
};

/// Where on the spine a schema stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Whether a schema holds something that no structural one can be made of.
pub(super) fn is_unreadable(written: &Value, depth: usize) -> bool {
    let unsupported =
        ["id", "$schema", "$ref"].iter().any(|keyword| !text(&written[*keyword]).is_empty());
    let maps = ["patternProperties", "dependencies", "definitions"];
    let filled = maps.iter().any(|keyword| members(&written[*keyword]).next().is_some());
    unsupported
        || filled
        || is_given(written, "additionalItems")
        || written["items"].is_array()
        || written["x-kubernetes-preserve-unknown-fields"] == false
        || depth > super::openapi::DEPTH_MAX
        || super::parts::children(written).iter().any(|(_, child)| is_unreadable(child, depth + 1))
}

/// What keeps a schema from being structural, in a fixed order.
pub(super) fn check(written: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    visit(written, Level::Root, path, &mut errors);
    errors.extend(nested::completeness(written, path));
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

fn visit(written: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    if written["type"] == "array" && !is_given(written, "items") {
        errors.push(FieldError::required(below(path, "items"), "must be specified"));
    }
    if let Some(items) = schema(written, "items") {
        visit(items, Level::Item, &below(path, "items"), errors);
    }
    for (name, child) in members(&written["properties"]) {
        visit(child, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    let additional = below(path, "additionalProperties");
    if is_given(written, "additionalProperties") {
        if level == Level::Root {
            let words = "must not be used at the root";
            errors.push(FieldError::forbidden(additional.as_str(), words));
        }
        if let Some(child) = schema(written, "additionalProperties") {
            visit(child, Level::Field, &additional, errors);
        }
    }
    extensions(written, path, errors);
    nested::values(written, path, nested::int_or_string(written), errors);
    types(written, level, path, errors);
    head(written, level, path, errors);
}

fn extensions(written: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if written["x-kubernetes-int-or-string"] != true {
        return;
    }
    for keyword in ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"] {
        if written[keyword] == true {
            let words = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(below(path, keyword), true, words));
        }
    }
}

fn types(written: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(&written["type"]);
    let place = below(path, "type");
    let embedded = written["x-kubernetes-embedded-resource"] == true;
    let open = written["x-kubernetes-preserve-unknown-fields"] == true;
    let typeless = open || written["x-kubernetes-int-or-string"] == true;
    if embedded && kind != "object" {
        let words = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(place.as_str(), words)
        } else {
            FieldError::invalid(place.as_str(), kind, words)
        });
    } else if kind.is_empty() && !typeless {
        let words = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(place.as_str(), words));
    }
    if embedded && is_given(written, "additionalProperties") {
        let words = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(below(path, "additionalProperties"), words));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(place, kind, "must be object at the root"));
    }
    if embedded && !open && members(&written["properties"]).next().is_none() {
        let words = "must not be empty if x-kubernetes-embedded-resource is true without \
            x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(below(path, "properties"), words));
    }
}

/// Type and metadata of an object are given; a schema may say little about them.
fn head(written: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let properties = &written["properties"];
    let is_head = level == Level::Root || written["x-kubernetes-embedded-resource"] == true;
    for name in ["kind", "apiVersion"] {
        if let Some(child) = properties.get(name).filter(|_| is_head)
            && child["type"] != "string"
        {
            let path = format!("{path}.properties[{name}].type");
            errors.push(FieldError::invalid(path, text(&child["type"]), "must be string"));
        }
    }
    let Some(metadata) = properties.get("metadata") else { return };
    let path = format!("{path}.properties[metadata]");
    if is_head && metadata["type"] != "object" {
        let kind = text(&metadata["type"]);
        errors.push(FieldError::invalid(below(&path, "type"), kind, "must be object"));
    }
    if level == Level::Root && !says_only_names(metadata) {
        let words = "must not specify anything other than name and generateName, but metadata is \
            implicitly specified";
        errors.push(FieldError::forbidden(path, words));
    }
}

/// The real server looks at the structure and not at value validations without effect.
fn says_only_names(metadata: &Value) -> bool {
    let mut names = members(&metadata["properties"]).map(|(name, _)| name.as_str());
    let known = names.all(|name| matches!(name, "name" | "generateName"));
    let others = members(metadata).filter(|(keyword, value)| {
        !matches!(keyword.as_str(), "type" | "properties" | "default") && !is_zero(value)
    });
    known && others.count() == 0
}

/// What is wrong with the pattern of a schema.
pub(super) fn pattern(written: &Value, path: &str) -> Option<FieldError> {
    let pattern = text(&written["pattern"]);
    let problem = pattern_fault(pattern).filter(|_| !pattern.is_empty())?;
    let words = format!("must be a valid regular expression, but isn't: {problem}");
    Some(FieldError::invalid(below(path, "pattern"), pattern, words))
}

/// The alternatives of which an integer or a string is one.
pub(super) fn is_int_or_string(clauses: &Value) -> bool {
    list(clauses) == [json!({"type": "integer"}), json!({"type": "string"})]
}
