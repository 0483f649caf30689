//! The lists of a strategic merge: merged by key, added to as sets, or replaced.
//!
//! Must not know how objects are merged, but for calling it on elements.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::order::{self, Order, element_key};
use super::strategic::{
    DIRECTIVE, Members, Outcome, SET_ORDER, merge_objects, unknown_directive, without_directives,
    wrong_type,
};
use super::{PatchError, Shape};
use crate::golang;

/// Merges one list into another as its shape says.
pub(super) fn merge_lists<S: Shape>(
    original: Vec<Value>,
    patch: Vec<Value>,
    shape: Option<&S>,
    deleted: bool,
) -> Outcome<Vec<Value>> {
    // Deletions are carried out whatever the strategy.
    if !deleted && !shape.is_some_and(Shape::is_merged) {
        return Ok(patch);
    }
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let merge_key = shape.and_then(Shape::merge_key).unwrap_or_default();
    if !are_objects(&original, &patch)? {
        if deleted {
            let gone: BTreeSet<String> = patch.iter().map(Value::to_string).collect();
            return Ok(original
                .into_iter()
                .filter(|item| !gone.contains(&item.to_string()))
                .collect());
        }
        return merge_scalars(&original, &patch, merge_key);
    }
    if merge_key.is_empty() {
        return Err(PatchError::contradictory("cannot merge lists without merge key for struct"));
    }
    let (original, patch) = special_elements(original, patch, merge_key)?;
    merge_elements(original, &patch, merge_key, shape.and_then(Shape::element))
}

/// Whether the elements of two lists are objects; they must all be of one type.
fn are_objects(original: &[Value], patch: &[Value]) -> Outcome<bool> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else {
        return Err(PatchError::contradictory("no elements in any of the given slices"));
    };
    if first.is_array() {
        return Err(PatchError::does_not_apply("lists of lists are not supported"));
    }
    let wanted = golang::type_name(first);
    if first.is_null() || items.any(|item| golang::type_name(item) != wanted) {
        let both = Value::Array(vec![original.into(), patch.into()]);
        return Err(PatchError::contradictory(format!(
            "list element types are not identical: {}",
            golang::print(&both)
        )));
    }
    Ok(first.is_object())
}

fn merge_scalars(original: &[Value], patch: &[Value], merge_key: &str) -> Outcome<Vec<Value>> {
    let mut seen = BTreeSet::new();
    let both = original.iter().chain(patch);
    let merged: Vec<Value> = both.filter(|item| seen.insert(item.to_string())).cloned().collect();
    let by_patch = Order::of(patch, merge_key);
    let by_original = Order::of(original, merge_key);
    if !merge_key.is_empty() {
        // Only objects have keys.
        return Err(merged.first().map_or_else(
            || PatchError::contradictory("no elements in any of the given slices"),
            |item| wrong_type("map[string]interface {}", item),
        ));
    }
    let (named, others) = by_patch.partition(merged);
    Ok(order::interleave(named, others, &by_patch, &by_original))
}

/// Carries out the elements that are directives; what is left are the two lists to merge.
fn special_elements(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    merge_key: &str,
) -> Outcome<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut gone = BTreeSet::new();
    let mut replaces = false;
    for item in patch {
        let Value::Object(members) = item else { continue };
        let Some(directive) = members.get(DIRECTIVE) else {
            plain.push(Value::Object(members));
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let key = members.get(merge_key).ok_or_else(|| no_key(&members, merge_key))?;
                gone.insert(key.to_string());
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                return Err(PatchError::contradictory(
                    "merging lists cannot yet be specified in the patch",
                ));
            }
            _ => return Err(unknown_directive(&directive.clone(), members)),
        }
    }
    if replaces {
        return Ok((plain, Vec::new()));
    }
    original.retain(|item| item.get(merge_key).is_none_or(|key| !gone.contains(&key.to_string())));
    Ok((original, plain))
}

pub(super) fn no_key(members: &Members, merge_key: &str) -> PatchError {
    let shown = golang::print(&Value::Object(members.clone()));
    PatchError::contradictory(format!(
        "map: {shown} does not contain declared merge key: {merge_key}"
    ))
}

/// Merges objects into those with the same key, and adds the others.
fn merge_elements<S: Shape>(
    original: Vec<Value>,
    patch: &[Value],
    merge_key: &str,
    shape: Option<&S>,
) -> Outcome<Vec<Value>> {
    let by_original = Order::of(&original, merge_key);
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for (place, item) in original.iter().enumerate() {
        if let Some(key) = item.get(merge_key) {
            places.entry(key.to_string()).or_insert(place);
        }
    }
    let mut merged = original;
    for item in patch {
        let Value::Object(members) = item else { continue };
        let key = members.get(merge_key).ok_or_else(|| no_key(members, merge_key))?.to_string();
        let present = places.get(&key).and_then(|place| merged.get_mut(*place));
        if let Some(Value::Object(present)) = present {
            *present = merge_objects(std::mem::take(present), members.clone(), shape)?;
        } else {
            places.insert(key, merged.len());
            merged.push(item.clone());
        }
    }
    let by_patch = Order::of(patch, merge_key);
    for item in &merged {
        element_key(item, merge_key)?;
    }
    let (named, others) = by_patch.partition(merged);
    Ok(order::interleave(named, others, &by_patch, &by_original))
}

/// Merges a list and puts it into the order that the patch asks for; `None` when there is no list.
pub(super) fn merge_in_order<S: Shape>(
    live: Option<Vec<Value>>,
    changes: Option<Vec<Value>>,
    wanted: &[Value],
    shape: Option<&S>,
) -> Outcome<Option<Vec<Value>>> {
    let merge_key = shape.and_then(Shape::merge_key).unwrap_or_default();
    if let Some(changes) = &changes {
        check_order(changes, wanted, merge_key)?;
    }
    let mut original = live.clone().unwrap_or_default();
    let types = (original.clone(), changes.clone().unwrap_or_default());
    if let (Some(changes), true) = (&changes, shape.is_some_and(Shape::is_merged)) {
        fill_gaps(&mut original, changes, merge_key);
    }
    let merged = match (live, changes) {
        (None, None) => return Ok(None),
        (Some(live), None) => live,
        (None, Some(changes)) => changes.into_iter().filter_map(without_directives).collect(),
        (Some(live), Some(changes)) => merge_lists(live, changes, shape, false)?,
    };
    if !merge_key.is_empty() {
        for item in &merged {
            element_key(item, merge_key)?;
        }
        for (index, item) in wanted.iter().enumerate() {
            if !item.is_object() && !merged.is_empty() {
                return Err(PatchError::contradictory(format!(
                    "value for key {index} is not a map"
                )));
            }
        }
    }
    if are_objects(&types.0, &types.1)? {
        for item in wanted.iter().chain(&original) {
            element_key(item, merge_key)?;
        }
    }
    let by_patch = Order::of(wanted, merge_key);
    let (named, others) = by_patch.partition(merged);
    let by_original = Order::of(&original, merge_key);
    Ok(Some(order::interleave(named, others, &by_patch, &by_original)))
}

/// The live order as it counts after deletions: the API server deletes in place, and what is added
/// takes the room that is left, as if it had stood there.
fn fill_gaps(live: &mut [Value], changes: &[Value], merge_key: &str) {
    let key = |item: &Value| item.get(merge_key).map(Value::to_string);
    let is_deletion = |item: &&Value| item.get(DIRECTIVE).is_some_and(|word| word == "delete");
    let gone: BTreeSet<String> = changes.iter().filter(is_deletion).filter_map(key).collect();
    let mut present = BTreeSet::new();
    let mut kept = 0;
    for at in 0..live.len() {
        let Some(name) = live.get(at).and_then(key) else { continue };
        if !gone.contains(&name) {
            live.swap(kept, at);
            kept += 1;
            present.insert(name);
        }
    }
    let added = changes
        .iter()
        .filter(|item| item.get(DIRECTIVE).is_none())
        .filter(|item| key(item).is_some_and(|name| present.insert(name)));
    for (room, item) in live.iter_mut().skip(kept).zip(added) {
        *room = item.clone();
    }
}

/// Whether the changes of a list stand in the order that is asked for.
fn check_order(changes: &[Value], wanted: &[Value], merge_key: &str) -> Outcome<()> {
    if wanted.is_empty() || changes.is_empty() {
        return Ok(());
    }
    let mut kept = Vec::with_capacity(changes.len());
    for item in changes {
        if !merge_key.is_empty() {
            let members =
                item.as_object().ok_or_else(|| wrong_type("map[string]interface {}", item))?;
            if members.get(DIRECTIVE).is_some_and(|directive| directive == "delete") {
                continue;
            }
        }
        kept.push(item);
    }
    let mut kept = kept.into_iter().peekable();
    for place in wanted {
        while kept.next_if(|item| item.get(DIRECTIVE).is_some()).is_some() {}
        let Some(next) = kept.peek() else { return Ok(()) };
        let equal = if merge_key.is_empty() {
            *next == place
        } else {
            element_key(next, merge_key)? == element_key(place, merge_key)?
        };
        if equal {
            kept.next();
        }
    }
    if kept.peek().is_none() {
        return Ok(());
    }
    let changes = golang::print(&Value::Array(changes.to_vec()));
    let wanted = golang::print(&Value::Array(wanted.to_vec()));
    Err(PatchError::contradictory(format!(
        "The order in patch list:\n{changes}\n doesn't match {SET_ORDER} list:\n{wanted}\n"
    )))
}
