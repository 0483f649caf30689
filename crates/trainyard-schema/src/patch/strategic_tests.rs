//! What strategic merge patches do, refuse and keep in order.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::patch::Shapeless;
use crate::patch::testing::{Type, any_object, any_value, typed};

/// A pod, as far as these tests go.
fn pod() -> Type {
    let port = Type::object(&[("containerPort", Type::scalar()), ("name", Type::scalar())]);
    let container = Type::object(&[
        ("name", Type::scalar()),
        ("image", Type::scalar()),
        ("args", Type::list(Type::scalar())),
        ("ports", Type::map("containerPort", port)),
    ]);
    let volume = Type::object(&[("name", Type::scalar()), ("emptyDir", Type::object(&[]))]);
    Type::object(&[
        ("containers", Type::map("name", container)),
        ("volumes", Type::map("name", volume.retaining())),
        ("finalizers", Type::set()),
        ("labels", Type::object(&[])),
        ("strategy", Type::object(&[("type", Type::scalar())]).retaining()),
    ])
}

fn merged(target: &Value, patch: &Value) -> Value {
    strategic_merge(target, patch, Some(&pod())).unwrap()
}

fn refused(target: &Value, patch: &Value) -> (String, u16) {
    let error = strategic_merge(target, patch, Some(&pod())).unwrap_err();
    (error.to_string(), error.code())
}

#[test]
fn lists_are_merged_by_key() {
    let target = json!({"containers": [
        {"name": "a", "image": "1", "args": ["x"], "ports": [{"containerPort": 80}]},
        {"name": "b", "image": "1"},
    ]});
    let patch = json!({"containers": [
        {"name": "c", "image": "2"},
        {"name": "a", "args": ["y"], "ports": [{"containerPort": 81, "name": "new"}, {"containerPort": 80, "name": "old"}]},
    ]});
    let expected = json!({"containers": [
        {"name": "c", "image": "2"},
        {"name": "a", "image": "1", "args": ["y"], "ports": [
            {"containerPort": 81, "name": "new"}, {"containerPort": 80, "name": "old"},
        ]},
        {"name": "b", "image": "1"},
    ]});
    assert_eq!(merged(&target, &patch), expected);
    let shapeless = strategic_merge::<Shapeless>(&target, &patch, None);
    assert_eq!(shapeless.unwrap(), patch);
}

#[test]
fn directives_of_elements() {
    let target = json!({"containers": [{"name": "a"}, {"name": "b"}, {"name": "c"}]});
    let cases = [
        (
            json!([{"$patch": "delete", "name": "b"}, {"name": "d"}]),
            json!([{"name": "d"}, {"name": "a"}, {"name": "c"}]),
        ),
        (json!([{"$patch": "replace"}, {"name": "d"}]), json!([{"name": "d"}])),
        (json!([{"$patch": "replace"}]), json!([])),
        (json!([{"$patch": "delete", "name": "none"}]), target["containers"].clone()),
        (json!([]), target["containers"].clone()),
    ];
    for (patch, expected) in cases {
        let patch = json!({"containers": patch});
        assert_eq!(merged(&target, &patch), json!({"containers": expected}), "{patch}");
    }
    let new = merged(&json!({}), &json!({"containers": [{"name": "a"}, {"$patch": "delete"}]}));
    assert_eq!(new, json!({"containers": [{"name": "a"}]}));
}

#[test]
fn directives_of_objects() {
    let target = json!({"labels": {"a": "1", "b": "2"}, "strategy": {"type": "x", "more": {}}});
    let cases = [
        (json!({"labels": {"$patch": "replace", "c": "3"}}), json!({"c": "3"})),
        (json!({"labels": {"$patch": "delete"}}), json!({})),
        (json!({"labels": {"a": null, "c": "3"}}), json!({"b": "2", "c": "3"})),
        (json!({"labels": {"$retainKeys": ["a"], "a": "9"}}), json!({"a": "9"})),
        (json!({"labels": {"$retainKeys": []}}), json!({})),
    ];
    for (patch, expected) in cases {
        assert_eq!(merged(&target, &patch)["labels"], expected, "{patch}");
    }
    assert_eq!(merged(&target, &json!({"$patch": "replace", "labels": {}})), json!({"labels": {}}));
    assert_eq!(merged(&target, &json!({"labels": null})).get("labels"), None);
    assert_eq!(
        merged(&json!({}), &json!({"x": {"y": null, "z": [{"n": null}]}}))["x"],
        json!({"z": [{}]})
    );
    assert_eq!(merged(&target, &json!(null)), target);
}

#[test]
fn sets_grow_and_shrink() {
    let target = json!({"finalizers": ["a", "b"]});
    let cases = [
        (json!({"finalizers": ["c", "a"]}), json!(["c", "a", "b"])),
        (json!({"$deleteFromPrimitiveList/finalizers": ["a"]}), json!(["b"])),
        (json!({"$deleteFromPrimitiveList/finalizers": ["a", "b"]}), json!([])),
        (
            json!({"$setElementOrder/finalizers": ["b", "c", "a"], "finalizers": ["c"]}),
            json!(["b", "c", "a"]),
        ),
        (json!({"$setElementOrder/finalizers": ["b", "a"]}), json!(["b", "a"])),
    ];
    for (patch, expected) in cases {
        assert_eq!(merged(&target, &patch), json!({"finalizers": expected}), "{patch}");
    }
    assert_eq!(
        merged(&json!({}), &json!({"$deleteFromPrimitiveList/finalizers": ["a"]})),
        json!({})
    );
}

#[test]
fn the_order_that_is_asked_for() {
    let target = json!({"containers": [{"name": "a"}, {"name": "live"}, {"name": "b"}]});
    let patch = json!({
        "$setElementOrder/containers": [{"name": "b"}, {"name": "new"}, {"name": "a"}],
        "containers": [{"name": "new"}],
    });
    let names = |value: &Value| -> String {
        let items = value["containers"].as_array().unwrap().iter();
        items.map(|item| item["name"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(&merged(&target, &patch)), "live b new a");
    // What is added takes the room of what is deleted, and so stands behind what was before it.
    let patch = json!({
        "$setElementOrder/containers": [{"name": "new"}],
        "containers": [{"name": "new"}, {"$patch": "delete", "name": "b"}],
    });
    assert_eq!(names(&merged(&target, &patch)), "a live new");
    let target = json!({"containers": [{"name": "a"}, {"name": "b"}]});
    assert_eq!(names(&merged(&target, &patch)), "a new");
}

/// Holds patches of a small object to the words and codes they are refused with.
fn all_refused(cases: &[(Value, &str, u16)]) {
    let target = json!({"containers": [{"name": "a"}], "finalizers": ["x"], "labels": {}});
    for (patch, expected, code) in cases {
        assert_eq!(refused(&target, patch), ((*expected).to_owned(), *code), "{patch}");
    }
}

#[test]
fn elements_and_objects_that_contradict_themselves() {
    all_refused(&[
        (
            json!({"containers": [{"image": "1"}]}),
            "map: map[image:1] does not contain declared merge key: name",
            500,
        ),
        (
            json!({"containers": ["x"]}),
            "list element types are not identical: [[map[name:a]] [x]]",
            500,
        ),
        (
            json!({"containers": [{"$patch": "delete"}]}),
            "map: map[$patch:delete] does not contain declared merge key: name",
            500,
        ),
        (
            json!({"containers": [{"$patch": "merge"}]}),
            "merging lists cannot yet be specified in the patch",
            500,
        ),
        (
            json!({"containers": [{"$patch": "odd"}]}),
            "unknown patch type: odd in map: map[$patch:odd]",
            500,
        ),
        (
            json!({"labels": {"$patch": 1}}),
            "unknown patch type: %!s(int64=1) in map: map[$patch:1]",
            500,
        ),
        (json!({"labels": {"$retainKeys": "x"}}), "invalid patch format of retainKeys", 400),
        (
            json!({"labels": {"$retainKeys": ["a"], "b": "1"}}),
            "invalid patch format of retainKeys",
            400,
        ),
    ]);
    let nested = json!({"finalizers": [["x"]]});
    let error = strategic_merge(&nested, &nested, Some(&pod())).unwrap_err();
    assert_eq!(
        (error.to_string().as_str(), error.code()),
        ("lists of lists are not supported", 422)
    );
}

#[test]
fn orders_and_deletions_that_contradict_themselves() {
    all_refused(&[
        (json!({"$deleteFromPrimitiveList": ["x"]}), "invalid patch format of primitive list", 400),
        (json!({"$setElementOrder": ["x"]}), "invalid patch format of setElementOrder list", 400),
        (
            json!({"$setElementOrder/finalizers": "x"}),
            "expected a []interface {}, but received a string",
            500,
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "a"}], "containers": null}),
            "expected a []interface {}, but received a %!s(<nil>)",
            500,
        ),
        (
            json!({"$setElementOrder/none": []}),
            "unable to find api field in struct  for the json field \"none\"",
            500,
        ),
        (
            json!({"$setElementOrder/finalizers": ["x"], "finalizers": ["y"]}),
            "The order in patch list:\n[y]\n doesn't match $setElementOrder list:\n[x]\n",
            500,
        ),
        (
            json!([]),
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
            400,
        ),
    ]);
}

/// The patch that turns one object into another, with every directive that it takes.
fn difference(from: &Members, to: &Members, shape: &Type) -> Members {
    let gone = from.keys().filter(|name| !to.contains_key(*name));
    let mut patch: Members = gone.map(|name| (name.clone(), Value::Null)).collect();
    for (name, value) in to {
        let shape = shape.field(name).cloned().unwrap_or_default();
        match (from.get(name), value) {
            (Some(present), value) if present == value => {}
            (Some(Value::Object(present)), Value::Object(value)) => {
                patch.insert(name.clone(), difference(present, value, &shape).into());
            }
            (Some(Value::Array(present)), Value::Array(value)) if shape.is_merged() => {
                list_difference(&mut patch, name, (present, value), &shape);
            }
            (_, value) => {
                patch.insert(name.clone(), value.clone());
            }
        }
    }
    patch
}

fn list_difference(
    patch: &mut Members,
    name: &str,
    (from, to): (&[Value], &[Value]),
    shape: &Type,
) {
    let Some(key) = shape.merge_key() else {
        let gone: Vec<_> = from.iter().filter(|item| !to.contains(item)).cloned().collect();
        let new: Vec<_> = to.iter().filter(|item| !from.contains(item)).cloned().collect();
        patch.insert(format!("$deleteFromPrimitiveList/{name}"), gone.into());
        patch.insert(format!("$setElementOrder/{name}"), to.into());
        patch.insert(name.to_owned(), new.into());
        return;
    };
    let find = |list: &[Value], item: &Value| {
        list.iter().find(|other| other[key] == item[key]).and_then(Value::as_object).cloned()
    };
    let mut changes = Vec::new();
    for item in to {
        let item = item.as_object().unwrap();
        let present = find(from, &item.clone().into()).unwrap_or_default();
        let mut change = difference(&present, item, shape.element().unwrap());
        change.insert(key.to_owned(), item[key].clone());
        changes.push(Value::Object(change));
    }
    let gone = from.iter().filter(|item| find(to, item).is_none());
    changes.extend(gone.map(|item| json!({"$patch": "delete", (key): item[key]})));
    let order: Value = to.iter().map(|item| json!({(key): item[key]})).collect();
    patch.insert(format!("$setElementOrder/{name}"), order);
    patch.insert(name.to_owned(), changes.into());
}

proptest! {
    #[test]
    fn a_difference_leads_there_and_stays(from in typed(), to in typed()) {
        let shape = Type::sample();
        let patch = difference(from.as_object().unwrap(), to.as_object().unwrap(), &shape);
        let patch = Value::Object(patch);
        let once = strategic_merge(&from, &patch, Some(&shape)).unwrap();
        prop_assert_eq!(&once, &to, "{}", patch);
        let twice = strategic_merge(&once, &patch, Some(&shape)).unwrap();
        prop_assert_eq!(&twice, &to, "{}", patch);
    }

    #[test]
    fn without_directives_twice_is_once(target in typed(), patch in typed()) {
        let shape = Type::sample();
        let once = strategic_merge(&target, &patch, Some(&shape)).unwrap();
        prop_assert_eq!(&strategic_merge(&once, &patch, Some(&shape)).unwrap(), &once);
        prop_assert_eq!(&strategic_merge(&target, &json!({}), Some(&shape)).unwrap(), &target);
    }

    #[test]
    fn without_lists_it_is_a_merge_patch(target in any_object(), patch in any_object()) {
        let patch = without_lists(patch);
        let merged = crate::patch::merge_patch(&target, &patch);
        prop_assert_eq!(strategic_merge::<Shapeless>(&target, &patch, None), merged);
    }

    #[test]
    fn any_value_is_answered(target in any_value(), patch in any_value()) {
        let _ = strategic_merge(&target, &patch, Some(&Type::sample()));
    }
}

fn without_lists(value: Value) -> Value {
    match value {
        Value::Array(items) => items.len().into(),
        Value::Object(members) => {
            members.into_iter().map(|(name, member)| (name, without_lists(member))).collect()
        }
        scalar => scalar,
    }
}
