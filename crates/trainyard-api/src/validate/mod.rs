//! Whether a TFJob is valid, by the definition's own schema and rules.
//!
//! What the API server of a cluster answers, this answers as well, without one: both read the same
//! [`crate::crd`]. Owns the entry point and the order of checks; must not hold a rule of its own.
//! One thing differs on purpose: an update is checked whole, while the API server lets a fault
//! pass that was there before.

use std::{fmt, sync::LazyLock};

use serde_json::{Value, json};
use trainyard_schema::{FieldError, structural::Schema};

use crate::{crd, names};

/// One reason why an object is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field, as `spec.tfReplicaSpecs.Worker.replicas`.
    pub path: String,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl Violation {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

impl From<FieldError> for Violation {
    fn from(error: FieldError) -> Self {
        let message = error.body();
        Self { path: error.path, message }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

impl std::error::Error for Violation {}

static COMPLETE: LazyLock<Option<Schema>> = LazyLock::new(|| read(names::VERSION));
static OPEN: LazyLock<Option<Schema>> = LazyLock::new(|| read(names::LEGACY_VERSIONS[0]));

/// The rules stand at the same places in every version, and the open schema declares exactly what
/// they look at: walking it keeps the rest of a pod template out of the evaluation.
static RULES: LazyLock<Option<Schema>> = LazyLock::new(|| {
    let mut schema = crd::tfjob_schema(names::LEGACY_VERSIONS[0])?;
    // No rule looks at what the operator writes.
    schema["properties"].as_object_mut()?.remove("status");
    Schema::parse(&schema).ok()
});

fn read(version: &str) -> Option<Schema> {
    crd::tfjob_schema(version).and_then(|schema| Schema::parse(&schema).ok())
}

/// Checks a TFJob of any served version; `old` is what it replaces, if it replaces something.
pub fn validate(object: &Value, old: Option<&Value>) -> Result<(), Vec<Violation>> {
    let violations = match (schema_of(object), RULES.as_ref()) {
        (Ok(schema), Some(rules)) => check(schema, rules, object, old),
        (Ok(schema), None) => check(schema, schema, object, old),
        (Err(violation), _) => vec![violation],
    };
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

fn schema_of(object: &Value) -> Result<&'static Schema, Violation> {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    if kind != names::KIND {
        return Err(Violation::new("kind", format!("{kind:?} is not supported; use TFJob")));
    }
    let api_version = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let version = api_version
        .strip_prefix(names::GROUP)
        .and_then(|rest| rest.strip_prefix('/'))
        .unwrap_or_default();
    let schema = if version == names::VERSION {
        COMPLETE.as_ref()
    } else if names::LEGACY_VERSIONS.contains(&version) {
        OPEN.as_ref()
    } else {
        None
    };
    schema.ok_or_else(|| {
        Violation::new(
            "apiVersion",
            format!(
                "{api_version:?} is not served; use {} or one of the older versions {}",
                names::API_VERSION,
                names::LEGACY_VERSIONS.join(", ")
            ),
        )
    })
}

/// Checks an object by a schema, and by the rules in `rules`, which is the same or a part of it.
pub(crate) fn check(
    schema: &Schema,
    rules: &Schema,
    object: &Value,
    old: Option<&Value>,
) -> Vec<Violation> {
    let mut object = object.clone();
    let mut violations = Vec::new();
    if let Err(violation) = settle_name(&mut object) {
        violations.push(violation);
    }
    schema.default(&mut object);
    let found = schema.validate(&object, None);
    // As on the API server: rules rely on types and choices being right.
    let blocking = found.iter().any(|error| error.fault.blocks_rules()) || !violations.is_empty();
    violations.extend(found.into_iter().map(Violation::from));
    if blocking {
        return violations;
    }
    let old = old.map(|old| {
        let mut old = old.clone();
        schema.default(&mut old);
        old
    });
    let broken = rules.rules_anew(&object, old.as_ref());
    violations.extend(broken.into_iter().map(Violation::from));
    violations
}

/// Gives the object the name that the API server would generate, as far as rules can tell.
fn settle_name(object: &mut Value) -> Result<(), Violation> {
    const RANDOM: &str = "xxxxx";
    let metadata = &object["metadata"];
    if !metadata.is_object() {
        return Err(Violation::new("metadata.name", "Required value: name or generateName"));
    }
    match (&metadata["name"], &metadata["generateName"]) {
        (Value::String(name), _) if !name.is_empty() => Ok(()),
        (Value::Null | Value::String(_), Value::String(prefix)) if !prefix.is_empty() => {
            let kept: String = prefix.chars().take(names::LABEL_MAX - RANDOM.len()).collect();
            object["metadata"]["name"] = json!(format!("{kept}{RANDOM}"));
            Ok(())
        }
        (Value::Null | Value::String(_), _) => {
            Err(Violation::new("metadata.name", "Required value: name or generateName is required"))
        }
        (other, _) => Err(Violation::new("metadata.name", format!("{other} must be a string"))),
    }
}

#[cfg(test)]
mod tests;
