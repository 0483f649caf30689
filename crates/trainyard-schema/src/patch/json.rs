//! JSON patch (RFC 6902): a list of operations, all of them or none.
//!
//! With the liberties that the API server's library takes: an index may count from the end, `replace`
//! also adds a member, and what an object lacks is null to `test` and `copy`. Must not know other
//! patches.

use serde_json::{Map, Value};

use super::{MAX_DEPTH, MAX_OPERATIONS, PatchError, check_depth, depth, mismatch};

/// How many bytes all copies of one patch may add.
const MAX_COPIED: usize = 3 * 1024 * 1024;
/// How many values all moves of one patch may carry, so that shuffling a large object to and fro ends.
const MAX_MOVED: usize = 4_000_000;

/// The object that the operations make of this one.
pub fn json_patch(target: &Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = operations(patch)?;
    check_depth(patch)?;
    if operations.len() > MAX_OPERATIONS {
        return Err(PatchError::TooLarge { most: MAX_OPERATIONS, count: operations.len() });
    }
    let mut work = Work { document: target.clone(), copied: 0, moved: 0 };
    for operation in operations {
        work.apply(operation).map_err(PatchError::does_not_apply)?;
    }
    Ok(work.document)
}

/// What strict field validation says of the operations: members that none has.
#[must_use]
pub fn json_patch_unknown_fields(patch: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (index, operation) in patch.as_array().into_iter().flatten().enumerate() {
        let members = operation.as_object().into_iter().flatten();
        for (name, _) in members {
            if !matches!(name.as_str(), "op" | "path" | "from" | "value") {
                faults.push(format!("json patch unknown field \"[{index}].{name}\""));
            }
        }
    }
    faults
}

/// The operations, when the patch is a list of objects with texts where texts belong.
fn operations(patch: &Value) -> Result<&[Value], PatchError> {
    let wrong = |value: &Value, place: &str| {
        PatchError::malformed(format!("error decoding patch: {}", mismatch(value, place)))
    };
    let operations = match patch {
        Value::Array(operations) => operations.as_slice(),
        Value::Null => &[],
        other => return Err(wrong(other, "value of type []handlers.jsonPatchOp")),
    };
    for operation in operations {
        let members = match operation {
            Value::Object(members) => members,
            Value::Null => continue,
            other => return Err(wrong(other, "value of type handlers.jsonPatchOp")),
        };
        for name in ["op", "path", "from"] {
            match members.get(name) {
                None | Some(Value::Null | Value::String(_)) => {}
                Some(other) => {
                    let place = format!("struct field jsonPatchOp.{name} of type string");
                    return Err(wrong(other, &place));
                }
            }
        }
    }
    Ok(operations)
}

struct Work {
    document: Value,
    copied: usize,
    moved: usize,
}

type Outcome<T = ()> = Result<T, String>;

impl Work {
    fn apply(&mut self, operation: &Value) -> Outcome {
        let text = |name: &str| operation.get(name).and_then(Value::as_str);
        let value = || operation.get("value").cloned().unwrap_or_default();
        let op = text("op").unwrap_or("unknown");
        let path = text("path")
            .ok_or_else(|| format!("{op} operation failed to decode path: missing value"));
        let from = || {
            let wrong = || {
                format!(
                    "{op} operation failed to decode from: operation, missing from field: missing value"
                )
            };
            text("from").ok_or_else(wrong)
        };
        match op {
            "add" => self.add(path?, value()),
            "remove" => self.remove(path?),
            "replace" => self.replace(path?, value()),
            "move" => self.shift(from()?, path),
            "test" => self.test(path?, &value()),
            "copy" => self.copy(from()?, path),
            other => Err(format!("Unexpected kind: {other}")),
        }
    }

    fn add(&mut self, path: &str, value: Value) -> Outcome {
        deep_enough(path, &value)?;
        let (place, key) = find(&mut self.document, path).ok_or_else(|| {
            format!("add operation does not apply: doc is missing path: \"{path}\": missing value")
        })?;
        insert(place, key, value).map_err(|why| format!("error in add for path: '{path}': {why}"))
    }

    fn remove(&mut self, path: &str) -> Outcome {
        let (place, key) = find(&mut self.document, path).ok_or_else(|| {
            format!(
                "remove operation does not apply: doc is missing path: \"{path}\": missing value"
            )
        })?;
        take(place, &key)
            .map(drop)
            .map_err(|why| format!("error in remove for path: '{path}': {why}"))
    }

    fn replace(&mut self, path: &str, value: Value) -> Outcome {
        deep_enough(path, &value)?;
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err("replace operation value must be object or array".to_owned());
            }
            self.document = value;
            return Ok(());
        }
        let (place, key) = find(&mut self.document, path).ok_or_else(|| {
            format!("replace operation does not apply: doc is missing path: {path}: missing value")
        })?;
        match place {
            Place::Object(members) => {
                members.insert(key, value);
            }
            Place::Array(items) => {
                let index = index(&key, items.len());
                let slot = index.ok().and_then(|index| items.get_mut(index));
                *slot.ok_or_else(|| {
                    format!(
                        "replace operation does not apply: doc is missing key: {path}: missing value"
                    )
                })? = value;
            }
        }
        Ok(())
    }

    fn shift(&mut self, from: &str, path: Outcome<&str>) -> Outcome {
        let (place, key) = find(&mut self.document, from).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let value =
            take(place, &key).map_err(|why| format!("error in move for path: '{key}': {why}"))?;
        let path = path?;
        self.moved += deep_enough(path, &value)?;
        if self.moved > MAX_MOVED {
            return Err(format!("the moves of this patch carry more than {MAX_MOVED} values"));
        }
        let (place, key) = find(&mut self.document, path).ok_or_else(|| {
            format!(
                "move operation does not apply: doc is missing destination path: {path}: missing value"
            )
        })?;
        insert(place, key, value).map_err(|why| format!("error in move for path: '{path}': {why}"))
    }

    fn copy(&mut self, from: &str, path: Outcome<&str>) -> Outcome {
        let (place, key) = find(&mut self.document, from).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing from path: {from}: missing value"
            )
        })?;
        let value = get(&place, &key)
            .map_err(|why| format!("error in copy for from: '{from}': {why}"))?
            .cloned()
            .unwrap_or_default();
        let path = path?;
        deep_enough(path, &value)?;
        let size = serde_json::to_vec(&value).map_or(0, |text| text.len());
        self.copied += if value.is_null() { 0 } else { size };
        if self.copied > MAX_COPIED {
            return Err(format!(
                "Unable to complete the copy, the accumulated size increase of copy is {}, exceeding the limit {MAX_COPIED}",
                self.copied
            ));
        }
        let (place, key) = find(&mut self.document, path).ok_or_else(|| {
            format!(
                "copy operation does not apply: doc is missing destination path: {path}: missing value"
            )
        })?;
        insert(place, key, value)
            .map_err(|why| format!("error while adding value during copy: {why}"))
    }

    fn test(&mut self, path: &str, value: &Value) -> Outcome {
        let failed = || format!("testing value {path} failed: test failed");
        if path.is_empty() {
            return if self.document == *value { Ok(()) } else { Err(failed()) };
        }
        let (place, key) = find(&mut self.document, path).ok_or_else(|| {
            format!("test operation does not apply: is missing path: {path}: missing value")
        })?;
        let found = get(&place, &key)
            .map_err(|why| format!("error in test for path: '{path}': {why}"))?
            .unwrap_or(&Value::Null);
        if found == value { Ok(()) } else { Err(failed()) }
    }
}

/// Refuses to nest more than can be read again; says how many values there are.
fn deep_enough(path: &str, value: &Value) -> Outcome<usize> {
    let above = path.matches('/').count();
    let (below, count) = depth(value, MAX_DEPTH);
    if above + below > MAX_DEPTH {
        return Err(format!("the object would be nested more than {MAX_DEPTH} levels deep"));
    }
    Ok(count)
}

/// What holds the value that a path names.
enum Place<'a> {
    Object(&'a mut Map<String, Value>),
    Array(&'a mut Vec<Value>),
}

/// The place that a path's last step is in, and that step.
fn find<'a>(document: &'a mut Value, path: &str) -> Option<(Place<'a>, String)> {
    // What stands before the first slash is not looked at.
    let (_, steps) = path.split_once('/')?;
    let (parents, last) = match steps.rsplit_once('/') {
        Some((parents, last)) => (Some(parents), last),
        None => (None, steps),
    };
    let mut at = document;
    for step in parents.into_iter().flat_map(|parents| parents.split('/')) {
        let step = unescaped(step);
        at = match at {
            Value::Object(members) => members.get_mut(&step)?,
            Value::Array(items) => {
                let index = index(&step, items.len()).ok()?;
                items.get_mut(index)?
            }
            _ => return None,
        };
    }
    let place = match at {
        Value::Object(members) => Place::Object(members),
        Value::Array(items) => Place::Array(items),
        _ => return None,
    };
    Some((place, unescaped(last)))
}

fn unescaped(step: &str) -> String {
    // From left to right, so that `~01` is `~1`.
    let mut plain = String::with_capacity(step.len());
    let mut rest = step;
    while let Some(at) = rest.find('~') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let (letter, length) = match rest.as_bytes().get(1) {
            Some(b'0') => ('~', 2),
            Some(b'1') => ('/', 2),
            _ => ('~', 1),
        };
        plain.push(letter);
        rest = &rest[length..];
    }
    plain.push_str(rest);
    plain
}

/// The index that a step names in a list of so many elements, counted from the end when negative.
fn index(step: &str, length: usize) -> Outcome<usize> {
    let wrong = || format!("strconv.Atoi: parsing {step:?}: invalid syntax");
    let number: i64 = step.parse().map_err(|_| wrong())?;
    let invalid = || format!("Unable to access invalid index: {number}: invalid index referenced");
    let counted = if number < 0 {
        number.checked_add_unsigned(length as u64).filter(|counted| *counted >= 0)
    } else {
        Some(number)
    };
    let index = counted.and_then(|counted| usize::try_from(counted).ok()).ok_or_else(invalid)?;
    if index >= length { Err(invalid()) } else { Ok(index) }
}

fn get<'a>(place: &'a Place<'_>, key: &str) -> Outcome<Option<&'a Value>> {
    match place {
        Place::Object(members) => Ok(members.get(key)),
        Place::Array(items) => Ok(items.get(index(key, items.len())?)),
    }
}

fn insert(place: Place<'_>, key: String, value: Value) -> Outcome {
    match place {
        Place::Object(members) => {
            members.insert(key, value);
        }
        Place::Array(items) if key == "-" => items.push(value),
        Place::Array(items) => {
            let at = index(&key, items.len() + 1).map_err(|why| match key.parse::<i64>() {
                Ok(_) => why,
                Err(_) => format!("value was not a proper array index: '{key}': {why}"),
            })?;
            items.insert(at, value);
        }
    }
    Ok(())
}

fn take(place: Place<'_>, key: &str) -> Outcome<Value> {
    match place {
        Place::Object(members) => members
            .remove(key)
            .ok_or_else(|| format!("Unable to remove nonexistent key: {key}: missing value")),
        Place::Array(items) => {
            let at = index(key, items.len())?;
            Ok(items.remove(at))
        }
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
