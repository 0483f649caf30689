//! List types and map types of a schema: what they ask of the schema beside them.

use serde_json::Value;
use trainyard_schema::FieldError;

use super::parts::{below, is_given, list, schema, text};

const LIST_TYPE: &str = "x-kubernetes-list-type";
const MAP_TYPE: &str = "x-kubernetes-map-type";
const KEYS: &str = "x-kubernetes-list-map-keys";

/// What is wrong with them.
pub(super) fn check(written: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if is_given(written, MAP_TYPE) {
        errors.extend(wrong_type(written, path, "object", MAP_TYPE));
        let said = text(&written[MAP_TYPE]);
        if !matches!(said, "atomic" | "granular") {
            let path = below(path, MAP_TYPE);
            errors.push(FieldError::not_supported(path, said, &["atomic", "granular"]));
        }
    }
    if is_given(written, LIST_TYPE) {
        match wrong_type(written, path, "array", LIST_TYPE) {
            Some(error) => errors.push(error),
            None => errors.extend(set_of(written, path)),
        }
        let said = text(&written[LIST_TYPE]);
        if !matches!(said, "atomic" | "set" | "map") {
            let path = below(path, LIST_TYPE);
            errors.push(FieldError::not_supported(path, said, &["atomic", "set", "map"]));
        }
    }
    errors.extend(keyed(written, path));
    errors.extend(elements(written, path));
    errors
}

fn wrong_type(written: &Value, path: &str, wanted: &str, keyword: &str) -> Option<FieldError> {
    let words = format!("must be {wanted} if {keyword} is specified");
    match text(&written["type"]) {
        kind if kind == wanted => None,
        "" => Some(FieldError::required(below(path, "type"), words)),
        kind => Some(FieldError::invalid(below(path, "type"), kind, words)),
    }
}

/// Elements of a set are compared as wholes.
fn set_of(written: &Value, path: &str) -> Option<FieldError> {
    let items = schema(written, "items").filter(|_| written[LIST_TYPE] == "set")?;
    let words = "must be atomic as item of a list with x-kubernetes-list-type=set";
    let (keyword, atomic) = match text(&items["type"]) {
        "array" => (LIST_TYPE, !is_given(items, LIST_TYPE) || items[LIST_TYPE] == "atomic"),
        "object" => (MAP_TYPE, items[MAP_TYPE] == "atomic"),
        _ => return None,
    };
    let path = format!("{path}.items.{keyword}");
    (!atomic).then(|| FieldError::invalid(path, items[LIST_TYPE].clone(), words))
}

fn keyed(written: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let keys = list(&written[KEYS]);
    let words = "must be map if x-kubernetes-list-map-keys is non-empty";
    if !keys.is_empty() && !is_given(written, LIST_TYPE) {
        errors.push(FieldError::required(below(path, LIST_TYPE), words));
    } else if !keys.is_empty() && written[LIST_TYPE] != "map" {
        let said = text(&written[LIST_TYPE]);
        errors.push(FieldError::invalid(below(path, LIST_TYPE), said, words));
    }
    if written[LIST_TYPE] != "map" {
        return errors;
    }
    if keys.is_empty() {
        let words = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(below(path, KEYS), words));
    }
    let Some(items) = schema(written, "items") else {
        let words = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(below(path, "items"), words));
        return errors;
    };
    if items["type"] != "object" {
        let words = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(format!("{path}.items.type"), text(&items["type"]), words));
        return errors;
    }
    for (index, key) in keys.iter().enumerate() {
        match items["properties"].get(text(key)) {
            Some(field) if matches!(text(&field["type"]), "array" | "object") => {
                let path = format!("{path}.items.properties[{}].type", text(key));
                let words = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(path, "object", words));
            }
            Some(_) => {}
            None => {
                let words = "entries must all be names of item properties";
                errors.push(FieldError::invalid(below(path, KEYS), written[KEYS].clone(), words));
            }
        }
        if keys.iter().take(index).any(|other| other == key) {
            let words = "must not contain duplicate entries";
            errors.push(FieldError::invalid(below(path, KEYS), written[KEYS].clone(), words));
        }
    }
    errors
}

/// Elements that are told apart must be there, and so must their keys.
fn elements(written: &Value, path: &str) -> Vec<FieldError> {
    let kind = text(&written[LIST_TYPE]);
    let Some(items) = schema(written, "items").filter(|_| matches!(kind, "set" | "map")) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    if items["nullable"] == true {
        let words = format!("cannot be nullable when x-kubernetes-list-type is {kind}");
        errors.push(FieldError::forbidden(format!("{path}.items.nullable"), words));
    }
    let keys = if kind == "map" { list(&written[KEYS]) } else { &[] };
    for key in keys {
        let Some(field) = items["properties"].get(text(key)) else { continue };
        let path = format!("{path}.items.properties[{}]", text(key));
        if !list(&items["required"]).contains(key) && !is_given(field, "default") {
            let words = "this property is in x-kubernetes-list-map-keys, so it must have a default \
                or be a required property";
            errors.push(FieldError::required(below(&path, "default"), words));
        }
        if field["nullable"] == true {
            let words = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(below(&path, "nullable"), words));
        }
    }
    errors
}
