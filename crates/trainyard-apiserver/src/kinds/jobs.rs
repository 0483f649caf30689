//! Jobs: their defaults, the selector they are given, what may change.

use serde_json::{Value, json};
use trainyard_schema::{FieldError, golang};

use super::{
    count_generation,
    json::{among, fill, keep, not_negative, object_mut, text, unchanged},
    metadata, pods,
};
use crate::kind::{Part, Rules};

/// The rules of jobs.
pub(super) struct Jobs;

const NAME_LABELS: [&str; 2] = ["job-name", "batch.kubernetes.io/job-name"];
const UID_LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

impl Rules for Jobs {
    fn default(&self, object: &mut Value) {
        let spec = &mut object["spec"];
        if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
            fill(spec, "completions", 1);
        }
        fill(spec, "parallelism", 1);
        let retries = if spec.get("backoffLimitPerIndex").is_some() { i32::MAX } else { 6 };
        fill(spec, "backoffLimit", retries);
        fill(spec, "completionMode", "NonIndexed");
        fill(spec, "suspend", false);
        let replaced =
            if spec.get("podFailurePolicy").is_some() { "Failed" } else { "TerminatingOrFailed" };
        fill(spec, "podReplacementPolicy", replaced);
        fill(spec, "manualSelector", false);
        pods::default_spec(&mut spec["template"]["spec"]);
        let labels = spec["template"]["metadata"].get("labels").cloned();
        if let Some(labels) = labels {
            fill(&mut object["metadata"], "labels", labels);
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        object["status"] = json!({});
        object["metadata"]["generation"] = json!(1);
        if object["spec"]["manualSelector"].as_bool() != Some(true) {
            select_own(object);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let mut errors = metadata::known_finalizers(&object["metadata"]);
        errors.extend(own_selector(object));
        errors.extend(validate(&object["spec"]));
        errors
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        if part == Part::Status {
            keep(new, old, "spec");
            return;
        }
        keep(new, old, "status");
        if new["spec"] != old["spec"] {
            count_generation(new, old);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, part: Part) -> Vec<FieldError> {
        if part == Part::Status {
            return Vec::new();
        }
        let (now, before) = (&new["spec"], &old["spec"]);
        let mut errors = metadata::again(&new["metadata"], true, self);
        errors.extend(validate(now));
        errors.extend(completions(now, before));
        errors.extend(unchanged(&now["selector"], &before["selector"], "spec.selector"));
        errors.extend(template(now, before, &old["status"]));
        for key in [
            "completionMode",
            "podFailurePolicy",
            "backoffLimitPerIndex",
            "managedBy",
            "successPolicy",
        ] {
            errors.extend(unchanged(&now[key], &before[key], &format!("spec.{key}")));
        }
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pods::template_warnings(&object["spec"]["template"]["spec"], "spec.template.spec")
    }

    fn not_selectable(&self, field: &str) -> String {
        format!("field label {} not supported for Job", golang::quote(field))
    }

    fn is_selectable(&self, field: &str) -> bool {
        field == "status.successful"
    }

    fn fields(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        let done = object["status"]["succeeded"].as_i64().unwrap_or(0);
        vec![("status.successful".into(), done.to_string().into())]
    }
}

/// The pods of a job are told by its identity.
fn select_own(job: &mut Value) {
    let name = job["metadata"]["name"].clone();
    let uid = job["metadata"]["uid"].clone();
    let template = &mut job["spec"]["template"];
    fill(template, "metadata", json!({}));
    if let Some(labels) = object_mut(&mut template["metadata"], "labels") {
        for key in NAME_LABELS {
            labels.entry(key).or_insert_with(|| name.clone());
        }
        for key in UID_LABELS {
            labels.entry(key).or_insert_with(|| uid.clone());
        }
    }
    let labels = template["metadata"]["labels"].clone();
    let spec = &mut job["spec"];
    fill(spec, "selector", json!({}));
    if let Some(selected) = object_mut(&mut spec["selector"], "matchLabels") {
        selected.entry(UID_LABELS[1]).or_insert(uid);
    }
    // A job without labels of its own has those of its pods; here they come last.
    fill(&mut job["metadata"], "labels", labels);
}

fn own_selector(job: &Value) -> Vec<FieldError> {
    let spec = &job["spec"];
    if spec["manualSelector"].as_bool() == Some(true) {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let labels = &spec["template"]["metadata"]["labels"];
    let expected = [
        (NAME_LABELS[1], text(&job["metadata"], "name")),
        (UID_LABELS[1], text(&job["metadata"], "uid")),
    ];
    for (key, value) in expected {
        let said = text(labels, key);
        if said != value {
            let path = format!("spec.template.metadata.labels[{key}]");
            let words = format!("must be '{value}'");
            errors.push(FieldError::invalid(path, labels.clone(), words));
        }
    }
    let generated = json!({"matchLabels": {UID_LABELS[1]: job["metadata"]["uid"]}});
    if spec["selector"] != generated {
        let selector = spec["selector"].clone();
        errors.push(FieldError::invalid(
            "spec.selector",
            selector,
            "`selector` not auto-generated",
        ));
    }
    errors
}

fn validate(spec: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let numbers = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
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
    } else if text(spec, "completionMode") == "NonIndexed" {
        for key in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(value) = spec.get(key) {
                let words = "requires indexed completion mode";
                errors.push(FieldError::invalid(format!("spec.{key}"), value.clone(), words));
            }
        }
    }
    errors.extend(validate_template(&spec["template"]));
    errors.extend(validate_selector(spec));
    errors
}

fn validate_template(template: &Value) -> Vec<FieldError> {
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

fn validate_selector(spec: &Value) -> Vec<FieldError> {
    let selector = &spec["selector"];
    let mut errors = pods::scheduling::label_selector(selector, "spec.selector");
    if selector.is_null() {
        errors.push(FieldError::required("spec.selector", ""));
    }
    let labels = &spec["template"]["metadata"]["labels"];
    let matched = !selector.is_null()
        && selector["matchLabels"]
            .as_object()
            .into_iter()
            .flatten()
            .all(|(key, value)| labels.get(key) == Some(value));
    if !matched {
        let words = "`selector` does not match template `labels`";
        let path = "spec.template.metadata.labels";
        errors.push(FieldError::invalid(path, labels.clone(), words));
    }
    errors
}

/// Indexed jobs may be resized, both numbers together.
fn completions(now: &Value, before: &Value) -> Option<FieldError> {
    let path = "spec.completions";
    if now["completions"] == before["completions"] {
        return None;
    }
    if text(now, "completionMode") != "Indexed" || now.get("completions").is_none() {
        return unchanged(&now["completions"], &before["completions"], path);
    }
    let words = "can only be modified in tandem with spec.parallelism";
    (now["completions"] != now["parallelism"])
        .then(|| FieldError::invalid(path, now["completions"].clone(), words))
}

/// Where pods may run can change while a job waits; the rest of its template cannot.
fn template(now: &Value, before: &Value, status: &Value) -> Option<FieldError> {
    let waits = before["suspend"].as_bool() == Some(true) && status["startTime"].is_null();
    let mut known = before["template"].clone();
    if waits {
        let new = &now["template"];
        for key in ["nodeSelector", "tolerations", "schedulingGates", "affinity"] {
            keep(&mut known["spec"], &new["spec"], key);
        }
        for key in ["annotations", "labels"] {
            keep(&mut known["metadata"], &new["metadata"], key);
        }
    }
    unchanged(&now["template"], &known, "spec.template")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(errors: &[FieldError]) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    fn job(policy: &str) -> Value {
        let mut made = json!({
            "metadata": {"name": "j", "namespace": "n", "uid": "u"},
            "spec": {"template": {"metadata": {}, "spec": {
                "restartPolicy": policy, "containers": [{"name": "a", "image": "b", "resources": {}}],
            }}},
        });
        Jobs.default(&mut made);
        Jobs.prepare_create(&mut made);
        made
    }

    #[test]
    fn a_new_job_selects_its_own_pods() {
        let made = job("Never");
        let labels = json!({
            "batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "j",
            "controller-uid": "u", "job-name": "j",
        });
        assert_eq!(made["metadata"]["labels"], labels);
        assert_eq!(made["spec"]["template"]["metadata"]["labels"], labels);
        let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}});
        assert_eq!(made["spec"]["selector"], selector);
        assert_eq!(made["spec"]["backoffLimit"], 6);
        assert_eq!(told(&Jobs.validate_create(&made)), Vec::<String>::new());
    }

    #[test]
    fn jobs_end() {
        assert_eq!(
            told(&Jobs.validate_create(&job("Always"))),
            [
                "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\""
            ]
        );
    }

    #[test]
    fn the_template_stays() {
        let old = job("Never");
        let mut new = old.clone();
        new["spec"]["parallelism"] = json!(3);
        assert_eq!(told(&Jobs.validate_update(&new, &old, Part::Main)), Vec::<String>::new());
        new["spec"]["completions"] = json!(3);
        new["spec"]["template"]["spec"]["containers"][0]["image"] = json!("c");
        let errors = told(&Jobs.validate_update(&new, &old, Part::Main));
        assert_eq!(errors[0], "spec.completions: Invalid value: 3: field is immutable");
        assert!(
            errors[1].starts_with("spec.template: Invalid value: {")
                && errors[1].ends_with(": field is immutable")
        );
    }
}
