//! What the verbs ask of a custom resource beside its schema.
//!
//! Owns the split of status from the rest, generations, the numbers of a scale and the fields that
//! selectors may name. Must not validate by schema: the verbs do, by that of the version asked for.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value, json};
use trainyard_schema::{FieldError, golang, jsonpath::Path, structural::Schema};

use super::{embedded, scale};
use crate::{
    kind::{Part, Rules, Scale},
    kinds::naming,
};

/// The finalizers that need no domain before them.
const STANDARD_FINALIZERS: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];

/// The rules of one defined kind.
pub(super) struct DefinedRules {
    /// What objects look like in the stored version.
    pub(super) schema: Arc<Schema>,
    /// Whether `/status` is written apart.
    pub(super) has_status: bool,
    pub(super) scale: Option<Scale>,
    /// The fields that selectors may name.
    pub(super) selectable: Vec<(Box<str>, Path)>,
}

impl DefinedRules {
    fn scale_faults(&self, object: &Value, part: Part) -> Vec<FieldError> {
        let with_spec = part == Part::Main;
        self.scale.as_ref().map(|paths| scale::faults(paths, object, with_spec)).unwrap_or_default()
    }
}

impl Rules for DefinedRules {
    fn prepare_create(&self, object: &mut Value) {
        if let Some(fields) = object.as_object_mut().filter(|_| self.has_status) {
            fields.remove("status");
        }
        if object["metadata"].is_object() {
            object["metadata"]["generation"] = json!(1);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = self.scale_faults(object, Part::Main);
        errors.extend(embedded::check(&self.schema, object));
        errors
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        match part {
            Part::Main => {
                if self.has_status {
                    put(new, "status", old.get("status").cloned());
                }
                let before = old["metadata"]["generation"].as_i64();
                let changed = !is_same_beside_metadata(new, old);
                let generation = match (before, changed) {
                    (before, true) => Some(json!(before.unwrap_or(0).saturating_add(1))),
                    (before, false) => before.map(Value::from),
                };
                if let Some(metadata) = new.get_mut("metadata") {
                    put(metadata, "generation", generation);
                }
            }
            Part::Status => {
                let status = new.get("status").cloned();
                let managed = new["metadata"].get("managedFields").cloned();
                *new = old.clone();
                put(new, "status", status);
                if let Some(metadata) = new.get_mut("metadata") {
                    put(metadata, "managedFields", managed);
                }
            }
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, part: Part) -> Vec<FieldError> {
        let mut errors = self.scale_faults(new, part);
        if part == Part::Main {
            errors.extend(embedded::check(&self.schema, new));
        }
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
        let names: BTreeSet<&str> = finalizers.filter_map(Value::as_str).collect();
        names.into_iter().flat_map(finalizer_warnings).collect()
    }

    fn not_selectable(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn is_selectable(&self, field: &str) -> bool {
        self.selectable.iter().any(|(name, _)| &**name == field)
    }

    fn fields(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        self.selectable
            .iter()
            .map(|(name, path)| {
                let value = path.find(object).first().map(|value| golang::print(value));
                (name.clone(), value.unwrap_or_default().into())
            })
            .collect()
    }
}

/// Sets a field, or takes it away.
fn put(object: &mut Value, name: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Some(value) => {
            fields.insert(name.to_owned(), value);
        }
        None => {
            fields.remove(name);
        }
    }
}

/// Whether nothing changed that counts: an empty object is as good as none nowhere but in metadata.
fn is_same_beside_metadata(new: &Value, old: &Value) -> bool {
    let empty = Map::new();
    let fields = |object: &'_ Value| -> Vec<(String, Value)> {
        let fields = object.as_object().unwrap_or(&empty).iter();
        let kept =
            fields.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "apiVersion" | "kind"));
        kept.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    fields(new) == fields(old)
}

fn finalizer_warnings(name: &str) -> Vec<String> {
    let shown = golang::quote(name);
    let told = |words: &str| format!("metadata.finalizers: {shown}: {words}");
    let mut warnings: Vec<_> = naming::qualified(name).iter().map(|fault| told(fault)).collect();
    if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
        let path = if name.contains('.') { " including a path (/)" } else { "" };
        warnings.push(told(&format!(
            "prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with \
             other finalizer writers"
        )));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> DefinedRules {
        let path = Path::parse(".spec.color").unwrap();
        let schema = Arc::new(Schema::open());
        DefinedRules {
            schema,
            has_status: true,
            scale: None,
            selectable: vec![("spec.color".into(), path)],
        }
    }

    #[test]
    fn a_creator_writes_no_status() {
        let mut object = json!({"metadata": {"name": "a"}, "spec": {}, "status": {"x": 1}});
        rules().prepare_create(&mut object);
        assert_eq!(object, json!({"metadata": {"name": "a", "generation": 1}, "spec": {}}));
    }

    #[test]
    fn each_part_of_a_write_changes_its_own() {
        let old = json!({"metadata": {"name": "a", "generation": 3}, "spec": {"x": 1}, "status": {"y": 1}});
        let mut new = json!({"metadata": {"name": "a", "generation": 9, "labels": {"a": "b"}}, "spec": {"x": 1}, "status": {"y": 2}});
        rules().prepare_update(&mut new, &old, Part::Main);
        assert_eq!(
            new,
            json!({"metadata": {"name": "a", "generation": 3, "labels": {"a": "b"}}, "spec": {"x": 1}, "status": {"y": 1}})
        );
        let mut new = json!({"metadata": {"name": "a"}, "spec": {"x": 2}});
        rules().prepare_update(&mut new, &old, Part::Main);
        assert_eq!(new["metadata"]["generation"], 4);
        assert_eq!(new["status"], json!({"y": 1}));
        let mut new = json!({"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {"x": 2}, "status": {"y": 3}});
        rules().prepare_update(&mut new, &old, Part::Status);
        assert_eq!(
            new,
            json!({"metadata": {"name": "a", "generation": 3}, "spec": {"x": 1}, "status": {"y": 3}})
        );
    }

    #[test]
    fn selectable_fields_have_values() {
        assert!(rules().is_selectable("spec.color") && !rules().is_selectable("spec.x"));
        let fields = rules().fields(&json!({"spec": {"color": "red"}}));
        assert_eq!(fields, [("spec.color".into(), "red".into())]);
        assert_eq!(rules().fields(&json!({})), [("spec.color".into(), "".into())]);
    }

    #[test]
    fn finalizers_without_a_domain_are_warned_about() {
        let object =
            json!({"metadata": {"finalizers": ["example.com/a", "orphan", "odd", "odd.com"]}});
        assert_eq!(
            rules().warnings(&object),
            [
                "metadata.finalizers: \"odd\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers",
                "metadata.finalizers: \"odd.com\": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers",
            ]
        );
    }
}
