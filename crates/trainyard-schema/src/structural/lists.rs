//! Lists whose elements have an identity: sets and maps hold none twice.
//!
//! Owns that check alone.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::node::{ListType, Marks, Node};
use crate::FieldError;

/// What stands twice in a list where it may not.
pub(super) fn check(node: &Node, path: &str, value: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    visit(node, path, value, &mut errors);
    errors
}

fn visit(node: &Node, path: &str, value: &Value, errors: &mut Vec<FieldError>) {
    if !node.has(Marks::HAS_LISTS) {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let Some(child) = node.child(name) else { continue };
                let below = match (node.property(name), path) {
                    (Some(_), "") => name.clone(),
                    (Some(_), path) => format!("{path}.{name}"),
                    (None, path) => format!("{path}[{name}]"),
                };
                visit(child, &below, field, errors);
            }
        }
        Value::Array(items) => {
            match node.list_type {
                ListType::Atomic => {}
                ListType::Set => errors.extend(
                    repeated(items.iter())
                        .filter_map(|index| Some((index, items.get(index)?)))
                        .map(|(index, item)| {
                            FieldError::duplicate(format!("{path}[{index}]"), item.clone())
                        }),
                ),
                ListType::Map => keyed(node, path, items, errors),
            }
            if let Some(element) = node.items() {
                for (index, item) in items.iter().enumerate() {
                    visit(element, &format!("{path}[{index}]"), item, errors);
                }
            }
        }
        _ => {}
    }
}

fn keyed(node: &Node, path: &str, items: &[Value], errors: &mut Vec<FieldError>) {
    let stranger = items.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null());
    if let Some((index, item)) = stranger {
        errors.push(FieldError::invalid(
            format!("{path}[{index}]"),
            item.clone(),
            "must be an object for an array of list-type map",
        ));
        return;
    }
    let names = node.more().map(|more| more.list_keys.as_slice()).unwrap_or_default();
    let keys: Vec<Value> = items
        .iter()
        .map(|item| {
            let key: Map<String, Value> = names
                .iter()
                .filter_map(|name| Some((name.to_string(), item.get(&**name)?.clone())))
                .collect();
            Value::Object(key)
        })
        .collect();
    for index in repeated(keys.iter()) {
        if let Some(key) = keys.get(index) {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), key.clone()));
        }
    }
}

/// Where a value stands for the second time; further times are not told.
fn repeated<'a>(values: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = usize> {
    let mut times: HashMap<String, usize> = HashMap::new();
    let mut second = Vec::new();
    for (index, value) in values.enumerate() {
        let times = times.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            second.push(index);
        }
    }
    second.into_iter()
}
