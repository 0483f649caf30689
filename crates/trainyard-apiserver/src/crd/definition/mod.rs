//! A definition of a custom resource: its defaults, what is wrong with one, and whether its names
//! are accepted.
//!
//! Owns the order of the checks, which is the real server's, as are the words. Must not know the
//! objects that a definition describes.

mod defaults;
mod go_text;
mod lists_of;
mod names;
mod nested;
mod openapi;
mod parts;
mod rules;
mod spec;
mod structural;

use serde_json::{Value, json};
use trainyard_schema::{FieldError, golang};

pub(crate) use self::names::{established, is_established};
use crate::kind::{Part, Rules};

/// What is wrong with a definition, its metadata apart; `old` is what it replaces.
pub(crate) fn check(definition: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let spec = &definition["spec"];
    let mut errors = Vec::new();
    if old.is_none() {
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        let (plural, group) = (parts::text(&spec["names"]["plural"]), parts::text(&spec["group"]));
        if name != format!("{plural}.{group}") {
            let words = "must be spec.names.plural+\".\"+spec.group";
            errors.push(FieldError::invalid("metadata.name", name, words));
        }
    }
    errors.extend(spec::check(spec, old.map(|old| &old["spec"])));
    if let Some(old) = old {
        errors.extend(unchangeable(definition, old));
    }
    let accepted = &definition["status"]["acceptedNames"];
    errors.extend(names::check(accepted, "status.acceptedNames"));
    errors.extend(stored_versions(definition));
    errors.extend(approval(definition, old));
    let preserved = |definition: &Value| definition["spec"]["preserveUnknownFields"] == true;
    if preserved(definition) && !old.is_some_and(preserved) {
        let words = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
            spec.versions[*].schema instead";
        errors.push(FieldError::invalid("spec.preserveUnknownFields", true, words));
    }
    errors
}

/// What a change may not touch: it decides where objects are stored.
fn unchangeable(definition: &Value, old: &Value) -> Vec<FieldError> {
    let mut fixed =
        vec![("/spec/group", "spec.group"), ("/spec/names/plural", "spec.names.plural")];
    if is_established(old) {
        fixed
            .splice(0..0, [("/spec/scope", "spec.scope"), ("/spec/names/kind", "spec.names.kind")]);
    }
    fixed
        .into_iter()
        .filter(|(pointer, _)| definition.pointer(pointer) != old.pointer(pointer))
        .map(|(pointer, path)| {
            let value = definition.pointer(pointer).cloned().unwrap_or_default();
            FieldError::invalid(path, value, "field is immutable")
        })
        .collect()
}

fn stored_versions(definition: &Value) -> Vec<FieldError> {
    let path = "status.storedVersions";
    let stored = &definition["status"]["storedVersions"];
    let names: Vec<&str> = parts::list(stored).iter().filter_map(Value::as_str).collect();
    if names.is_empty() {
        let words = "must have at least one stored version";
        return vec![FieldError::invalid(path, stored.clone(), words)];
    }
    let versions = parts::list(&definition["spec"]["versions"]);
    let known: Vec<&str> = versions.iter().map(|version| parts::text(&version["name"])).collect();
    let mut errors: Vec<_> = versions
        .iter()
        .filter(|version| version["storage"] == true)
        .map(|version| parts::text(&version["name"]))
        .filter(|name| !names.contains(name))
        .map(|name| {
            let words = format!("must have the storage version {name}");
            FieldError::invalid(path, stored.clone(), words)
        })
        .collect();
    let gone = names.iter().enumerate().filter(|(_, name)| !known.contains(name));
    errors.extend(gone.map(|(index, name)| {
        let words = format!(
            "missing from spec.versions; {name} was previously a storage version, and must remain \
             in spec.versions until a storage migration ensures no data remains persisted in \
             {name} and removes {name} from status.storedVersions"
        );
        FieldError::invalid(format!("{path}[{index}]"), *name, words)
    }));
    errors
}

/// Groups of the Kubernetes project itself need its approval.
fn approval(definition: &Value, old: Option<&Value>) -> Option<FieldError> {
    const KEY: &str = "api-approved.kubernetes.io";
    const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

    let group = parts::text(&definition["spec"]["group"]);
    let protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|owner| group == *owner || group.ends_with(&format!(".{owner}")));
    let said =
        |definition: &Value| parts::text(&definition["metadata"]["annotations"][KEY]).to_owned();
    let now = said(definition);
    let is_address = now.split_once("://").is_some_and(|(scheme, rest)| {
        !scheme.is_empty() && !rest.is_empty() && !rest.starts_with('/')
    });
    if !protected || now.starts_with("unapproved") || is_address {
        return None;
    }
    if old.is_some_and(|old| said(old) == now) {
        return None;
    }
    let path = format!("metadata.annotations[{KEY}]");
    let key = golang::quote(KEY);
    Some(if now.is_empty() {
        let words = format!("protected groups must have approval annotation {key}, {SEE}");
        FieldError::required(path, words)
    } else {
        let words = format!(
            "protected groups must have approval annotation {key} with either a URL or a reason \
             starting with \"unapproved\", {SEE}"
        );
        FieldError::invalid(path, now, words)
    })
}

/// Fills in what is left out.
pub(crate) fn default(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    let names = &mut spec["names"];
    if let Some(kind) = names["kind"].as_str().map(str::to_owned).filter(|kind| !kind.is_empty()) {
        if parts::text(&names["singular"]).is_empty() {
            names["singular"] = kind.to_lowercase().into();
        }
        if parts::text(&names["listKind"]).is_empty() {
            names["listKind"] = format!("{kind}List").into();
        }
    }
    if spec["conversion"].is_null() {
        spec["conversion"] = json!({"strategy": "None"});
    }
    let service = spec.pointer_mut("/conversion/webhook/clientConfig/service");
    if let Some(service) = service.filter(|service| service.is_object())
        && service["port"].is_null()
    {
        service["port"] = json!(443);
    }
    remember_stored_version(
        definition,
        parts::list(&definition["status"]["storedVersions"]).is_empty(),
    );
}

/// Adds the stored version to those in which objects may be stored.
fn remember_stored_version(definition: &mut Value, wanted: bool) {
    let versions = parts::list(&definition["spec"]["versions"]);
    let stored = versions.iter().find(|version| version["storage"] == true);
    let name = stored.and_then(|version| version["name"].as_str()).map(str::to_owned);
    let Some(name) = name.filter(|_| wanted && definition.is_object()) else { return };
    if !definition["status"].is_object() {
        definition["status"] = json!({});
    }
    match definition["status"]["storedVersions"].as_array_mut() {
        Some(list) if list.iter().any(|known| known == name.as_str()) => {}
        Some(list) => list.push(name.into()),
        None => definition["status"]["storedVersions"] = json!([name]),
    }
}

/// What the verbs ask of definitions themselves.
pub(crate) struct DefinitionRules;

impl Rules for DefinitionRules {
    fn default(&self, object: &mut Value) {
        default(object);
    }

    fn prepare_create(&self, object: &mut Value) {
        if object["metadata"].is_object() {
            object["metadata"]["generation"] = json!(1);
        }
        if object.is_object() {
            object["status"] = json!({});
            remember_stored_version(object, true);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        check(object, None)
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        if !new.is_object() || !new["metadata"].is_object() {
            return;
        }
        match part {
            Part::Main => {
                new["status"] = old["status"].clone();
                let before = old["metadata"]["generation"].as_i64().unwrap_or(0);
                let changed = i64::from(new["spec"] != old["spec"]);
                new["metadata"]["generation"] = json!(before.saturating_add(changed));
                remember_stored_version(new, true);
            }
            Part::Status => {
                new["spec"] = old["spec"].clone();
                new["metadata"]["generation"] = old["metadata"]["generation"].clone();
            }
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, part: Part) -> Vec<FieldError> {
        match part {
            Part::Main => check(new, Some(old)),
            Part::Status => names::check(&new["status"]["acceptedNames"], "status.acceptedNames"),
        }
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        spec::unknown_formats(&object["spec"])
            .iter()
            .map(|format| format!("unrecognized format {}", golang::quote(format)))
            .collect()
    }
}

#[cfg(test)]
mod tests;
