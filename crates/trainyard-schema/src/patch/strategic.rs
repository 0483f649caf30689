//! Strategic merge patch: a merge patch that knows the types, so that lists are merged by key, with
//! directives (`$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`) for what a
//! mere likeness cannot say.
//!
//! Owns objects; lists are merged and ordered beside. Must not know other patches.

use serde_json::{Map, Value};

use super::{PatchError, Shape, check_depth, lists, mismatch};
use crate::golang;

pub(super) type Members = Map<String, Value>;
pub(super) type Outcome<T> = Result<T, PatchError>;

pub(super) const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
pub(super) const SET_ORDER: &str = "$setElementOrder";

/// The object that the patch makes of this one. Without a shape, or where it does not know a field,
/// lists are replaced.
pub fn strategic_merge<S: Shape>(
    target: &Value,
    patch: &Value,
    shape: Option<&S>,
) -> Result<Value, PatchError> {
    check_depth(patch)?;
    let patch = match patch {
        Value::Object(members) => members.clone(),
        Value::Null => Members::new(),
        other => {
            let wrong = mismatch(other, "value of type map[string]interface {}");
            return Err(PatchError::malformed(wrong));
        }
    };
    let original = target.as_object().cloned().unwrap_or_default();
    Ok(Value::Object(merge_objects(original, patch, shape)?))
}

/// Merges one object into another.
pub(super) fn merge_objects<S: Shape>(
    mut original: Members,
    mut patch: Members,
    shape: Option<&S>,
) -> Outcome<Members> {
    if let Some(directive) = patch.get(DIRECTIVE).cloned() {
        return whole(&directive, patch);
    }
    retain_keys(&mut original, &mut patch)?;
    set_orders(&mut original, &mut patch, shape)?;
    for (name, value) in patch {
        let deleted = name.starts_with(DELETE_FROM_LIST);
        let field = if deleted {
            of_directive(&name, DELETE_FROM_LIST)
                .ok_or_else(|| PatchError::malformed("invalid patch format of primitive list"))?
                .to_owned()
        } else {
            name
        };
        merge_field(&mut original, field, value, deleted, shape)?;
    }
    Ok(original)
}

/// `containers` of `$setElementOrder/containers`.
fn of_directive<'a>(name: &'a str, directive: &str) -> Option<&'a str> {
    name.split_once('/').filter(|(front, _)| *front == directive).map(|(_, field)| field)
}

fn merge_field<S: Shape>(
    original: &mut Members,
    field: String,
    value: Value,
    deleted: bool,
    shape: Option<&S>,
) -> Outcome<()> {
    if value.is_null() {
        original.remove(&field);
        return Ok(());
    }
    let shape = shape.and_then(|shape| shape.field(&field));
    let Some(present) = original.get_mut(&field) else {
        if !deleted && let Some(value) = without_directives(without_nulls(value)) {
            original.insert(field, value);
        }
        return Ok(());
    };
    match (present, value) {
        (Value::Object(present), Value::Object(value)) => {
            *present = merge_objects(std::mem::take(present), value, shape)?;
        }
        (Value::Array(present), Value::Array(value)) => {
            *present = lists::merge_lists(std::mem::take(present), value, shape, deleted)?;
        }
        (present, value) => {
            let same_type = golang::type_name(present) == golang::type_name(&value);
            if deleted && !same_type {
                return Ok(());
            }
            let value = if same_type { value } else { without_nulls(value) };
            match without_directives(value) {
                Some(value) => *present = value,
                None => {
                    original.remove(&field);
                }
            }
        }
    }
    Ok(())
}

/// An object whose patch is about the whole of it.
fn whole(directive: &Value, mut patch: Members) -> Outcome<Members> {
    match directive.as_str() {
        Some("replace") => {
            patch.remove(DIRECTIVE);
            Ok(patch)
        }
        Some("delete") => Ok(Members::new()),
        _ => Err(unknown_directive(directive, patch)),
    }
}

pub(super) fn unknown_directive(directive: &Value, patch: Members) -> PatchError {
    let named = match directive {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(_) | Value::Number(_) => {
            format!("%!s({}={})", golang::type_name(directive), golang::print(directive))
        }
        other => golang::print(other),
    };
    let patch = golang::print(&Value::Object(patch));
    PatchError::contradictory(format!("unknown patch type: {named} in map: {patch}"))
}

/// Carries out `$retainKeys`: whatever it does not name goes.
fn retain_keys(original: &mut Members, patch: &mut Members) -> Outcome<()> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let wrong = || PatchError::malformed("invalid patch format of retainKeys");
    let retained: std::collections::BTreeSet<&str> =
        retained.as_array().ok_or_else(wrong)?.iter().filter_map(Value::as_str).collect();
    let unnamed = patch.iter().any(|(name, value)| {
        !value.is_null()
            && !name.starts_with(DELETE_FROM_LIST)
            && !name.starts_with(SET_ORDER)
            && !retained.contains(name.as_str())
    });
    if unnamed {
        return Err(wrong());
    }
    original.retain(|name, _| retained.contains(name.as_str()));
    Ok(())
}

/// Carries out every `$setElementOrder/…`, with the list it is about.
fn set_orders<S: Shape>(
    original: &mut Members,
    patch: &mut Members,
    shape: Option<&S>,
) -> Outcome<()> {
    let directives: Vec<String> =
        patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let Some(order) = patch.remove(&directive) else { continue };
        let order = list(order)?;
        let field = of_directive(&directive, SET_ORDER)
            .ok_or_else(|| PatchError::malformed("invalid patch format of setElementOrder list"))?;
        let shape = match shape {
            Some(shape) => Some(shape.field(field).ok_or_else(|| {
                let (name, field) = (shape.name().unwrap_or_default(), golang::quote(field));
                PatchError::contradictory(format!(
                    "unable to find api field in struct {name} for the json field {field}"
                ))
            })?),
            None => None,
        };
        let live = original.get(field).cloned().map(list).transpose()?;
        let changes = patch.get(field).cloned().map(list).transpose()?;
        patch.remove(field);
        if let Some(merged) = lists::merge_in_order(live, changes, &order, shape)? {
            original.insert(field.to_owned(), Value::Array(merged));
        }
    }
    Ok(())
}

fn list(value: Value) -> Outcome<Vec<Value>> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(wrong_type("[]interface {}", &other)),
    }
}

pub(super) fn wrong_type(wanted: &str, found: &Value) -> PatchError {
    let found = golang::type_name(found);
    PatchError::contradictory(format!("expected a {wanted}, but received a {found}"))
}

/// A value without the members that are null, at any depth.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .filter(|(_, member)| !member.is_null())
            .map(|(name, member)| (name, without_nulls(member)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        scalar => scalar,
    }
}

/// A value without what was only said about it; `None` when it is nothing else. Other directives
/// than `$patch` stay, and are refused as unknown fields by whoever reads the object.
pub(super) fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(DIRECTIVE) => None,
        Value::Object(members) => Some(
            members
                .into_iter()
                .filter_map(|(name, member)| Some((name, without_directives(member)?)))
                .collect(),
        ),
        Value::Array(items) => Some(items.into_iter().filter_map(without_directives).collect()),
        scalar => Some(scalar),
    }
}

#[cfg(test)]
#[path = "strategic_tests.rs"]
mod tests;
