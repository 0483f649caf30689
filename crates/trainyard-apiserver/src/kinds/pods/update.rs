//! What may change about a pod: almost nothing of its specification; its status as its node says.
//!
//! Owns those rules and their words.

use serde_json::Value;
use trainyard_schema::FieldError;

use super::{scheduling, spec};
use crate::kinds::{
    diff,
    json::{clear, items, keep, text},
    naming,
};

/// Checks a change of a pod, its metadata apart.
pub(super) fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let (new_spec, old_spec) = (&new["spec"], &old["spec"]);
    let mut errors = spec::validate(new_spec, "spec", true);
    errors.extend(super::containers::validate_images(new_spec, "spec"));
    for key in ["containers", "initContainers"] {
        if items(new_spec, key).len() != items(old_spec, key).len() {
            let words = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(format!("spec.{key}"), words));
            return errors;
        }
        for (at, container) in items(new_spec, key).iter().enumerate() {
            if text(container, "image").is_empty() {
                let path = format!("spec.{key}[{at}].image");
                errors.push(FieldError::required(path, ""));
            }
        }
    }
    match deadline(new_spec, old_spec) {
        Some((error, true)) => {
            errors.push(error);
            return errors;
        }
        Some((error, false)) => errors.push(error),
        None => {}
    }
    errors.extend(tolerations(new_spec, old_spec));
    errors.extend(gates(new_spec, old_spec));
    errors.extend(the_rest(new_spec, old_spec));
    errors
}

/// A deadline may come closer. Tells also whether nothing else is looked at.
fn deadline(new: &Value, old: &Value) -> Option<(FieldError, bool)> {
    let path = "spec.activeDeadlineSeconds";
    let before = old["activeDeadlineSeconds"].as_i64();
    let Some(now) = new["activeDeadlineSeconds"].as_i64() else {
        let words = "must not update from a positive integer to nil value";
        return before.map(|_| (FieldError::invalid(path, Value::Null, words), false));
    };
    if let Some(fault) = naming::in_range(now, 0, i64::from(i32::MAX)).pop() {
        return Some((FieldError::invalid(path, now, fault), true));
    }
    let words = "must be less than or equal to previous value";
    (before? < now).then(|| (FieldError::invalid(path, now, words), true))
}

/// Tolerations are only added; how long they last may change.
fn tolerations(new: &Value, old: &Value) -> Vec<FieldError> {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        clear(&mut toleration, "tolerationSeconds");
        toleration
    };
    let now: Vec<Value> = items(new, "tolerations").iter().map(without_seconds).collect();
    if items(old, "tolerations").iter().any(|before| !now.contains(&without_seconds(before))) {
        let words = "existing toleration can not be modified except its tolerationSeconds";
        return vec![FieldError::forbidden("spec.tolerations", words)];
    }
    scheduling::tolerations(&new["tolerations"], "spec.tolerations")
}

/// Gates are only removed.
fn gates(new: &Value, old: &Value) -> Vec<FieldError> {
    let known: Vec<&str> =
        items(old, "schedulingGates").iter().map(|gate| text(gate, "name")).collect();
    items(new, "schedulingGates")
        .iter()
        .enumerate()
        .filter(|(_, gate)| !known.contains(&text(gate, "name")))
        .map(|(at, gate)| {
            let words = format!(
                "only deletion is allowed, but found new scheduling gate '{}'",
                text(gate, "name")
            );
            FieldError::forbidden(format!("spec.schedulingGates[{at}].name"), words)
        })
        .collect()
}

/// Everything else stays.
fn the_rest(new: &Value, old: &Value) -> Option<FieldError> {
    if new == old {
        return None;
    }
    let mut munged = new.clone();
    for key in ["containers", "initContainers"] {
        let Some(containers) = munged.get_mut(key).and_then(Value::as_array_mut) else { continue };
        for (container, before) in containers.iter_mut().zip(items(old, key)) {
            keep(container, before, "image");
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        keep(&mut munged, old, key);
    }
    let grace = |spec: &Value| spec["terminationGracePeriodSeconds"].as_i64();
    if grace(old).is_some_and(|seconds| seconds < 0) && grace(&munged) == Some(1) {
        keep(&mut munged, old, "terminationGracePeriodSeconds");
    }
    if !items(old, "schedulingGates").is_empty() {
        keep(&mut munged, old, "nodeSelector");
    }
    if munged == *old {
        return None;
    }
    let words = format!(
        "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n{}",
        diff::unified(old, &munged)
    );
    Some(FieldError::forbidden("spec", words))
}

/// Checks a change of a pod's status, its metadata apart.
pub(super) fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let (now, before) = (&new["status"], &old["status"]);
    let mut errors = Vec::new();
    let nominated = text(now, "nominatedNodeName");
    if nominated != text(before, "nominatedNodeName") && !nominated.is_empty() {
        let path = "status.nominatedNodeName";
        let faults = naming::subdomain(nominated).into_iter();
        errors.extend(faults.map(|fault| FieldError::invalid(path, nominated, fault)));
        if !text(&old["spec"], "nodeName").is_empty() {
            let words = "may not be set on pods that are already bound to a node";
            errors.push(FieldError::forbidden(path, words));
        }
    }
    if now["qosClass"] != before["qosClass"] {
        let class = now["qosClass"].clone();
        errors.push(FieldError::invalid("status.qosClass", class, "field is immutable"));
    }
    errors.extend(transitions(now, before, &old["spec"], "containerStatuses", "containers"));
    errors.extend(transitions(
        now,
        before,
        &old["spec"],
        "initContainerStatuses",
        "initContainers",
    ));
    errors
}

/// A container that ended for good does not run again.
fn transitions(
    now: &Value,
    before: &Value,
    spec: &Value,
    statuses: &str,
    containers: &str,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (at, old) in items(before, statuses).iter().enumerate() {
        let Some(ended) = old["state"].get("terminated").filter(|ended| !ended.is_null()) else {
            continue;
        };
        let name = text(old, "name");
        let new = items(now, statuses).iter().find(|status| text(status, "name") == name);
        let runs_again = new.is_some_and(|status| status["state"]["terminated"].is_null());
        let container = items(spec, containers).iter().find(|one| text(one, "name") == name);
        if runs_again && !may_restart(container, spec, ended["exitCode"].as_i64().unwrap_or(0)) {
            let path = format!("status.{statuses}[{at}].state");
            let words = "may not be transitioned to non-terminated state";
            errors.push(FieldError::forbidden(path, words));
        }
    }
    errors
}

fn may_restart(container: Option<&Value>, spec: &Value, code: i64) -> bool {
    let Some(container) = container else { return false };
    if !items(container, "restartPolicyRules").is_empty() {
        return true;
    }
    let own = text(container, "restartPolicy");
    match if own.is_empty() { text(spec, "restartPolicy") } else { own } {
        "Always" => true,
        "OnFailure" => code != 0,
        _ => false,
    }
}
