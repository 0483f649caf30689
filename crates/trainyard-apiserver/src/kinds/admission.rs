//! What admission says about new objects of any kind: they belong into a namespace that is there.
//!
//! Owns that rule and its words.

use serde_json::Value;

use super::json::text;
use crate::{
    failure::{About, Cause, Failure},
    kind::{Kind, World},
};

/// Namespaces that nobody may delete.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Refuses a new object whose namespace is not there or is going away.
pub(crate) fn namespace(
    kind: &Kind,
    namespace: &str,
    object: &Value,
    world: &dyn World,
) -> Result<(), Failure> {
    if !kind.namespaced || namespace.is_empty() || kind.plural == "localsubjectaccessreviews" {
        return Ok(());
    }
    let Some(found) = world.get("namespaces", "", namespace) else {
        return Err(Failure::not_found(About::new("", "namespaces", namespace)));
    };
    if text(&found["status"], "phase") != "Terminating" {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    let mut failure = Failure::forbidden(about(kind, object), &why);
    failure.causes.push(Cause {
        reason: "NamespaceTerminating",
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    });
    Err(failure)
}

/// Refuses to delete what a cluster cannot be without.
pub(crate) fn delete(kind: &Kind, name: &str) -> Result<(), Failure> {
    if kind.storage == "namespaces" && IMMORTAL.contains(&name) {
        let about = About::new("", "namespaces", name);
        return Err(Failure::forbidden(about, "this namespace may not be deleted"));
    }
    Ok(())
}

/// What a refusal of a new object is about.
fn about(kind: &Kind, object: &Value) -> About {
    About::new(&kind.group, &kind.plural, told_name(object))
}

/// An object without a name yet is called by the beginning of it.
pub(crate) fn told_name(object: &Value) -> &str {
    let metadata = &object["metadata"];
    let named = [text(metadata, "name"), text(metadata, "generateName")];
    named.into_iter().find(|name| !name.is_empty()).unwrap_or("Unknown")
}
