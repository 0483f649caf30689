//! Merge patch (RFC 7386): an object like the target, with null for what goes.
//!
//! With one liberty that the API server's library takes: nulls inside the lists of what is new are
//! dropped from their objects, too. Must not know other patches.

use serde_json::{Map, Value};

use super::{PatchError, check_depth, mismatch};

/// The object that the patch makes of this one.
pub fn merge_patch(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let Value::Object(members) = patch else {
        if patch.is_null() {
            return Err(PatchError::malformed("Invalid JSON Patch"));
        }
        let wrong = mismatch(patch, "value of type map[string]interface {}");
        return Err(PatchError::malformed(format!("error decoding patch: {wrong}")));
    };
    check_depth(patch)?;
    let mut merged = target.as_object().cloned().unwrap_or_default();
    merge(&mut merged, members);
    Ok(Value::Object(merged))
}

fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match (value, target.get_mut(name)) {
            (Value::Null, _) => {
                target.remove(name);
            }
            (Value::Object(members), Some(Value::Object(present))) => merge(present, members),
            (_, Some(present @ Value::Object(_))) => *present = value.clone(),
            (_, Some(present)) => *present = without_nulls(value),
            (_, None) => {
                target.insert(name.clone(), without_nulls(value));
            }
        }
    }
}

/// A value without the members that are null; elements that are null stay.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name.clone(), without_nulls(member)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
#[path = "merge_tests.rs"]
mod tests;
