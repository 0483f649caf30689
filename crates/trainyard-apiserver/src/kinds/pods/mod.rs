//! Pods: what is special about them.
//!
//! Owns the life of a pod object from its creation to its deletion. Must not know how pods run.

mod admit;
mod bind;
mod containers;
mod defaults;
mod env;
pub(crate) mod probes;
pub(crate) mod resources;
pub(crate) mod scheduling;
pub(crate) mod spec;
mod update;
mod volumes;

use serde_json::{Value, json};
use trainyard_schema::FieldError;

pub(crate) use bind::{bind, disrupted};
pub(crate) use defaults::{pod_spec as default_spec, round_up};

use super::{
    json::{fill, items, items_mut, keep, text},
    metadata, naming,
};
use crate::{
    failure::Failure,
    kind::{Grace, Part, Rules, World},
};

/// The rules of pods.
pub(super) struct Pods;

const SELECTABLE: [&str; 10] = [
    "spec.nodeName",
    "spec.host",
    "spec.restartPolicy",
    "spec.schedulerName",
    "spec.serviceAccountName",
    "spec.hostNetwork",
    "status.phase",
    "status.podIP",
    "status.podIPs",
    "status.nominatedNodeName",
];

impl Rules for Pods {
    fn default(&self, object: &mut Value) {
        defaults::pod(object);
    }

    fn admit(&self, object: &mut Value, world: &dyn World) -> Result<(), Failure> {
        admit::admit(object, world)
    }

    fn prepare_create(&self, object: &mut Value) {
        object["metadata"]["generation"] = json!(1);
        let class = resources::class_of_service(&object["spec"]);
        object["status"] = json!({"phase": "Pending", "qosClass": class});
        if !items(&object["spec"], "schedulingGates").is_empty() {
            object["status"]["conditions"] = json!([{
                "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": null, "lastTransitionTime": object["metadata"]["creationTimestamp"],
            }]);
        }
    }

    fn validate_create(&self, object: &Value) -> Vec<FieldError> {
        let spec = &object["spec"];
        let mut errors = metadata::known_finalizers(&object["metadata"]);
        errors.extend(spec::validate(spec, "spec", true));
        errors.extend(containers::validate_images(spec, "spec"));
        if !items(spec, "ephemeralContainers").is_empty() {
            let words = "cannot be set on create";
            errors.push(FieldError::forbidden("spec.ephemeralContainers", words));
        }
        if !text(spec, "nodeName").is_empty() && !items(spec, "schedulingGates").is_empty() {
            let words = "cannot be set until all schedulingGates have been cleared";
            errors.push(FieldError::forbidden("spec.nodeName", words));
        }
        errors
    }

    fn prepare_update(&self, new: &mut Value, old: &Value, part: Part) {
        if part == Part::Status {
            keep(new, old, "spec");
            keep(&mut new["metadata"], &old["metadata"], "ownerReferences");
            if text(&new["status"], "qosClass").is_empty() {
                keep(&mut new["status"], &old["status"], "qosClass");
            }
            keep_observed(&mut new["status"], &old["status"]);
            return;
        }
        keep(new, old, "status");
        defaults::keep_admitted(&mut new["spec"], &old["spec"]);
        admit::tolerations(&mut new["spec"]);
        if new["spec"] != old["spec"] {
            super::count_generation(new, old);
        }
    }

    fn validate_update(&self, new: &Value, old: &Value, part: Part) -> Vec<FieldError> {
        if part == Part::Status {
            return update::validate_status(new, old);
        }
        let mut errors = metadata::again(&new["metadata"], true, self);
        errors.extend(update::validate(new, old));
        errors
    }

    fn warnings(&self, object: &Value) -> Vec<String> {
        warnings(object)
    }

    fn not_selectable(&self, field: &str) -> String {
        format!("field label not supported: {field}")
    }

    fn is_selectable(&self, field: &str) -> bool {
        SELECTABLE.contains(&field)
    }

    fn fields(&self, object: &Value) -> Vec<(Box<str>, Box<str>)> {
        let (spec, status) = (&object["spec"], &object["status"]);
        let host_network = spec["hostNetwork"].as_bool() == Some(true);
        vec![
            ("spec.nodeName".into(), text(spec, "nodeName").into()),
            ("spec.host".into(), text(spec, "nodeName").into()),
            ("spec.restartPolicy".into(), text(spec, "restartPolicy").into()),
            ("spec.schedulerName".into(), text(spec, "schedulerName").into()),
            ("spec.serviceAccountName".into(), text(spec, "serviceAccountName").into()),
            ("spec.hostNetwork".into(), host_network.to_string().into()),
            ("status.phase".into(), text(status, "phase").into()),
            ("status.podIP".into(), text(status, "podIP").into()),
            ("status.nominatedNodeName".into(), text(status, "nominatedNodeName").into()),
        ]
    }

    fn grace(&self, object: &Value, asked: Option<i64>) -> Grace {
        let (spec, status) = (&object["spec"], &object["status"]);
        let own = spec["terminationGracePeriodSeconds"].as_i64().unwrap_or(0);
        let ended = matches!(text(status, "phase"), "Failed" | "Succeeded");
        let seconds = match asked.unwrap_or(own) {
            _ if text(spec, "nodeName").is_empty() || ended => 0,
            seconds if seconds < 0 => 1,
            seconds => seconds,
        };
        Grace::Seconds(seconds)
    }
}

/// What a status was about is remembered when its writer does not say.
fn keep_observed(new: &mut Value, old: &Value) {
    let key = "observedGeneration";
    if new.get(key).is_none() {
        keep(new, old, key);
    }
    for condition in items_mut(new, "conditions") {
        if condition.get(key).is_some() {
            continue;
        }
        let before = items(old, "conditions").iter().find(|one| one["type"] == condition["type"]);
        if let Some(generation) = before.and_then(|before| before.get(key)) {
            fill(condition, key, generation.clone());
        }
    }
}

fn warnings(pod: &Value) -> Vec<String> {
    let mut warnings = Vec::new();
    let faults = naming::label(text(&pod["metadata"], "name"));
    if !faults.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{}]",
            faults.join(" ")
        ));
    }
    warnings.extend(template_warnings(&pod["spec"], "spec"));
    warnings
}

/// Warnings about a pod or a template of pods.
pub(crate) fn template_warnings(spec: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for key in ["initContainers", "containers"] {
        for (at, container) in items(spec, key).iter().enumerate() {
            let mut names: Vec<&str> = Vec::new();
            for (variable_at, variable) in items(container, "env").iter().enumerate() {
                let name = text(variable, "name");
                let reference = format!("$({name})");
                let value = text(variable, "value");
                let hides = variable.get("valueFrom").is_some()
                    || value == reference
                    || !value.contains(&reference);
                if names.contains(&name) && hides {
                    warnings.push(format!(
                        "{path}.{key}[{at}].env[{variable_at}]: hides previous definition of {name:?}, which may be dropped when using apply"
                    ));
                }
                names.push(name);
            }
        }
    }
    warnings
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
