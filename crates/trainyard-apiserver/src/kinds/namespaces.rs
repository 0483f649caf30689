//! Namespaces: their label, finalizer and phase.

use serde_json::{Value, json};
use trainyard_schema::FieldError;

use super::{
    json::{faults, fill, items, keep, object_mut, text},
    metadata::{self, STANDARD_FINALIZERS},
    naming,
};
use crate::kind::{Part, Rules};

/// The rules of namespaces.
pub(super) struct Namespaces;

const FINALIZER: &str = "kubernetes";
const LABEL: &str = "kubernetes.io/metadata.name";

impl Rules for Namespaces {
    fn default(&self, object: &mut Value) {
        label(object);
        fill(&mut object["status"], "phase", "Active");
    }

    fn prepare_create(&self, object: &mut Value) {
        label(object);
        object["status"] = json!({"phase": "Active"});
        let mut finalizers = items(&object["spec"], "finalizers").to_vec();
        if !finalizers.iter().any(|name| name == FINALIZER) {
            finalizers.push(json!(FINALIZER));
        }
        object["spec"]["finalizers"] = json!(finalizers);
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let path = "spec.finalizers";
        let mut errors = Vec::new();
        for name in items(&object["spec"], "finalizers") {
            let name = name.as_str().unwrap_or_default();
            errors.extend(faults(naming::qualified(name), name, path));
            if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
                let words = "name is neither a standard finalizer name nor is it fully qualified";
                errors.push(FieldError::invalid(path, name, words));
            }
        }
        errors
    }

    fn name_faults(&self, name: &str, is_prefix: bool) -> Vec<String> {
        naming::label(&naming::masked(name, is_prefix))
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        keep(new, old, "spec");
        if part == Part::Main {
            keep(new, old, "status");
        }
    }

    fn validate_update(&self, new: &Value, _old: &Value, part: Part) -> Vec<FieldError> {
        if part == Part::Main {
            return metadata::again(&new["metadata"], false, self);
        }
        let phase = text(&new["status"], "phase");
        let (wanted, words) = if new["metadata"]["deletionTimestamp"].is_null() {
            ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
        } else {
            ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
        };
        if phase == wanted {
            return Vec::new();
        }
        vec![FieldError::invalid("status.Phase", phase, words)]
    }

    fn not_selectable(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn is_selectable(&self, field: &str) -> bool {
        field == "status.phase"
    }

    fn fields(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        vec![("status.phase".into(), text(&object["status"], "phase").into())]
    }
}

fn label(object: &mut Value) {
    let name = object["metadata"]["name"].clone();
    if name.as_str().is_some_and(|name| !name.is_empty())
        && let Some(labels) = object_mut(&mut object["metadata"], "labels")
    {
        labels.insert(LABEL.to_owned(), name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_namespace_is_active_and_holds_on() {
        let mut made = json!({"metadata": {"name": "n"}, "spec": {}, "status": {}});
        Namespaces.default(&mut made);
        Namespaces.prepare_create(&mut made);
        let expected = json!({
            "metadata": {"name": "n", "labels": {LABEL: "n"}},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"},
        });
        assert_eq!(made, expected);
        assert!(Namespaces.validate_create(&made).is_empty());
    }

    #[test]
    fn the_phase_follows_the_deletion() {
        let mut new = json!({"metadata": {}, "status": {"phase": "Terminating"}});
        let told = Namespaces.validate_update(&new, &new, Part::Status);
        assert_eq!(
            told[0].to_string(),
            "status.Phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"
        );
        new["metadata"]["deletionTimestamp"] = json!("now");
        assert!(Namespaces.validate_update(&new, &new, Part::Status).is_empty());
    }
}
