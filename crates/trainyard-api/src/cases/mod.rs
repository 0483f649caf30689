//! Jobs that are accepted and jobs that are refused, as data.
//!
//! The same cases are put to our own evaluation of the definition and to a real API server, so that
//! the two can never disagree in silence. Owns only the cases; must not evaluate them.

mod fields;
mod replicas;

use serde_json::{Value, json};

use crate::names;

/// One job and what becomes of it.
#[derive(Debug, Clone)]
pub struct Case {
    /// What the case is about; starts with the version.
    pub name: String,
    /// The whole job.
    pub object: Value,
    /// The job that it replaces; a creation when there is none.
    pub old: Option<Value>,
    /// Part of the message with which it is refused; accepted when there is none.
    pub refused: Option<String>,
}

/// All cases, for every served version. Jobs of creations share names; those of updates do not.
#[must_use]
pub fn validation_cases() -> Vec<Case> {
    let mut drafts = replicas::drafts();
    drafts.extend(fields::drafts());
    let mut cases = Vec::new();
    for version in [names::VERSION].iter().chain(&names::LEGACY_VERSIONS) {
        for (index, draft) in drafts.iter().enumerate() {
            if draft.complete_only && *version != names::VERSION {
                continue;
            }
            let mut case = Case {
                name: format!("{version}: {}", draft.name),
                object: draft.object.clone(),
                old: draft.old.clone(),
                refused: draft.refused.map(str::to_owned),
            };
            for object in [Some(&mut case.object), case.old.as_mut()].into_iter().flatten() {
                object["apiVersion"] = json!(format!("{}/{version}", names::GROUP));
                if draft.old.is_some() && object["metadata"]["name"] == "mnist" {
                    object["metadata"]["name"] = json!(format!("update-{index}-{version}"));
                }
            }
            cases.push(case);
        }
    }
    cases
}

/// A case before it is written out for every version.
struct Draft {
    name: &'static str,
    object: Value,
    old: Option<Value>,
    refused: Option<&'static str>,
    /// Depends on the complete pod template, which only the stored version has.
    complete_only: bool,
}

impl Draft {
    fn only_in_v1(mut self) -> Self {
        self.complete_only = true;
        self
    }

    fn after(mut self, change: impl FnOnce(&mut Value)) -> Self {
        let mut old = job();
        change(&mut old);
        self.old = Some(old);
        self
    }
}

/// A job that is accepted after the change.
fn accepted(name: &'static str, change: impl FnOnce(&mut Value)) -> Draft {
    let mut object = job();
    change(&mut object);
    Draft { name, object, old: None, refused: None, complete_only: false }
}

/// A job that is refused after the change.
fn refused(name: &'static str, message: &'static str, change: impl FnOnce(&mut Value)) -> Draft {
    Draft { refused: Some(message), ..accepted(name, change) }
}

/// A replica type with the usual container.
fn replica(count: i64) -> Value {
    json!({
        "replicas": count,
        "restartPolicy": "OnFailure",
        "template": {"spec": {"containers": [
            {"name": "tensorflow", "image": "tensorflow/tensorflow:2.21.0"},
        ]}},
    })
}

/// The job that every case starts from.
fn job() -> Value {
    json!({
        "apiVersion": names::API_VERSION,
        "kind": names::KIND,
        "metadata": {"name": "mnist"},
        "spec": {"tfReplicaSpecs": {"PS": replica(1), "Worker": replica(2)}},
    })
}

fn remove(value: &mut Value, field: &str) {
    if let Some(fields) = value.as_object_mut() {
        fields.remove(field);
    }
}
