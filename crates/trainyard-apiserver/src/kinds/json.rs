//! Short ways to look into objects and to fill them in.
//!
//! Must not know any kind.

use serde_json::{Map, Value};
use trainyard_schema::FieldError;

/// A text; empty when there is none.
pub(crate) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// A number; zero when there is none.
pub(crate) fn number(value: &Value, key: &str) -> i64 {
    value[key].as_i64().unwrap_or_default()
}

/// The elements of a list; none when there is no list.
pub(crate) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// The elements of a list, to change them.
pub(crate) fn items_mut<'a>(value: &'a mut Value, key: &str) -> &'a mut [Value] {
    value.get_mut(key).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// The members of an object; none when there is no object.
pub(crate) fn members<'a>(
    value: &'a Value,
    key: &str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value[key].as_object().into_iter().flatten()
}

/// Sets a field that is not there.
pub(crate) fn fill(object: &mut Value, key: &str, value: impl Into<Value>) {
    if let Some(members) = object.as_object_mut()
        && members.get(key).is_none_or(Value::is_null)
    {
        members.insert(key.to_owned(), value.into());
    }
}

/// Removes a field.
pub(crate) fn clear(object: &mut Value, key: &str) {
    if let Some(members) = object.as_object_mut() {
        members.remove(key);
    }
}

/// Sets a field to what it is in another object, absence included.
pub(crate) fn keep(object: &mut Value, other: &Value, key: &str) {
    match other.get(key) {
        Some(value) => {
            if let Some(members) = object.as_object_mut() {
                members.insert(key.to_owned(), value.clone());
            }
        }
        None => clear(object, key),
    }
}

/// The object under a key, made when there is none.
pub(crate) fn object_mut<'a>(
    value: &'a mut Value,
    key: &str,
) -> Option<&'a mut Map<String, Value>> {
    let members = value.as_object_mut()?;
    let child = members.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if child.is_null() {
        *child = Value::Object(Map::new());
    }
    child.as_object_mut()
}

/// A field that does not change once it is there.
pub(crate) fn unchanged(new: &Value, old: &Value, path: &str) -> Option<FieldError> {
    (new != old).then(|| FieldError::invalid(path, new.clone(), "field is immutable"))
}

/// A number that is not below zero.
pub(crate) fn not_negative(value: &Value, path: &str) -> Option<FieldError> {
    let number = value.as_i64().filter(|number| *number < 0)?;
    Some(FieldError::invalid(path, number, "must be greater than or equal to 0"))
}

/// A word among a few; nothing is said against an absent one.
pub(crate) fn among(value: &Value, allowed: &[&str], path: &str) -> Option<FieldError> {
    let word = value.as_str()?;
    (!allowed.contains(&word)).then(|| FieldError::not_supported(path, word, allowed))
}

/// The faults of a text, as errors.
pub(crate) fn faults(faults: Vec<String>, value: &str, path: &str) -> Vec<FieldError> {
    faults.into_iter().map(|fault| FieldError::invalid(path, value, fault)).collect()
}
