//! Manifests of every older version, rewritten as `kubeflow.org/v1`.
//!
//! Owns the order of the steps and the promise that what comes out is valid and stays as it is when
//! converted again. Works on JSON alone and must not know files, YAML or clusters. What an old
//! field asked for and the new version cannot say is an error, never dropped in silence.

mod list_form;
mod normal_form;

use serde_json::{Map, Value, json};
use thiserror::Error;

use crate::{Violation, names, validate};

/// Why a manifest cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ConvertError {
    /// One field stands in the way.
    #[error("{path}: {problem}")]
    Field {
        /// Where.
        path: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The converted job would be refused.
    #[error("the converted job is not valid: {}", listed(.0))]
    Invalid(Vec<Violation>),
}

impl ConvertError {
    fn field(path: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { path: path.into(), problem: problem.into() }
    }

    fn at_item(self, index: usize) -> Self {
        let within = |path: String| format!("items[{index}].{path}");
        match self {
            Self::Field { path, problem } => Self::Field { path: within(path), problem },
            Self::Invalid(mut violations) => {
                for violation in &mut violations {
                    violation.path = within(std::mem::take(&mut violation.path));
                }
                Self::Invalid(violations)
            }
        }
    }

    /// One word for logs and tests.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Field { .. } => "field",
            Self::Invalid(_) => "invalid",
        }
    }
}

fn listed(violations: &[Violation]) -> String {
    violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

type Fields = Map<String, Value>;

/// Rewrites a TFJob of any version as `kubeflow.org/v1`, alone or in a list. Every other document
/// comes back untouched.
pub fn convert(document: Value) -> Result<Value, ConvertError> {
    let Value::Object(mut object) = document else {
        return Ok(document);
    };
    let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
    let (kind, api_version) = (text("kind"), text("apiVersion"));
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_list =
        (kind == "List" && api_version == "v1") || (kind == "TFJobList" && group == names::GROUP);
    if is_list {
        return convert_items(object);
    }
    let is_job = ["TFJob", "TfJob"].contains(&kind);
    if !is_job || ![names::GROUP, "tensorflow.org"].contains(&group) {
        return Ok(Value::Object(object));
    }
    let known = [names::VERSION, "v1alpha1"].contains(&version)
        || names::LEGACY_VERSIONS.contains(&version);
    if !known {
        return Err(ConvertError::field(
            "apiVersion",
            format!(
                "{api_version:?} is not known; v1alpha1, {} and {} are",
                names::LEGACY_VERSIONS.join(", "),
                names::API_VERSION
            ),
        ));
    }
    if api_version != names::API_VERSION {
        // The status of an old version has another shape and says nothing about a new job.
        object.remove("status");
    }
    let Some(Value::Object(spec)) = object.remove("spec") else {
        let problem = "must be an object that names the replicas of the job";
        return Err(ConvertError::field("spec", problem));
    };
    object.insert("spec".to_owned(), Value::Object(convert_spec(spec)?));
    object.insert("apiVersion".to_owned(), json!(names::API_VERSION));
    object.insert("kind".to_owned(), json!(names::KIND));
    let job = Value::Object(object);
    validate(&job, None).map_err(ConvertError::Invalid)?;
    Ok(job)
}

fn convert_items(mut list: Fields) -> Result<Value, ConvertError> {
    if let Some(Value::Array(items)) = list.get_mut("items") {
        let mut changed = false;
        for (index, item) in items.iter_mut().enumerate() {
            let converted = convert(item.clone()).map_err(|error| error.at_item(index))?;
            changed |= converted != *item;
            *item = converted;
        }
        if changed && list.get("kind").and_then(Value::as_str) == Some("TFJobList") {
            list.insert("apiVersion".to_owned(), json!(names::API_VERSION));
        }
    }
    Ok(Value::Object(list))
}

fn convert_spec(mut spec: Fields) -> Result<Fields, ConvertError> {
    let (name, replicas) = take_replicas(&mut spec)?;
    let replicas = match replicas {
        Value::Array(entries) => list_form::convert(&name, entries, &mut spec)?,
        Value::Object(entries) => normal_form::canonical_keys(entries)?,
        other => {
            return Err(ConvertError::field(
                format!("spec.{name}"),
                format!("{other} must map replica types to replicas"),
            ));
        }
    };
    spec.insert("tfReplicaSpecs".to_owned(), Value::Object(replicas));
    normal_form::settle(&mut spec)?;
    Ok(spec)
}

/// The replicas under whichever name they are given.
fn take_replicas(spec: &mut Fields) -> Result<(String, Value), ConvertError> {
    let known = ["tfReplicaSpecs", "tfReplicaSpec", "replicaSpecs"];
    let mut given: Vec<String> = spec
        .keys()
        .filter(|key| known.iter().any(|name| name.eq_ignore_ascii_case(key)))
        .cloned()
        .collect();
    match (given.pop(), given.pop()) {
        (Some(name), None) => {
            let replicas = spec.remove(&name).unwrap_or_default();
            Ok((name, replicas))
        }
        (Some(one), Some(other)) => Err(ConvertError::field(
            format!("spec.{one}"),
            format!("means the same as spec.{other}; keep one"),
        )),
        _ => Err(ConvertError::field(
            "spec.tfReplicaSpecs",
            "is missing; give at least one of Chief, Master, PS, Worker, Evaluator",
        )),
    }
}

#[cfg(test)]
mod tests;
