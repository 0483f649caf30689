//! Resources that stand inside custom resources: their type and metadata follow the same rules as
//! everywhere, though no schema says so.

use serde_json::{Value, json};
use trainyard_schema::{FieldError, structural::Schema};

use crate::{
    kind::Rules,
    kinds::{metadata, naming},
};

/// Names of embedded resources need only fit into a path: their kind is not known here.
struct AnyName;

impl Rules for AnyName {
    fn name_faults(&self, name: &str, is_prefix: bool) -> Vec<String> {
        naming::path_segment(name, is_prefix)
    }
}

/// What is wrong with the resources inside an object.
pub(super) fn check(schema: &Schema, object: &Value) -> Vec<FieldError> {
    let found = schema.embedded(object);
    found.into_iter().flat_map(|(path, resource)| one(&path, resource)).collect()
}

fn one(path: &str, resource: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let dot = if path.is_empty() { "" } else { "." };
    let at = |field: &str| format!("{path}{dot}{field}");
    for field in ["apiVersion", "kind"] {
        if resource.get(field).is_none() {
            errors.push(FieldError::required(at(field), ""));
        }
    }
    for field in ["apiVersion", "kind"] {
        let Some(value) = resource.get(field) else { continue };
        let words = match value.as_str() {
            None => Some("must be a string".to_owned()),
            Some("") => Some("must not be empty".to_owned()),
            Some(text) if field == "apiVersion" => version_fault(text),
            Some(text) => kind_fault(text),
        };
        errors.extend(words.map(|words| FieldError::invalid(at(field), value.clone(), words)));
    }
    if let Some(written) = resource.get("metadata") {
        errors.extend(head(written, &at("metadata")));
    }
    errors
}

fn version_fault(text: &str) -> Option<String> {
    let slashes = text.matches('/').count();
    (slashes > 1).then(|| format!("unexpected GroupVersion string: {text}"))
}

fn kind_fault(text: &str) -> Option<String> {
    let faults = naming::service(&text.to_lowercase());
    let words = "may have mixed case, but should otherwise match: ";
    (!faults.is_empty()).then(|| format!("{words}{}", faults.join(",")))
}

fn head(written: &Value, path: &str) -> Vec<FieldError> {
    let mut metadata = written.as_object().cloned().unwrap_or_default();
    let read = if written.is_object() || written.is_null() {
        metadata::check_types(&mut metadata)
    } else {
        Err("must be an object".to_owned())
    };
    if let Err(words) = read {
        return vec![FieldError::invalid(path, written.clone(), words)];
    }
    let named = metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    if !named {
        metadata.insert("name".to_owned(), json!("fakename"));
    }
    let namespaced =
        metadata.get("namespace").and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let metadata = Value::Object(metadata);
    let mut errors = metadata::validate_new(&metadata, namespaced, &AnyName);
    for error in &mut errors {
        let rest = error.path.strip_prefix("metadata").unwrap_or(&error.path);
        error.path = format!("{path}{rest}");
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_resources_are_checked_in_the_words_of_the_real_server() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "emb": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
        }}}}))
        .unwrap();
        let told = |emb: Value| {
            let errors = check(&schema, &json!({"spec": {"emb": emb}}));
            errors.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(
            told(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})),
            Vec::<String>::new()
        );
        assert_eq!(told(json!({"kind": "Pod"})), ["spec.emb.apiVersion: Required value"]);
        assert_eq!(
            told(json!({"apiVersion": "", "kind": ""})),
            [
                "spec.emb.apiVersion: Invalid value: \"\": must not be empty",
                "spec.emb.kind: Invalid value: \"\": must not be empty"
            ]
        );
        assert_eq!(
            told(json!({"apiVersion": "a/b/c", "kind": "X"})),
            [
                "spec.emb.apiVersion: Invalid value: \"a/b/c\": unexpected GroupVersion string: a/b/c"
            ]
        );
        assert_eq!(
            told(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}})),
            ["spec.emb.metadata.name: Invalid value: \"a/b\": may not contain '/'"]
        );
        let kind = told(json!({"apiVersion": "v1", "kind": "bad_kind"}));
        assert!(kind[0].starts_with("spec.emb.kind: Invalid value: \"bad_kind\": may have mixed case, but should otherwise match: a DNS-1035 label"), "{kind:?}");
        let labels =
            told(json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c"}}}));
        assert!(
            labels[0].starts_with(
                "spec.emb.metadata.labels: Invalid value: \"a b\": name part must consist of"
            ),
            "{labels:?}"
        );
        assert_eq!(told(json!({"apiVersion": "v1", "kind": "Pod", "metadata": 7})).len(), 1);
    }
}
