//! What merge patches do, and the laws of RFC 7386.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::patch::testing::{any_object, any_value};

#[test]
fn the_examples_of_the_rfc() {
    let cases = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b"}), json!({"a": null}), json!({})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ];
    for (target, patch, expected) in cases {
        assert_eq!(merge_patch(&target, &patch), Ok(expected), "{target} {patch}");
    }
}

#[test]
fn nulls_inside_new_lists_are_dropped() {
    let patch = json!({"new": [{"x": null, "y": 1}, null]});
    assert_eq!(merge_patch(&json!({}), &patch), Ok(json!({"new": [{"y": 1}, null]})));
    let merged = merge_patch(&json!({"new": {}}), &patch);
    assert_eq!(merged, Ok(json!({"new": [{"x": null, "y": 1}, null]})));
}

#[test]
fn what_is_no_patch() {
    let cases = [
        (json!(null), "Invalid JSON Patch"),
        (
            json!([]),
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            json!("x"),
            "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
        ),
    ];
    for (patch, expected) in cases {
        let error = merge_patch(&json!({}), &patch).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.code()), (expected, 400));
    }
    let mut deep = json!(1);
    for _ in 0..121 {
        deep = json!({"a": deep});
    }
    assert!(merge_patch(&json!({}), &deep).unwrap_err().to_string().contains("120 levels"));
}

fn nullless(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().all(nullless),
        Value::Object(members) => members.values().all(nullless),
        _ => true,
    }
}

/// The patch that turns one object into another that has no nulls.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (from, to) else { return to.clone() };
    let gone = old.keys().filter(|name| !new.contains_key(*name));
    let mut patch: Map<String, Value> = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in new {
        match old.get(name) {
            Some(present) if present == value => {}
            Some(present) => {
                patch.insert(name.clone(), difference(present, value));
            }
            None => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(patch)
}

proptest! {
    #[test]
    fn twice_is_once(target in any_object(), patch in any_object()) {
        let once = merge_patch(&target, &patch).unwrap();
        // But for lists, whose objects lose their nulls only when they are new.
        prop_assume!(nullless_lists(&patch));
        prop_assert_eq!(merge_patch(&once, &patch).unwrap(), once);
    }

    #[test]
    fn an_empty_patch_changes_nothing(target in any_object()) {
        prop_assert_eq!(merge_patch(&target, &json!({})).unwrap(), target);
    }

    #[test]
    fn a_patch_without_nulls_is_in_the_result(target in any_object(), patch in any_object()) {
        prop_assume!(nullless(&patch));
        let merged = merge_patch(&target, &patch).unwrap();
        prop_assert!(contains(&merged, &patch), "{merged} {patch}");
    }

    #[test]
    fn nulls_take_away(target in any_object(), patch in any_object()) {
        let merged = merge_patch(&target, &patch).unwrap();
        for (name, value) in patch.as_object().unwrap() {
            prop_assert_eq!(value.is_null(), merged.get(name).is_none());
        }
        for (name, value) in target.as_object().unwrap() {
            if patch.get(name).is_none() {
                prop_assert_eq!(&merged[name], value);
            }
        }
    }

    #[test]
    fn a_difference_leads_there(from in any_object(), to in any_object()) {
        prop_assume!(nullless(&to));
        prop_assert_eq!(merge_patch(&from, &difference(&from, &to)).unwrap(), to);
    }

    #[test]
    fn any_value_is_answered(target in any_value(), patch in any_value()) {
        let _ = merge_patch(&target, &patch);
    }
}

fn nullless_lists(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().all(nullless),
        Value::Object(members) => members.values().all(nullless_lists),
        _ => true,
    }
}

/// Whether everything of a patch is in an object.
fn contains(object: &Value, patch: &Value) -> bool {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => patch
            .iter()
            .all(|(name, value)| object.get(name).is_some_and(|member| contains(member, value))),
        (object, patch) => object == patch,
    }
}
