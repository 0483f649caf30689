//! Jobs: their defaults, the selector they are given, what may change.

mod status;
mod validate;

use serde_json::{Value, json};
use trainyard_schema::{FieldError, golang};

use super::{
    count_generation,
    json::{fill, keep, object_mut},
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
        errors.extend(validate::job(object));
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
            return status::change(new, old);
        }
        let mut errors = metadata::again(&new["metadata"], true, self);
        errors.extend(validate::job(new));
        errors.extend(validate::change(new, old));
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        pods::template_warnings(&object["spec"]["template"]["spec"], "spec.template.spec")
    }

    fn not_selectable(&self, field: &str) -> String {
        format!("field label {} not supported for Job", golang::quote(field))
    }

    fn leaves_dependents(&self) -> Option<&'static str> {
        Some(
            "child pods are preserved by default when jobs are deleted; set \
             propagationPolicy=Background to remove them or set propagationPolicy=Orphan to \
             suppress this warning",
        )
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
    fn what_is_not_done_is_refused() {
        let mut made = job("Never");
        made["spec"]["podFailurePolicy"] = json!({"rules": []});
        made["spec"]["podReplacementPolicy"] = json!("Failed");
        made["spec"]["managedBy"] = json!("example.com/me");
        let words = "not supported by this server; leave it out, or apply the job to a \
                     Kubernetes cluster";
        assert_eq!(
            told(&Jobs.validate_create(&made)),
            [
                format!("spec.podFailurePolicy: Forbidden: {words}"),
                format!("spec.managedBy: Forbidden: {words}"),
            ]
        );
        let mut made = job("Never");
        made["spec"]["podReplacementPolicy"] = json!("Failed");
        assert_eq!(
            told(&Jobs.validate_create(&made)),
            [format!("spec.podReplacementPolicy: Forbidden: \"Failed\" is {words}")]
        );
    }

    #[test]
    fn a_waiting_job_may_move() {
        let mut old = job("Never");
        old["spec"]["suspend"] = json!(true);
        let mut new = old.clone();
        new["spec"]["template"]["spec"]["nodeSelector"] = json!({"a": "b"});
        new["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": {}});
        new["spec"]["template"]["spec"]["containers"][0]["resources"] =
            json!({"limits": {"cpu": "1"}});
        let errors = |new: &Value| validate::change(new, &old).len();
        assert_eq!(told(&validate::change(&new, &old)), Vec::<String>::new());
        new["spec"]["template"]["spec"]["affinity"] = json!({"podAffinity": {}});
        assert_eq!(errors(&new), 1);
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
