//! Whether an object of one of Volcano's kinds is valid, by its definition's own schema and rules.
//!
//! Answers what the API server of a cluster answers. Owns the choice of the schema; must not hold a
//! rule of its own.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::Value;
use trainyard_schema::structural::Schema;

use super::{
    crd,
    kinds::{KINDS, Kind},
};
use crate::{Violation, validate::check};

static SCHEMAS: LazyLock<BTreeMap<&'static str, Schema>> = LazyLock::new(|| {
    let read = |kind: &'static Kind| Some((kind.name, Schema::parse(&crd::schema(kind)).ok()?));
    KINDS.into_iter().filter_map(read).collect()
});

/// The schema of a kind, read.
#[must_use]
pub fn schema(kind: &Kind) -> Option<&'static Schema> {
    SCHEMAS.get(kind.name)
}

/// Checks a Job, Command, PodGroup or Queue; `old` is what it replaces, if it replaces something.
pub fn validate(object: &Value, old: Option<&Value>) -> Result<(), Vec<Violation>> {
    let Some(schema) = Kind::of(object).and_then(schema) else {
        let text = |key: &str| object.get(key).and_then(Value::as_str).unwrap_or_default();
        let known = KINDS.map(|kind| format!("{} {}", kind.api_version(), kind.name)).join(", ");
        let told = format!(
            "{:?} of {:?} is not served; there are {known}",
            text("kind"),
            text("apiVersion"),
        );
        return Err(vec![Violation::new("kind", told)]);
    };
    let violations = check(schema, schema, object, old);
    if violations.is_empty() { Ok(()) } else { Err(violations) }
}

#[cfg(test)]
mod tests;
