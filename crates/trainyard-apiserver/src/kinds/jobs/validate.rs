//! What may stand in a job's spec, and what of it may change.

use serde_json::{Value, json};
use trainyard_schema::{FieldError, select::labels::Selector};

use super::{NAME_LABELS, UID_LABELS};
use crate::kinds::{
    json::{among, keep, not_negative, text, unchanged},
    metadata, naming, pods,
};

const MOST_PARALLEL: i64 = 100_000;
const UNSUPPORTED: &str =
    "not supported by this server; leave it out, or apply the job to a Kubernetes cluster";

/// What is wrong with a job, its metadata apart.
pub(super) fn job(job: &Value) -> Vec<FieldError> {
    let mut errors = own_selector(job);
    errors.extend(spec(&job["spec"]));
    errors.extend(host_name(job));
    // The real server knows more to say of these fields; what is wrong apart from them is said as there.
    if errors.is_empty() { unsupported(&job["spec"]) } else { errors }
}

/// A job that selects its own pods has the labels that it was given.
fn own_selector(job: &Value) -> Vec<FieldError> {
    let (meta, spec) = (&job["metadata"], &job["spec"]);
    if spec["manualSelector"].as_bool() == Some(true) || spec["selector"].is_null() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let labels = &spec["template"]["metadata"]["labels"];
    let mut expected = json!({});
    for (uid, name) in UID_LABELS.iter().zip(NAME_LABELS) {
        for (key, of) in [(*uid, "uid"), (name, "name")] {
            let value = text(meta, of);
            expected[key] = json!(value);
            let path = format!("spec.template.metadata.labels[{key}]");
            let words = format!("must be '{value}'");
            match labels[key].as_str() {
                None => errors.push(FieldError::required(path, words)),
                Some(said) if said != value => {
                    errors.push(FieldError::invalid(path, labels.clone(), words));
                }
                Some(_) => {}
            }
        }
    }
    let selector = Selector::from_label_selector(&spec["selector"]);
    if selector.is_ok_and(|selector| !selector.matches_value(Some(&expected))) {
        let words = "`selector` not auto-generated";
        errors.push(FieldError::invalid("spec.selector", spec["selector"].clone(), words));
    }
    errors
}

/// The pods of an indexed job are named after it and their index.
fn host_name(job: &Value) -> Option<FieldError> {
    let spec = &job["spec"];
    let completions = spec["completions"].as_i64().filter(|count| *count > 0)?;
    let name = text(&job["metadata"], "name");
    let last = format!("{name}-{}", completions - 1);
    let words = format!("will not able to create pod with invalid DNS label: {last}");
    let faulty = text(spec, "completionMode") == "Indexed" && !naming::label(&last).is_empty();
    faulty.then(|| FieldError::invalid("metadata.name", name, words))
}

/// What is wrong with a spec.
fn spec(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
    ];
    for key in numbers {
        errors.extend(not_negative(&spec[key], &format!("spec.{key}")));
    }
    let modes = ["NonIndexed", "Indexed"];
    errors.extend(among(&spec["completionMode"], &modes, "spec.completionMode"));
    if text(spec, "completionMode") == "Indexed" {
        if spec.get("completions").is_none() {
            let words = "when completion mode is Indexed";
            errors.push(FieldError::required("spec.completions", words));
        }
        if let Some(many) = spec["parallelism"].as_i64().filter(|count| *count > MOST_PARALLEL) {
            let words = "must be less than or equal to 100000 when completion mode is Indexed";
            errors.push(FieldError::invalid("spec.parallelism", many, words));
        }
    }
    let policies = ["Failed", "TerminatingOrFailed"];
    errors.extend(among(&spec["podReplacementPolicy"], &policies, "spec.podReplacementPolicy"));
    errors.extend(template(&spec["template"]));
    errors.extend(selector(spec));
    errors
}

/// Fields of the real server that mean nothing here. To take them and do otherwise would be worse
/// than to refuse them.
fn unsupported(spec: &Value) -> Vec<FieldError> {
    let fields = [
        "podFailurePolicy",
        "successPolicy",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
        "managedBy",
    ];
    let given = fields.into_iter().filter(|key| spec.get(key).is_some_and(|v| !v.is_null()));
    let mut errors: Vec<FieldError> =
        given.map(|key| FieldError::forbidden(format!("spec.{key}"), UNSUPPORTED)).collect();
    if text(spec, "podReplacementPolicy") == "Failed" && spec.get("podFailurePolicy").is_none() {
        let words = format!("\"Failed\" is {UNSUPPORTED}");
        errors.push(FieldError::forbidden("spec.podReplacementPolicy", words));
    }
    errors
}

fn template(template: &Value) -> Vec<FieldError> {
    let path = "spec.template";
    let mut errors = metadata::labels(&template["metadata"]["labels"], &format!("{path}.labels"));
    let annotations = &template["metadata"]["annotations"];
    errors.extend(metadata::annotations(annotations, &format!("{path}.annotations")));
    errors.extend(pods::spec::validate(&template["spec"], &format!("{path}.spec"), false));
    let path = "spec.template.spec.restartPolicy";
    match text(&template["spec"], "restartPolicy") {
        "OnFailure" | "Never" => {}
        "Always" | "" => {
            errors.push(FieldError::required(path, "valid values: \"OnFailure\", \"Never\""));
        }
        other => errors.push(FieldError::not_supported(path, other, &["OnFailure", "Never"])),
    }
    errors
}

fn selector(spec: &Value) -> Vec<FieldError> {
    let selector = &spec["selector"];
    let mut errors = if selector.is_null() {
        vec![FieldError::required("spec.selector", "")]
    } else {
        pods::scheduling::label_selector(selector, "spec.selector")
    };
    let labels = &spec["template"]["metadata"]["labels"];
    let matched = Selector::from_label_selector(selector)
        .map_or(true, |selector| selector.matches_value(Some(labels)));
    if !matched {
        let words = "`selector` does not match template `labels`";
        let path = "spec.template.metadata.labels";
        errors.push(FieldError::invalid(path, labels.clone(), words));
    }
    errors
}

/// What is wrong with a change of a job, beside what is wrong with the job.
pub(super) fn change(new: &Value, old: &Value) -> Vec<FieldError> {
    let (now, before) = (&new["spec"], &old["spec"]);
    // As on the real server, the spec is looked at with the job and with the change.
    let mut errors = spec(now);
    errors.extend(completions(now, before));
    errors.extend(unchanged(&now["selector"], &before["selector"], "spec.selector"));
    errors.extend(template_change(now, old));
    errors.extend(unchanged(
        &now["completionMode"],
        &before["completionMode"],
        "spec.completionMode",
    ));
    errors
}

/// Indexed jobs may be resized, both numbers together.
fn completions(now: &Value, before: &Value) -> Option<FieldError> {
    let path = "spec.completions";
    let (new, old) = (&now["completions"], &before["completions"]);
    if text(now, "completionMode") != "Indexed" {
        return unchanged(new, old, path);
    }
    let words = "can only be modified in tandem with spec.parallelism";
    (new != old && !new.is_null() && *new != now["parallelism"])
        .then(|| FieldError::invalid(path, new.clone(), words))
}

/// Where pods may run and what they need can change while a job waits; the rest of its template
/// cannot.
fn template_change(now: &Value, old: &Value) -> Option<FieldError> {
    let (before, status) = (&old["spec"], &old["status"]);
    let suspended = super::status::holds(status, "Suspended");
    let waits = before["suspend"].as_bool() == Some(true)
        && (status["startTime"].is_null() || suspended)
        && status["active"].as_i64().unwrap_or(0) == 0;
    let new = &now["template"];
    if !waits {
        return unchanged(new, &before["template"], "spec.template");
    }
    let mut known = before["template"]["spec"].clone();
    for key in ["nodeSelector", "tolerations", "schedulingGates"] {
        keep(&mut known, &new["spec"], key);
    }
    keep_node_affinity(&mut known, &new["spec"]);
    for key in ["containers", "initContainers"] {
        let there = known.get_mut(key).and_then(Value::as_array_mut);
        let (Some(there), Some(new)) = (there, new["spec"][key].as_array()) else { continue };
        if there.len() == new.len() {
            for (there, new) in there.iter_mut().zip(new) {
                if there["name"] == new["name"] {
                    keep(there, new, "resources");
                }
            }
        }
    }
    unchanged(&new["spec"], &known, "spec.template.spec")
}

/// Only the part of it that is about nodes may change.
fn keep_node_affinity(known: &mut Value, new: &Value) {
    let wanted = new["affinity"]["nodeAffinity"].clone();
    if known["affinity"].is_null() && new["affinity"].is_null() {
        return;
    }
    if known["affinity"].is_null() {
        known["affinity"] = json!({});
    }
    if let Some(affinity) = known["affinity"].as_object_mut() {
        affinity.remove("nodeAffinity");
        if !wanted.is_null() {
            affinity.insert("nodeAffinity".to_owned(), wanted);
        } else if affinity.is_empty() && new["affinity"].is_null() {
            known["affinity"] = Value::Null;
        }
    }
    if known["affinity"].is_null()
        && let Some(known) = known.as_object_mut()
    {
        known.remove("affinity");
    }
}
