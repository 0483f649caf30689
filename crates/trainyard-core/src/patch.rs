//! The smallest JSON merge patch that turns one value into another.
//!
//! Must not know what the values mean.

use serde_json::{Map, Value};

/// The patch, or none when the values are equal. Lists are replaced whole.
#[must_use]
pub fn merge_patch(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(old), Value::Object(new)) = (from, to) else {
        return (from != to).then(|| to.clone());
    };
    let mut patch = Map::new();
    for key in old.keys().filter(|key| !new.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    for (key, value) in new {
        match old.get(key) {
            Some(before) => {
                if let Some(change) = merge_patch(before, value) {
                    patch.insert(key.clone(), change);
                }
            }
            None => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn apply(target: &mut Value, patch: &Value) {
        let Value::Object(changes) = patch else {
            *target = patch.clone();
            return;
        };
        if !target.is_object() {
            *target = json!({});
        }
        for (key, change) in changes {
            if change.is_null() {
                target.as_object_mut().unwrap().remove(key);
            } else {
                apply(&mut target[key], change);
            }
        }
    }

    #[test]
    fn turns_one_into_the_other() {
        let cases = [
            (json!(null), json!({"a": 1})),
            (json!({"a": 1, "b": {"c": 2, "d": [1, 2]}}), json!({"b": {"c": 3, "d": [2]}})),
            (json!({"a": {"x": 1}}), json!({"a": {}})),
            (json!({"a": 1}), json!({"a": {"b": 1}})),
        ];
        for (from, to) in cases {
            let patch = merge_patch(&from, &to).unwrap();
            let mut result = from.clone();
            apply(&mut result, &patch);
            assert_eq!(result, to, "{from} by {patch}");
        }
    }

    #[test]
    fn equal_values_need_none() {
        assert_eq!(merge_patch(&json!({"a": [1]}), &json!({"a": [1]})), None);
    }

    #[test]
    fn only_what_differs_is_sent() {
        let patch = merge_patch(&json!({"a": 1, "b": 2}), &json!({"a": 1, "b": 3}));
        assert_eq!(patch, Some(json!({"b": 3})));
    }
}
