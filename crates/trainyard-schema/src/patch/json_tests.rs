//! What JSON patches do, refuse and leave alone.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::patch::testing::{any_object, any_value};

fn patched(target: &Value, patch: &Value) -> Value {
    json_patch(target, patch).unwrap()
}

#[test]
fn every_operation() {
    let target = json!({"a": {"b": [1, 2, 3]}, "c/d": "x", "e~f": null});
    let cases = [
        (json!([]), json!({"a": {"b": [1, 2, 3]}, "c/d": "x", "e~f": null})),
        (
            json!([{"op": "add", "path": "/a/b/1", "value": 9}, {"op": "add", "path": "/a/b/-", "value": 4}]),
            json!({"a": {"b": [1, 9, 2, 3, 4]}, "c/d": "x", "e~f": null}),
        ),
        (
            json!([{"op": "remove", "path": "/a/b/-1"}, {"op": "remove", "path": "/e~0f"}]),
            json!({"a": {"b": [1, 2]}, "c/d": "x"}),
        ),
        (
            json!([{"op": "replace", "path": "/c~1d", "value": {}}, {"op": "replace", "path": "/new", "value": 1}]),
            json!({"a": {"b": [1, 2, 3]}, "c/d": {}, "e~f": null, "new": 1}),
        ),
        (
            json!([{"op": "move", "from": "/a/b", "path": "/m"}, {"op": "copy", "from": "/m/0", "path": "/a/n"}]),
            json!({"a": {"n": 1}, "c/d": "x", "e~f": null, "m": [1, 2, 3]}),
        ),
        (
            json!([
                {"op": "test", "path": "/a", "value": {"b": [1, 2, 3]}},
                {"op": "test", "path": "/none", "value": null},
                {"op": "test", "path": "/e~0f"},
                {"op": "copy", "from": "/none", "path": "/null"},
                {"op": "remove", "path": "/a"},
            ]),
            json!({"c/d": "x", "e~f": null, "null": null}),
        ),
        (json!([{"op": "replace", "path": "", "value": {"x": 1}}]), json!({"x": 1})),
        (json!(null), target.clone()),
    ];
    for (patch, expected) in cases {
        assert_eq!(patched(&target, &patch), expected, "{patch}");
    }
}

/// Holds operations on a small object to the words they are refused with.
fn all_refused(cases: &[(Value, &str)]) {
    let target = json!({"a": {"b": [1]}, "s": "x", "n": null});
    for (operation, expected) in cases {
        let error = json_patch(&target, &json!([operation])).unwrap_err();
        assert_eq!(error.to_string(), *expected);
        assert_eq!((error.code(), error.reason()), (422, "Invalid"));
        assert_eq!(
            error.message(),
            "the server rejected our request due to an error in our request"
        );
    }
}

#[test]
fn additions_and_removals_that_do_not_apply() {
    all_refused(&[
        (
            json!({"op": "add", "path": "", "value": {}}),
            "add operation does not apply: doc is missing path: \"\": missing value",
        ),
        (
            json!({"op": "add", "path": "/x/y", "value": 1}),
            "add operation does not apply: doc is missing path: \"/x/y\": missing value",
        ),
        (
            json!({"op": "add", "path": "/n/y", "value": 1}),
            "add operation does not apply: doc is missing path: \"/n/y\": missing value",
        ),
        (
            json!({"op": "add", "path": "/s/y", "value": 1}),
            "add operation does not apply: doc is missing path: \"/s/y\": missing value",
        ),
        (
            json!({"op": "add", "path": "/a/b/3", "value": 1}),
            "error in add for path: '/a/b/3': Unable to access invalid index: 3: invalid index referenced",
        ),
        (
            json!({"op": "add", "path": "/a/b/x", "value": 1}),
            "error in add for path: '/a/b/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
        ),
        (
            json!({"op": "remove", "path": "/a/x"}),
            "error in remove for path: '/a/x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            json!({"op": "remove", "path": "/a/b/-2"}),
            "error in remove for path: '/a/b/-2': Unable to access invalid index: -2: invalid index referenced",
        ),
    ]);
}

#[test]
fn other_operations_that_do_not_apply() {
    all_refused(&[
        (
            json!({"op": "replace", "path": "/a/b/1", "value": 1}),
            "replace operation does not apply: doc is missing key: /a/b/1: missing value",
        ),
        (
            json!({"op": "replace", "path": "", "value": 1}),
            "replace operation value must be object or array",
        ),
        (
            json!({"op": "move", "from": "/a/x", "path": "/y"}),
            "error in move for path: 'x': Unable to remove nonexistent key: x: missing value",
        ),
        (
            json!({"op": "move", "from": "/a", "path": "/a/b"}),
            "move operation does not apply: doc is missing destination path: /a/b: missing value",
        ),
        (json!({"op": "test", "path": "/s", "value": "y"}), "testing value /s failed: test failed"),
        (
            json!({"op": "test", "path": "/a/b/0", "value": 1.0}),
            "testing value /a/b/0 failed: test failed",
        ),
        (json!({"op": "jump", "path": "/s"}), "Unexpected kind: jump"),
        (json!({"path": "/s"}), "Unexpected kind: unknown"),
        (json!({"op": "add"}), "add operation failed to decode path: missing value"),
        (
            json!({"op": "copy", "path": "/s"}),
            "copy operation failed to decode from: operation, missing from field: missing value",
        ),
        (json!(null), "Unexpected kind: unknown"),
    ]);
}

#[test]
fn what_is_no_patch() {
    let cases = [
        (
            json!({}),
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            json!(["x"]),
            "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp",
        ),
        (
            json!([{"op": 1}]),
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        ),
    ];
    for (patch, expected) in cases {
        let error = json_patch(&json!({}), &patch).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.code()), (expected, 400));
    }
}

#[test]
fn unknown_members_are_found() {
    let patch = json!([{"op": "add"}, {"op": "add", "oops": 1}]);
    assert_eq!(json_patch_unknown_fields(&patch), ["json patch unknown field \"[1].oops\""]);
}

#[test]
fn bounds() {
    let many = Value::Array(vec![json!({"op": "add", "path": "/a", "value": 1}); 10_001]);
    let error = json_patch(&json!({}), &many).unwrap_err();
    assert_eq!(
        error.message(),
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
    // Every step puts a copy of the object into itself.
    let nesting = Value::Array(vec![json!({"op": "copy", "from": "/a", "path": "/a/b"}); 200]);
    let error = json_patch(&json!({"a": {"x": "y".repeat(1000)}}), &nesting).unwrap_err();
    assert!(error.to_string().contains("exceeding the limit"), "{error}");
    let error = json_patch(&json!({"a": {}}), &nesting).unwrap_err();
    assert!(error.to_string().contains("nested more than 120 levels"), "{error}");
    // A chain that grows by small steps.
    let mut path = String::new();
    let mut chain = Vec::new();
    for _ in 0..200 {
        path.push_str("/a");
        chain.push(json!({"op": "add", "path": path, "value": {}}));
    }
    let error = json_patch(&json!({}), &Value::Array(chain)).unwrap_err();
    assert!(error.to_string().contains("nested more than 120 levels"), "{error}");
    let to_and_fro = [
        json!({"op": "move", "from": "/a", "path": "/b"}),
        json!({"op": "move", "from": "/b", "path": "/a"}),
    ];
    let shuffle: Vec<Value> = to_and_fro.iter().cycle().take(10_000).cloned().collect();
    let error = json_patch(&json!({"a": vec![1; 1000]}), &Value::Array(shuffle)).unwrap_err();
    assert!(error.to_string().contains("moves of this patch"), "{error}");
}

/// Operations on few paths, so that some apply and some do not.
fn operations() -> impl Strategy<Value = Value> {
    let path = "(/([abc]|[0-2]|-)){0,3}";
    let operation = ("add|remove|replace|move|copy|test", path, path, any_value()).prop_map(
        |(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}),
    );
    prop::collection::vec(operation, 0..5).prop_map(Value::Array)
}

proptest! {
    #[test]
    fn all_or_nothing(target in any_object(), patch in operations(), rest in operations()) {
        // Parts that fail fail as a whole; parts that apply, apply one after the other as they do
        // together.
        let both = [patch.as_array().unwrap().as_slice(), rest.as_array().unwrap()].concat();
        let before = target.clone();
        let apart = json_patch(&target, &patch).and_then(|half| json_patch(&half, &rest));
        // The documents between may be lists, which only the whole patch may see.
        if let Ok(whole) = json_patch(&target, &Value::Array(both)) {
            prop_assert_eq!(apart, Ok(whole));
        } else {
            prop_assert!(apart.is_err());
        }
        prop_assert_eq!(before, target);
    }

    #[test]
    fn what_is_added_is_there(target in any_object(), name in "[a-c~/]{1,3}", value in any_value()) {
        let step = name.replace('~', "~0").replace('/', "~1");
        let path = format!("/{step}");
        let patch = json!([
            {"op": "add", "path": path, "value": value},
            {"op": "test", "path": path, "value": value},
        ]);
        let made = patched(&target, &patch);
        prop_assert_eq!(&made[&name], &value);
        let gone = patched(&made, &json!([{"op": "remove", "path": path}]));
        let mut expected = target;
        expected.as_object_mut().unwrap().remove(&name);
        prop_assert_eq!(gone, expected);
    }

    #[test]
    fn a_move_is_a_copy_and_a_removal(target in any_object()) {
        let moved = json_patch(&target, &json!([{"op": "move", "from": "/a", "path": "/z"}]));
        let copied = json_patch(&target, &json!([
            {"op": "copy", "from": "/a", "path": "/z"}, {"op": "remove", "path": "/a"},
        ]));
        prop_assert_eq!(moved.ok(), copied.ok());
    }

    #[test]
    fn any_value_is_answered(target in any_value(), patch in any_value()) {
        let _ = json_patch(&target, &patch);
    }
}
