//! The one way in which a v1 job is written: canonical replica types, run policy fields under
//! `runPolicy`, restart policies on the replica, amounts that the schema takes.
//!
//! Owns what all versions with a map of replicas need. Must not know the list form.

use serde_json::{Map, Value, json};

use super::{ConvertError, Fields};
use crate::replica::ReplicaType;

/// Fields that stood directly under `spec` before there was a run policy.
const LIFTED: [&str; 4] =
    ["activeDeadlineSeconds", "backoffLimit", "cleanPodPolicy", "ttlSecondsAfterFinished"];

/// The entries under the spelling of v1.
pub(super) fn canonical_keys(entries: Fields) -> Result<Fields, ConvertError> {
    let mut canonical = Map::new();
    for (key, entry) in entries {
        let path = format!("spec.tfReplicaSpecs[{key}]");
        let kind = ReplicaType::parse(&key).ok_or_else(|| {
            ConvertError::field(
                &path,
                "is not a replica type; use Chief, Master, PS, Worker or Evaluator",
            )
        })?;
        if entry.is_null() {
            continue;
        }
        if canonical.insert(kind.as_str().to_owned(), entry).is_some() {
            return Err(ConvertError::field(
                path,
                format!("names {kind} a second time in another spelling; keep one"),
            ));
        }
    }
    Ok(canonical)
}

/// Puts every field of the specification where v1 has it.
pub(super) fn settle(spec: &mut Fields) -> Result<(), ConvertError> {
    lift_run_policy(spec)?;
    rename_tensorboard(spec)?;
    if let Some(Value::Object(replicas)) = spec.get_mut("tfReplicaSpecs") {
        for replica in replicas.values_mut().filter_map(Value::as_object_mut) {
            lift_restart_policy(replica);
            settle_amounts(replica);
        }
    }
    let least = spec
        .get_mut("runPolicy")
        .and_then(|policy| policy.pointer_mut("/schedulingPolicy/minResources"));
    if let Some(least) = least {
        amounts_as_text(least);
    }
    Ok(())
}

/// The nested field wins, as it does when the job runs.
fn lift_run_policy(spec: &mut Fields) -> Result<(), ConvertError> {
    let mut lifted = Map::new();
    for name in LIFTED {
        if let Some(value) = spec.remove(name).filter(|value| !value.is_null()) {
            lifted.insert(name.to_owned(), value);
        }
    }
    if spec.get("runPolicy").is_some_and(Value::is_null) {
        spec.remove("runPolicy");
    }
    if lifted.is_empty() {
        return Ok(());
    }
    let policy = spec.entry("runPolicy").or_insert_with(|| json!({}));
    let Some(policy) = policy.as_object_mut() else {
        return Err(ConvertError::field("spec.runPolicy", format!("{policy} must be an object")));
    };
    for (name, value) in lifted {
        if policy.get(&name).is_none_or(Value::is_null) {
            policy.insert(name, value);
        }
    }
    Ok(())
}

fn rename_tensorboard(spec: &mut Fields) -> Result<(), ConvertError> {
    let Some(board) = spec.remove("tensorboard").filter(|board| !board.is_null()) else {
        return Ok(());
    };
    if spec.contains_key("tensorBoard") {
        return Err(ConvertError::field(
            "spec.tensorboard",
            "means the same as spec.tensorBoard; keep one",
        ));
    }
    spec.insert("tensorBoard".to_owned(), board);
    Ok(())
}

/// A policy in the template counts only while the replica has none; written at one place it cannot
/// contradict itself.
fn lift_restart_policy(replica: &mut Fields) {
    let in_template = replica
        .get_mut("template")
        .and_then(|template| template.get_mut("spec"))
        .and_then(Value::as_object_mut)
        .and_then(|pod| pod.remove("restartPolicy"));
    let is_given = |policy: &Value| policy.as_str() != Some("") && !policy.is_null();
    if replica.get("restartPolicy").is_some_and(is_given) {
        return;
    }
    replica.remove("restartPolicy");
    if let Some(policy) = in_template.filter(is_given) {
        replica.insert("restartPolicy".to_owned(), policy);
    }
}

/// Pods take `cpu: 0.5`; custom resources take whole numbers and text only.
fn settle_amounts(replica: &mut Fields) {
    for list in ["containers", "initContainers"] {
        let containers = replica
            .get_mut("template")
            .and_then(|template| template.pointer_mut(&format!("/spec/{list}")))
            .and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            for amounts in ["limits", "requests"] {
                if let Some(amounts) = container.pointer_mut(&format!("/resources/{amounts}")) {
                    amounts_as_text(amounts);
                }
            }
        }
    }
}

fn amounts_as_text(amounts: &mut Value) {
    for amount in amounts.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if amount.is_f64() {
            *amount = json!(amount.to_string());
        }
    }
}
