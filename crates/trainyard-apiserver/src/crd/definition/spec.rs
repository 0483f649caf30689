//! The specification of a definition: group, scope, versions and what each version says.
//!
//! Owns the order of the checks. What versions have in common is reported where the real server
//! keeps it: above them.

use serde_json::Value;
use trainyard_schema::{
    FieldError,
    structural::{self, Schema},
};

use super::{
    go_text, names, openapi,
    parts::{below, children, is_given, is_zero, list, schema, text},
};
use crate::kinds::naming;

/// The parts that versions may have in common, and what each is called above them.
const SHARED: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];
const SELECTABLE_MAX: usize = 8;

/// What is wrong with a specification.
pub(super) fn check(spec: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let versions = list(&spec["versions"]);
    let is_shared = |part: &str| is_shared(versions, part);
    let mut errors: Vec<_> = group(text(&spec["group"])).into_iter().collect();
    errors.extend(one_of("spec.scope", &spec["scope"], &["Cluster", "Namespaced"]));
    for (index, version) in versions.iter().enumerate() {
        if schema(&version["schema"], "openAPIV3Schema").is_none() {
            let path = format!("spec.versions[{index}].schema.openAPIV3Schema");
            errors.push(FieldError::required(path, ""));
        }
    }
    for (index, version) in versions.iter().enumerate() {
        let path = format!("spec.versions[{index}]");
        let faults = naming::service(text(&version["name"]));
        if !faults.is_empty() {
            let path = below(&path, "name");
            errors.push(FieldError::invalid(path, text(&version["name"]), faults.join(",")));
        }
        errors.extend(deprecation(version, &below(&path, "deprecationWarning")));
        let before = old.and_then(|old| {
            list(&old["versions"]).iter().find(|known| known["name"] == version["name"])
        });
        for (part, _) in SHARED.iter().filter(|(part, _)| !is_shared(part)) {
            errors.extend(of_version(version, before, part, &below(&path, part)));
        }
    }
    errors.extend(together(&spec["versions"], &is_shared));
    for field in ["plural", "singular", "kind", "listKind"] {
        if text(&spec["names"][field]).is_empty() {
            errors.push(FieldError::required(format!("spec.names.{field}"), ""));
        }
    }
    errors.extend(names::check(&spec["names"], "spec.names"));
    if let Some(first) = versions.first() {
        let before = old.and_then(|old| list(&old["versions"]).first());
        for (part, name) in SHARED.iter().filter(|(part, _)| is_shared(part)) {
            errors.extend(of_version(first, before, part, &below("spec", name)));
        }
    }
    errors.extend(conversion(&spec["conversion"]));
    errors
}

/// Whether all versions say the same.
fn is_shared(versions: &[Value], part: &str) -> bool {
    let said = |version: &'_ Value| version.get(part).filter(|value| !is_zero(value)).cloned();
    let mut all = versions.iter().map(said);
    all.next().is_some_and(|first| all.all(|other| other == first))
}

fn group(group: &str) -> Option<FieldError> {
    let path = "spec.group";
    if group.is_empty() {
        return Some(FieldError::required(path, ""));
    }
    let faults = naming::subdomain(group);
    if !faults.is_empty() {
        return Some(FieldError::invalid(path, group, faults.join(",")));
    }
    let words = "should be a domain with at least one dot";
    (!group.contains('.')).then(|| FieldError::invalid(path, group, words))
}

fn one_of(path: &str, value: &Value, words: &[&str]) -> Option<FieldError> {
    match text(value) {
        "" => Some(FieldError::required(path, "")),
        word if words.contains(&word) => None,
        word => Some(FieldError::not_supported(path, word, words)),
    }
}

/// What only all versions together can have wrong.
fn together(written: &Value, is_shared: &dyn Fn(&str) -> bool) -> Vec<FieldError> {
    let versions = list(written);
    let mut errors = Vec::new();
    let names: Vec<&str> = versions.iter().map(|version| text(&version["name"])).collect();
    let mut refuse = |words: &str| {
        let shown = match written {
            Value::Null => "null".to_owned(),
            _ => go_text::versions(versions, is_shared),
        };
        errors.push(go_text::refused("spec.versions".to_owned(), &shown, words));
    };
    let repeated =
        |(index, name): (usize, &&str)| names.iter().take(index).any(|other| other == name);
    if names.iter().enumerate().any(repeated) {
        refuse("must contain unique version names");
    }
    if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
        refuse("must have exactly one version marked as storage version");
    }
    if let Some(first) = names.first().filter(|name| !name.is_empty()) {
        let faults = naming::service(first);
        if !faults.is_empty() {
            errors.push(FieldError::invalid("spec.version", *first, faults.join(",")));
        }
    }
    errors
}

fn deprecation(version: &Value, path: &str) -> Vec<FieldError> {
    let Some(warning) = version["deprecationWarning"].as_str() else {
        return Vec::new();
    };
    let mut words = Vec::new();
    if version["deprecated"] != true {
        words.push("can only be set for deprecated versions".to_owned());
    } else if warning.len() > 256 {
        words.push("must be <= 256 characters long".to_owned());
    } else if warning.is_empty() {
        words.push("must not be an empty string".to_owned());
    } else if let Some((at, _)) = warning.char_indices().find(|(_, c)| c.is_control()) {
        words.push(format!(
            "must only contain printable UTF-8 characters; non-printable character found at index {at}"
        ));
    }
    words.into_iter().map(|words| FieldError::invalid(path, warning, words)).collect()
}

/// What is wrong with one part of a version.
fn of_version(version: &Value, before: Option<&Value>, part: &str, path: &str) -> Vec<FieldError> {
    match part {
        "schema" => {
            let unchanged = before.is_some_and(|before| before["schema"] == version["schema"]);
            match schema(&version["schema"], "openAPIV3Schema") {
                // It was accepted before.
                Some(_) if unchanged => Vec::new(),
                Some(written) => {
                    let has_status = version["subresources"]["status"].is_object();
                    openapi::check(written, has_status, &below(path, "openAPIV3Schema"))
                }
                None => Vec::new(),
            }
        }
        "subresources" => subresources(&version["subresources"]["scale"], path),
        "additionalPrinterColumns" => list(&version[part])
            .iter()
            .enumerate()
            .flat_map(|(index, column)| self::column(column, &format!("{path}[{index}]")))
            .collect(),
        _ => selectable(version, path),
    }
}

fn simple_path(value: &str, path: &str) -> Option<FieldError> {
    let words = "must be a simple json path starting with .";
    (!value.starts_with('.')).then(|| FieldError::invalid(path, value, words))
}

fn subresources(scale: &Value, path: &str) -> Vec<FieldError> {
    if !scale.is_object() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    for (field, roots, required) in [
        ("specReplicasPath", &[".spec."][..], true),
        ("statusReplicasPath", &[".status."][..], true),
        ("labelSelectorPath", &[".spec.", ".status."][..], false),
    ] {
        let value = text(&scale[field]);
        let path = format!("{path}.scale.{field}");
        if value.is_empty() {
            if required {
                errors.push(FieldError::required(path, ""));
            }
            continue;
        }
        let error = simple_path(value, &path).or_else(|| {
            let under = match roots {
                [root] => root.trim_end_matches('.').to_owned(),
                _ => "either .spec or .status".to_owned(),
            };
            let words = format!("should be a json path under {under}");
            let fits = roots.iter().any(|root| value.starts_with(root));
            (!fits).then(|| FieldError::invalid(path, value, words))
        });
        errors.extend(error);
    }
    errors
}

fn column(column: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if text(&column["name"]).is_empty() {
        errors.push(FieldError::required(below(path, "name"), ""));
    }
    let (kind, format) = (text(&column["type"]), text(&column["format"]));
    let types = format!("must be one of {}", COLUMN_TYPES.join(","));
    if kind.is_empty() {
        errors.push(FieldError::required(below(path, "type"), types));
    } else if !COLUMN_TYPES.contains(&kind) {
        errors.push(FieldError::invalid(below(path, "type"), kind, types));
    }
    if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
        let formats = format!("must be one of {}", COLUMN_FORMATS.join(","));
        errors.push(FieldError::invalid(below(path, "format"), format, formats));
    }
    match text(&column["jsonPath"]) {
        "" => errors.push(FieldError::required(below(path, "JSONPath"), "")),
        value => errors.extend(simple_path(value, &below(path, "JSONPath"))),
    }
    errors
}

fn selectable(version: &Value, path: &str) -> Vec<FieldError> {
    let fields = list(&version["selectableFields"]);
    let written = &version["schema"]["openAPIV3Schema"];
    let Ok(schema) = Schema::parse_part(written) else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    for (index, field) in fields.iter().enumerate() {
        let path = format!("{path}[{index}].jsonPath");
        let value = text(&field["jsonPath"]);
        if value.is_empty() {
            errors.push(FieldError::required(path, ""));
            continue;
        }
        let found = if value.contains('[') && value.starts_with('.') {
            Err("array notation is not allowed".to_owned())
        } else {
            schema.field_path(value)
        };
        let plain = match found {
            Ok(plain) => plain,
            Err(problem) => {
                let words = format!("is an invalid path: {problem}");
                errors.push(FieldError::invalid(path, value, words));
                continue;
            }
        };
        if plain.split('.').next() == Some("metadata") {
            let words = "must not point to fields in metadata";
            errors.push(FieldError::invalid(path.as_str(), value, words));
        }
        if !matches!(type_at(written, &plain), "string" | "boolean" | "integer") {
            let words = "must point to a field of type string, boolean or integer. Enum string \
                fields and strings with formats are allowed.";
            errors.push(FieldError::invalid(path.as_str(), value, words));
        }
        if seen.contains(&plain) {
            errors.push(FieldError::duplicate(path, value));
        } else {
            seen.push(plain);
        }
    }
    if seen.len() > SELECTABLE_MAX {
        errors.push(FieldError::too_many(path, seen.len(), SELECTABLE_MAX));
    }
    errors
}

/// The type of the field at a path that leads somewhere.
fn type_at<'a>(schema: &'a Value, path: &str) -> &'a str {
    let mut place = schema;
    for step in path.split('.') {
        let child = &place["properties"][step];
        place = if child.is_object() { child } else { &place["additionalProperties"] };
    }
    text(&place["type"])
}

fn conversion(conversion: &Value) -> Vec<FieldError> {
    let path = "spec.conversion";
    let mut errors = Vec::new();
    if conversion.is_null() {
        return errors;
    }
    let strategy = below(path, "strategy");
    errors.extend(one_of(&strategy, &conversion["strategy"], &["None", "Webhook"]));
    if conversion["strategy"] == "Webhook" {
        let words = "no webhook is called here; use None, with versions that have the same fields";
        errors.push(FieldError::invalid(strategy, "Webhook", words));
    } else if is_given(conversion, "webhook") {
        let words = "should not be set when strategy is not set to Webhook";
        if is_given(&conversion["webhook"], "clientConfig") {
            errors.push(FieldError::forbidden(below(path, "webhookClientConfig"), words));
        }
        if !list(&conversion["webhook"]["conversionReviewVersions"]).is_empty() {
            errors.push(FieldError::forbidden(below(path, "conversionReviewVersions"), words));
        }
    }
    errors
}

/// Formats that mean nothing, in the order in which they are found.
pub(super) fn unknown_formats(spec: &Value) -> Vec<String> {
    fn visit(schema: &Value, depth: usize, found: &mut Vec<String>) {
        let format = text(&schema["format"]);
        if !format.is_empty() && !structural::is_format(text(&schema["type"]), format) {
            found.push(format.to_owned());
        }
        if depth < openapi::DEPTH_MAX {
            for (_, child) in children(schema) {
                visit(child, depth + 1, found);
            }
        }
    }
    let versions = list(&spec["versions"]);
    let all_alike = is_shared(versions, "schema");
    let mut found = Vec::new();
    for version in versions.iter().take(if all_alike { 1 } else { usize::MAX }) {
        visit(&version["schema"]["openAPIV3Schema"], 0, &mut found);
    }
    found
}
