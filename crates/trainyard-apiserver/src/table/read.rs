//! Reading objects for cells: what is absent or of another type is nothing.
//!
//! Must not know any kind.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use trainyard_schema::quantity;
use trainyard_schema::select::labels::Selector;

/// The text at a JSON pointer, empty when there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The text at a JSON pointer, or what stands for its absence.
pub(crate) fn text_or<'a>(object: &'a Value, pointer: &str, absent: &'a str) -> &'a str {
    match text(object, pointer) {
        "" => absent,
        text => text,
    }
}

/// The number at a JSON pointer, 0 when there is none.
pub(crate) fn number(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// Whether there is `true` at a JSON pointer.
pub(crate) fn yes(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default()
}

/// The list at a JSON pointer.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// The object at a JSON pointer.
pub(crate) fn map<'a>(object: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    object.pointer(pointer).and_then(Value::as_object)
}

/// How many members the object at a JSON pointer has.
pub(crate) fn count(object: &Value, pointer: &str) -> i64 {
    map(object, pointer).map_or(0, |members| i64::try_from(members.len()).unwrap_or(i64::MAX))
}

/// Whether there is something, and not null, at a JSON pointer.
pub(crate) fn has(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).is_some_and(|value| !value.is_null())
}

/// Whether an object is being deleted.
pub(crate) fn is_going(object: &Value) -> bool {
    has(object, "/metadata/deletionTimestamp")
}

/// The condition of a type.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    list(object, "/status/conditions").iter().find(|condition| text(condition, "/type") == kind)
}

/// Whether the condition of a type is true.
pub(crate) fn condition_holds(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|condition| text(condition, "/status") == "True")
}

/// Texts of a list, with a comma between them.
pub(crate) fn joined(items: &[Value], pointer: &str) -> String {
    let texts: Vec<&str> = items.iter().map(|item| text(item, pointer)).collect();
    texts.join(",")
}

/// `a=1,b=2` of the labels at a JSON pointer.
pub(crate) fn labels(object: &Value, pointer: &str) -> String {
    let pairs: Vec<String> = map(object, pointer)
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    or_none(pairs.join(","))
}

/// The label selector at a JSON pointer, as a query writes it.
pub(crate) fn selector(object: &Value, pointer: &str) -> String {
    let selector = object.pointer(pointer).unwrap_or(&Value::Null);
    match Selector::from_label_selector(selector) {
        Ok(selector) => or_none(selector.to_string()),
        Err(_) => "<error>".to_owned(),
    }
}

pub(crate) fn or_none(text: String) -> String {
    if text.is_empty() { "<none>".to_owned() } else { text }
}

/// A quantity in its plain form; 0 when there is none.
pub(crate) fn amount(value: Option<&Value>) -> String {
    let text = match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => return "0".to_owned(),
    };
    quantity::parse(&text).map_or(text, |amount| amount.to_string())
}

/// `RWO,ROX,RWX,RWOP` of the access modes at a JSON pointer.
pub(crate) fn access_modes(object: &Value, pointer: &str) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let modes: BTreeSet<&str> = list(object, pointer).iter().filter_map(Value::as_str).collect();
    let shown = SHORT.iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| *short);
    shown.collect::<Vec<_>>().join(",")
}
