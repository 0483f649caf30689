//! The schema of `trainyard run -o json`, and whether an object follows it.
//!
//! Knows as much of JSON Schema as that file uses.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

/// Reads the schema that is published with the documentation.
pub(super) fn read() -> Result<Value> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/run-output.schema.json");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    Ok(serde_json::from_str(&text)?)
}

/// Checks an object by the row of its type.
pub(super) fn check(schema: &Value, object: &Value) -> Result<()> {
    let kind = object["type"].as_str().context("an object without a type")?;
    let rows = schema["oneOf"].as_array().context("the schema has no rows")?;
    let row = rows.iter().find(|row| row["properties"]["type"]["const"] == kind);
    let row = row.with_context(|| format!("no row for {kind:?}"))?;
    follow(row, object, kind).with_context(|| object.to_string())
}

fn follow(schema: &Value, value: &Value, place: &str) -> Result<()> {
    if let Some(wanted) = schema.get("const") {
        ensure!(value == wanted, "{place} is {value}, not {wanted}");
    }
    if let Some(allowed) = schema["enum"].as_array() {
        ensure!(allowed.contains(value), "{place} is {value}, none of {allowed:?}");
    }
    let kinds: Vec<&str> = match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let fits = |kind: &&str| match *kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        _ => false,
    };
    ensure!(kinds.is_empty() || kinds.iter().any(fits), "{place} is {value}, no {kinds:?}");
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        ensure!(value.get(name).is_some(), "{place} has no {name}");
    }
    for (name, member) in value.as_object().into_iter().flatten() {
        let place = format!("{place}.{name}");
        match schema["properties"].get(name) {
            Some(known) => follow(known, member, &place)?,
            None if schema["additionalProperties"] == false => {
                bail!("{place} is not in the schema")
            }
            None => follow(&schema["additionalProperties"], member, &place)?,
        }
    }
    for item in value.as_array().into_iter().flatten() {
        follow(&schema["items"], item, place)?;
    }
    Ok(())
}
