//! What kube-apiserver 1.36 said about custom resources, and what we say.
//!
//! `data/real_answers.json` holds the fields of a definition, each with its schema, and values for
//! them with that server's answers: the value as stored, or reason, field and message of each cause.

use serde_json::{Value, json};
use trainyard_schema::structural::Schema;

fn object(field: &str, value: &Value) -> Value {
    json!({
        "apiVersion": "probe.example.com/v1", "kind": "Diff", "metadata": {"name": "a"},
        "spec": {field: value},
    })
}

/// Reason, field and message of each cause, in a fixed order: there it depends on a hash.
fn sorted(causes: impl Iterator<Item = [String; 3]>) -> Vec<[String; 3]> {
    let mut causes: Vec<_> = causes.collect();
    causes.sort();
    causes
}

#[test]
fn answers_are_those_of_the_real_server() {
    let data: Value = serde_json::from_str(include_str!("data/real_answers.json")).unwrap();
    let spec = json!({"type": "object", "properties": data["fields"]});
    let schema = Schema::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap();
    let cases = data["cases"].as_array().unwrap();
    assert!(cases.len() > 200);
    for case in cases {
        let field = case["field"].as_str().unwrap();
        let mut new = object(field, &case["value"]);
        schema.prune(&mut new);
        schema.default(&mut new);
        let old = case.get("old").map(|old| object(field, old));
        let mut errors = schema.validate(&new, old.as_ref());
        schema.conclude(&new, old.as_ref(), &mut errors);
        let ours = sorted(errors.iter().map(|error| {
            let path = if error.path.is_empty() { "<nil>" } else { &error.path };
            [error.fault.reason().to_owned(), path.to_owned(), error.body()]
        }));
        let theirs: Vec<[String; 3]> =
            serde_json::from_value(case.get("refused").cloned().unwrap_or_else(|| json!([])))
                .unwrap();
        assert_eq!(ours, sorted(theirs.into_iter()), "{case}");
        if let Some(stored) = case.get("stored") {
            let absent = json!("<absent>");
            assert_eq!(new["spec"].get(field).unwrap_or(&absent), stored, "{case}");
        }
    }
}
