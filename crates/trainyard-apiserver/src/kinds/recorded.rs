//! Replays what a real server made of objects: `data/recorded.json`, made by `data/record.py`.

use serde_json::{Value, json};
use trainyard_schema::{FieldError, patch::merge_patch};

use super::{json::clear, metadata, rows, testing::Few};
use crate::{
    failure::{About, Failure},
    kind::{Kind, Part},
};

static RECORDED: &str = include_str!("../../data/recorded.json");

/// Where the real server shows the difference of two of its own types, ours shows that of the API's.
const SHOWN: [&str; 3] = [
    "pod updates may not change fields other than",
    "spec is immutable after creation except",
    "spec.persistentvolumesource is immutable after creation",
];

fn world() -> Few {
    Few::of([
        ("serviceaccounts", json!({"metadata": {"name": "default", "namespace": "recorded"}})),
        ("serviceaccounts", json!({"metadata": {"name": "X", "namespace": "recorded"}})),
        (
            "priorityclasses.scheduling.k8s.io",
            json!({
                "metadata": {"name": "system-node-critical"}, "value": 2_000_001_000,
                "preemptionPolicy": "PreemptLowerPriority",
            }),
        ),
    ])
}

fn kind_of(object: &Value) -> Kind {
    let group =
        object["apiVersion"].as_str().unwrap().rsplit_once('/').map_or("", |(group, _)| group);
    rows()
        .into_iter()
        .find(|row| row.group == group && object["kind"] == row.kind.as_str())
        .unwrap()
}

fn understand(kind: &Kind, mut object: Value) -> Result<Value, Failure> {
    let version = &kind.versions[0];
    version.schema.read(&mut object).map_err(|why| {
        let name = &kind.kind;
        Failure::bad_request(format!(
            "{name} in version \"{}\" cannot be handled as a {name}: {why}",
            version.name
        ))
    })?;
    let mut object = kind.rules.to_stored(object);
    kind.rules.default(&mut object);
    Ok(object)
}

fn refuse(kind: &Kind, object: &Value, errors: &[FieldError]) -> Result<(), Failure> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if errors.is_empty() {
        return Ok(());
    }
    // Both groups of events are told as one.
    let group = if kind.kind == "Event" { "" } else { &kind.group };
    Err(Failure::invalid(About::new(group, &kind.kind, name), errors))
}

fn create(kind: &Kind, given: &Value) -> Result<Value, Failure> {
    let mut object = understand(kind, given.clone())?;
    if kind.namespaced {
        object["metadata"]["namespace"] = json!("recorded");
    }
    kind.rules.admit(&mut object, &world())?;
    object["metadata"]["uid"] = json!("0e4d360e-3523-4933-84f0-17b7942c4089");
    object["metadata"]["creationTimestamp"] = json!("2026-11-16T05:40:00Z");
    kind.rules.prepare_create(&mut object);
    let mut errors = metadata::validate_new(&object["metadata"], kind.namespaced, &*kind.rules);
    errors.extend(kind.rules.validate_create(&object));
    refuse(kind, &object, &errors)?;
    Ok(object)
}

fn change(kind: &Kind, old: &Value, patch: &Value) -> Result<Value, Failure> {
    let shown = kind.rules.served(old).unwrap_or_else(|| old.clone());
    let mut object = understand(kind, merge_patch(&shown, patch).unwrap())?;
    object["metadata"]["generation"] = old["metadata"]["generation"].clone();
    if object["metadata"]["generation"].is_null() {
        clear(&mut object["metadata"], "generation");
    }
    kind.rules.prepare_update(&mut object, old, Part::Main);
    kind.rules.admit_update(&mut object, old, Part::Main, &world())?;
    let mut errors = metadata::validate_update(&object["metadata"], &old["metadata"]);
    errors.extend(kind.rules.validate_update(&object, old, Part::Main));
    refuse(kind, &object, &errors)?;
    Ok(object)
}

/// An answer in the form in which they are recorded.
fn told(kind: &Kind, answer: &Result<Value, Failure>) -> Value {
    match answer {
        Ok(object) => {
            let mut object = kind.rules.served(object).unwrap_or_else(|| object.clone());
            for key in ["uid", "creationTimestamp", "resourceVersion"] {
                clear(&mut object["metadata"], key);
            }
            object
        }
        Err(failure) => {
            let fields: Vec<&str> =
                failure.causes.iter().map(|cause| cause.field.as_str()).collect();
            json!({"reason": failure.reason, "message": failure.message, "fields": fields})
        }
    }
}

fn comparable(mut answer: Value) -> Value {
    clear(&mut answer["status"], "lastPhaseTransitionTime");
    if let Some(text) = answer["message"].as_str() {
        let shown = SHOWN.iter().any(|words| text.contains(words));
        if let Some((head, _)) = text.split_once('\n').filter(|_| shown) {
            answer["message"] = json!(head);
        }
    }
    if answer["status"].is_null() {
        clear(&mut answer, "status");
    }
    for condition in super::json::items_mut(&mut answer["status"], "conditions") {
        clear(condition, "lastTransitionTime");
    }
    if answer["status"].is_null() {
        clear(&mut answer, "status");
    }
    answer
}

#[test]
fn objects_become_what_the_real_server_makes_of_them() {
    let cases: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let kind = kind_of(&case["given"]);
        let made = create(&kind, &case["given"]);
        let mut check = |ours: Value, real: &Value, what: &Value| {
            let (ours, real) = (comparable(ours), comparable(real.clone()));
            if ours != real {
                wrong.push(format!("{} {what}\n  ours {ours}\n  real {real}", kind.kind));
            }
        };
        check(told(&kind, &made), &case["answer"], &case["given"]);
        if let (Ok(made), Some(patch)) = (&made, case.get("patch")) {
            // Which object a patch is for is for the verbs to say.
            if patch["metadata"]["name"].is_null() {
                let changed = change(&kind, made, patch);
                check(told(&kind, &changed), &case["patch_answer"], patch);
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// Every place in a value, as pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => {
            for (key, child) in members {
                let key = key.replace('~', "~0").replace('/', "~1");
                places(child, &format!("{at}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, child) in items.iter().enumerate() {
                places(child, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

#[test]
fn no_value_in_any_place_breaks_the_rules() {
    let cases: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e300),
        json!(""),
        json!("\u{0}ä/%"),
        json!([]),
        json!([null, {}, 5]),
        json!({}),
        json!({"": null, "a": {"b": []}}),
    ];
    let mut accepted = 0_u32;
    // Some of them: those that are alike find the same.
    for case in cases.iter().filter(|case| case["code"] == 201).step_by(3) {
        let kind = kind_of(&case["given"]);
        let whole = create(&kind, &case["given"]).unwrap();
        let whole = kind.rules.served(&whole).unwrap_or(whole);
        let mut all = Vec::new();
        places(&whole, "", &mut all);
        for place in all.iter().filter(|place| !matches!(place.as_str(), "/apiVersion" | "/kind")) {
            for value in &odd {
                let mut object = whole.clone();
                if let Some(target) = object.pointer_mut(place) {
                    *target = value.clone();
                }
                if let Ok(made) = create(&kind, &object) {
                    accepted += 1;
                    kind.rules.fields(&made);
                    kind.rules.warnings(&made);
                }
            }
        }
    }
    assert!(accepted > 1000, "{accepted}");
}
