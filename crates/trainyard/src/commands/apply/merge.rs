//! What has to change: the difference between what was applied last, what is wanted now and what is
//! there, as a patch.
//!
//! What is wanted and was not there is added, what was applied and is no longer wanted is removed,
//! and what others have set stays. Pure. Must not know how patches are sent.

use serde_json::{Map, Value, json};

use super::keys::{Lists, key_of};

type Members = Map<String, Value>;

/// The patch that makes `current` what is wanted; empty when it is so already.
pub(super) fn patch(last: &Value, wanted: &Value, current: &Value, lists: &Lists<'_>) -> Members {
    let empty = Members::new();
    let members = |value: &'_ Value| value.as_object().cloned().unwrap_or_default();
    let last = last.as_object().unwrap_or(&empty);
    objects(last, &members(wanted), &members(current), lists)
}

fn objects(last: &Members, wanted: &Members, current: &Members, lists: &Lists<'_>) -> Members {
    let mut patch = Members::new();
    let empty = Members::new();
    for (name, value) in wanted {
        match (value, current.get(name)) {
            // A null asks for a field's absence.
            (Value::Null, Some(Value::Null) | None) => {}
            (Value::Null, Some(_)) => {
                if last.get(name) != Some(&Value::Null) {
                    patch.insert(name.clone(), Value::Null);
                }
            }
            (Value::Object(value), Some(Value::Object(there))) => {
                let last = last.get(name).and_then(Value::as_object).unwrap_or(&empty);
                let inner = objects(last, value, there, lists);
                if !inner.is_empty() {
                    patch.insert(name.clone(), Value::Object(inner));
                }
            }
            (Value::Array(value), Some(Value::Array(there))) => {
                let last = last.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                match key_of(lists, name, value, there) {
                    Some(key) => by_key(&mut patch, name, key, (last, value, there), lists),
                    None if value == there => {}
                    None => {
                        patch.insert(name.clone(), Value::Array(value.clone()));
                    }
                }
            }
            (value, Some(there)) if value == there => {}
            (value, _) => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    for name in last.keys() {
        if !wanted.contains_key(name) && current.contains_key(name) {
            patch.insert(name.clone(), Value::Null);
        }
    }
    patch
}

/// A list whose elements are known by a key.
fn by_key(
    patch: &mut Members,
    name: &str,
    key: &str,
    (last, wanted, current): (&[Value], &[Value], &[Value]),
    lists: &Lists<'_>,
) {
    if !are_unique(wanted, key) || !are_unique(current, key) {
        if wanted != current {
            let mut whole = vec![json!({"$patch": "replace"})];
            whole.extend(wanted.iter().cloned());
            patch.insert(name.to_owned(), Value::Array(whole));
        }
        return;
    }
    let find = |list: &'_ [Value], id: &Value| list.iter().position(|item| item[key] == *id);
    let empty = Members::new();
    let mut changes = Vec::new();
    for item in wanted {
        let id = &item[key];
        let Some(there) = find(current, id).and_then(|at| current[at].as_object()) else {
            changes.push(item.clone());
            continue;
        };
        let before = find(last, id).and_then(|at| last[at].as_object()).unwrap_or(&empty);
        let mut change = objects(before, item.as_object().unwrap_or(&empty), there, lists);
        if !change.is_empty() {
            change.insert(key.to_owned(), id.clone());
            changes.push(Value::Object(change));
        }
    }
    for item in last {
        let id = &item[key];
        if find(wanted, id).is_none() && find(current, id).is_some() {
            changes.push(json!({"$patch": "delete", key: id}));
        }
    }
    let places: Vec<usize> = wanted.iter().filter_map(|item| find(current, &item[key])).collect();
    let in_order = places.is_sorted();
    if changes.is_empty() && in_order {
        return;
    }
    let order: Vec<Value> = wanted.iter().map(|item| json!({key: item[key]})).collect();
    patch.insert(format!("$setElementOrder/{name}"), Value::Array(order));
    if !changes.is_empty() {
        patch.insert(name.to_owned(), Value::Array(changes));
    }
}

/// Whether each element has a key of its own.
fn are_unique(list: &[Value], key: &str) -> bool {
    list.iter().enumerate().all(|(at, item)| {
        let id = &item[key];
        !id.is_null() && !list[..at].iter().any(|earlier| earlier[key] == *id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merge(last: &Value, wanted: &Value, current: &Value) -> Value {
        Value::Object(patch(last, wanted, current, &Lists::Whole))
    }

    fn strategic(last: &Value, wanted: &Value, current: &Value) -> Value {
        Value::Object(patch(last, wanted, current, &Lists::ByKey { kind: "Pod" }))
    }

    #[test]
    fn what_others_set_stays() {
        let current = json!({"a": 1, "set": "by the server", "o": {"x": 1, "y": 2}});
        let wanted = json!({"a": 1, "o": {"x": 1}});
        assert_eq!(merge(&wanted, &wanted, &current), json!({}));
        let wanted = json!({"a": 2, "o": {"x": 3, "z": 4}});
        assert_eq!(merge(&json!({}), &wanted, &current), json!({"a": 2, "o": {"x": 3, "z": 4}}));
    }

    #[test]
    fn what_is_no_longer_wanted_goes() {
        let last = json!({"a": 1, "b": {"c": 1, "d": 2}, "gone": 1});
        let wanted = json!({"b": {"c": 1}});
        let current = json!({"a": 1, "b": {"c": 1, "d": 2, "e": 3}});
        assert_eq!(merge(&last, &wanted, &current), json!({"a": null, "b": {"d": null}}));
    }

    #[test]
    fn nulls_ask_for_absence() {
        let current = json!({"a": 1});
        assert_eq!(merge(&json!({}), &json!({"a": null, "b": null}), &current), json!({"a": null}));
        let same = json!({"a": null});
        assert_eq!(merge(&same, &same, &current), json!({}), "the server's own value");
    }

    #[test]
    fn lists_without_keys_are_replaced() {
        let current = json!({"l": [1, 2]});
        assert_eq!(merge(&json!({}), &json!({"l": [1, 2]}), &current), json!({}));
        assert_eq!(merge(&json!({}), &json!({"l": [2]}), &current), json!({"l": [2]}));
        // Known to kinds of the server's own only.
        let containers = json!({"containers": [{"name": "a"}]});
        let there = json!({"containers": [{"name": "a", "set": 1}]});
        assert_eq!(merge(&json!({}), &containers, &there), containers);
    }

    #[test]
    fn lists_with_keys_are_merged() {
        let there = json!({"containers": [
            {"name": "a", "image": "1", "set": true}, {"name": "old"}, {"name": "injected"},
        ]});
        let last = json!({"containers": [{"name": "a", "image": "1"}, {"name": "old"}]});
        assert_eq!(strategic(&last, &last, &there), json!({}));
        let wanted = json!({"containers": [{"name": "new"}, {"name": "a", "image": "2"}]});
        assert_eq!(
            strategic(&last, &wanted, &there),
            json!({
                "$setElementOrder/containers": [{"name": "new"}, {"name": "a"}],
                "containers": [
                    {"name": "new"}, {"name": "a", "image": "2"}, {"$patch": "delete", "name": "old"},
                ],
            })
        );
        let swapped = json!({"containers": [{"name": "old"}, {"name": "a", "image": "1"}]});
        assert_eq!(
            strategic(&last, &swapped, &there),
            json!({"$setElementOrder/containers": [{"name": "old"}, {"name": "a"}]})
        );
    }

    #[test]
    fn keys_that_are_not_unique_replace_the_list() {
        let wanted = json!({"ports": [
            {"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"},
        ]});
        assert_eq!(strategic(&wanted, &wanted, &wanted), json!({}));
        let there = json!({"ports": [{"containerPort": 53, "protocol": "TCP"}]});
        let patch = strategic(&json!({}), &wanted, &there);
        assert_eq!(patch["ports"][0], json!({"$patch": "replace"}));
        assert_eq!(patch["ports"].as_array().unwrap().len(), 3);
    }
}
