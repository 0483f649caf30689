//! Schemas put to use, with the words of the API server.

use serde_json::{Value, json};

use super::Schema;

fn schema(spec: &Value) -> Schema {
    Schema::parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap()
}

fn told(schema: &Schema, spec: &Value, old: Option<&Value>) -> Vec<String> {
    let object =
        json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec});
    let old = old.map(
        |spec| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": "a"}, "spec": spec}),
    );
    let mut errors = schema.validate(&object, old.as_ref());
    schema.conclude(&object, old.as_ref(), &mut errors);
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn what_was_wrong_before_is_let_pass_while_it_stays() {
    let schema = schema(&json!({"type": "object", "properties": {
        "a": {"type": "string", "maxLength": 1},
        "b": {"type": "string"},
        "list": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
                 "items": {"type": "object", "properties": {"n": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}}},
        "plain": {"type": "array", "items": {"type": "integer", "maximum": 1}},
    }}));
    let old = json!({"a": "long", "list": [{"n": "x", "v": 5}], "plain": [5]});
    let same = json!({"a": "long", "b": "new", "list": [{"n": "y", "v": 1}, {"n": "x", "v": 5}], "plain": [5]});
    assert_eq!(told(&schema, &same, Some(&old)), Vec::<String>::new());
    let worse = json!({"a": "longer", "list": [{"n": "x", "v": 6}], "plain": [5, 1]});
    assert_eq!(
        told(&schema, &worse, Some(&old)),
        [
            "spec.a: Too long: may not be more than 1 byte",
            "spec.list[0].v: Invalid value: 6: spec.list[0].v in body should be less than or equal to 1",
            "spec.plain[0]: Invalid value: 5: spec.plain[0] in body should be less than or equal to 1",
        ]
    );
}

#[test]
fn rules_refuse_with_their_message_reason_and_path() {
    let rules = |rules: &Value| {
        schema(&json!({"type": "object", "properties": {
            "min": {"type": "integer"}, "max": {"type": "integer"}, "a-b": {"type": "string"},
            "names": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        }, "x-kubernetes-validations": rules}))
    };
    let cases = [
        (
            json!([{"rule": "self.min <= self.max", "message": "too small"}]),
            "spec: Invalid value: too small",
        ),
        (
            json!([{"rule": "self.min <= self.max"}]),
            "spec: Invalid value: failed rule: self.min <= self.max",
        ),
        (
            json!([{"rule": "self.min <= self.max", "fieldPath": ".min", "reason": "FieldValueForbidden", "message": "no"}]),
            "spec.min: Forbidden: no",
        ),
        (
            json!([{"rule": "self.min <= self.max", "fieldPath": ".min", "reason": "FieldValueRequired", "message": "no"}]),
            "spec.min: Required value: no",
        ),
        (
            json!([{"rule": "self.min <= self.max", "reason": "FieldValueDuplicate", "message": "no"}]),
            "spec: Duplicate value",
        ),
        (
            json!([{"rule": "self.min <= self.max", "messageExpression": "'%d is above %d'.format([self.min, self.max])"}]),
            "spec: Invalid value: 5 is above 1",
        ),
        (json!([{"rule": "self.a__dash__b == 'y'", "message": "m"}]), "spec: Invalid value: m"),
        (
            json!([{"rule": "self.names[3] == 'y'", "message": "m"}]),
            r#"spec: Invalid value: "object": index out of bounds: 3 evaluating rule: m"#,
        ),
        (
            json!([{"rule": "self.names.all(n, n in ['x'])", "message": "m", "fieldPath": ".map['k']"}]),
            "spec.map[k]: Invalid value: m",
        ),
        (json!([{"rule": "size(self.map) == 0", "message": "m"}]), "spec: Invalid value: m"),
    ];
    let spec = json!({"min": 5, "max": 1, "a-b": "x", "names": ["x", "z"], "map": {"k": 1}});
    for (rule, wanted) in cases {
        assert_eq!(told(&rules(&rule), &spec, None), [wanted], "{rule}");
    }
}

#[test]
fn transition_rules_compare_only_where_there_is_something_to_compare() {
    let schema = schema(&json!({"type": "object", "properties": {
        "name": {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "immutable"}]},
        "whole": {"type": "object", "properties": {"x": {"type": "string"}},
                  "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "whole is immutable"}]},
        "once": {"type": "string", "x-kubernetes-validations": [
            {"rule": "oldSelf.hasValue() || self.startsWith('a')", "optionalOldSelf": true, "message": "begins with a"}]},
        "kept": {"type": "string", "maxLength": 100, "x-kubernetes-validations": [{"rule": "self == 'good'", "message": "bad"}]},
    }}));
    assert_eq!(told(&schema, &json!({"name": "a", "once": "a"}), None), Vec::<String>::new());
    assert_eq!(
        told(&schema, &json!({"once": "b"}), None),
        [r#"spec.once: Invalid value: "b": begins with a"#]
    );
    assert_eq!(
        told(&schema, &json!({"once": "b"}), Some(&json!({"once": "c"}))),
        Vec::<String>::new()
    );
    assert_eq!(
        told(&schema, &json!({"name": "b"}), Some(&json!({"name": "a"}))),
        [r#"spec.name: Invalid value: "b": immutable"#]
    );
    assert_eq!(
        told(&schema, &json!({"whole": {"x": "2"}}), Some(&json!({"whole": {"x": "1"}}))),
        ["spec.whole: Invalid value: whole is immutable"]
    );
    // What was refused by no rule then is let pass while it is not touched.
    assert_eq!(
        told(&schema, &json!({"kept": "x", "name": "a"}), Some(&json!({"kept": "x"}))),
        Vec::<String>::new()
    );
    assert_eq!(
        told(&schema, &json!({"kept": "y"}), Some(&json!({"kept": "x"}))),
        [r#"spec.kept: Invalid value: "y": bad"#]
    );
}

#[test]
fn rules_are_not_asked_of_a_malformed_object() {
    let schema = schema(&json!({"type": "object", "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.a > 1"}]}));
    assert_eq!(
        told(&schema, &json!({"a": "x"}), None),
        [
            r#"spec.a: Invalid value: "string": spec.a in body must be of type integer: "string""#,
            "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation",
        ]
    );
}

#[test]
fn metadata_and_type_are_seen_by_rules_of_the_root() {
    let schema = Schema::parse(&json!({"type": "object",
        "x-kubernetes-validations": [{"rule": "self.metadata.name == 'b' && self.kind == 'K'", "message": "m"}]}))
    .unwrap();
    let object =
        |name: &str| json!({"apiVersion": "g/v1", "kind": "K", "metadata": {"name": name}});
    assert_eq!(schema.rules(&object("b"), None), []);
    assert_eq!(schema.rules(&object("a"), None)[0].to_string(), "<nil>: Invalid value: m");
}

#[test]
fn faults_of_rules_are_found_without_an_object() {
    let schema = schema(&json!({"type": "object", "properties": {"a": {"type": "integer"}},
    "x-kubernetes-validations": [
        {"rule": "self.b > 1"}, {"rule": "self.a +"}, {"rule": "self.a + 1"}, {"rule": "nothing(self.a)"},
        {"rule": "self.a > 1", "messageExpression": "self.a > 1"},
        {"rule": "T{a: 1} == self"},
        {"rule": "self.a == oldSelf.a"},
    ]}));
    let reports = schema.rule_reports();
    let told: Vec<_> =
        reports.iter().map(|report| report.rule_fault.as_deref().unwrap_or_default()).collect();
    assert_eq!(
        told[0],
        "compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b > 1\n | ....^"
    );
    assert!(
        told[1].starts_with(
            "compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>'"
        ),
        "{}",
        told[1]
    );
    assert_eq!(told[2], "cel expression must evaluate to a bool");
    assert_eq!(
        told[3],
        "compilation failed: ERROR: <input>:1:8: undeclared reference to 'nothing' (in container '')\n | nothing(self.a)\n | .......^"
    );
    assert_eq!(told[4], "");
    assert_eq!(
        reports[4].message_fault.as_deref(),
        Some("messageExpression must evaluate to a string")
    );
    assert!(!told[5].is_empty());
    assert!(reports[6].compares && !reports[4].compares);
    assert_eq!(reports.len(), 7);
    assert!(reports.iter().all(|report| report.path == "properties[spec]"));
    assert_eq!(schema.field_path(".spec.c").unwrap_err(), "does not refer to a valid field");
}

#[test]
fn evaluation_is_bounded() {
    let heavy = "self.all(a, self.all(b, self.all(c, self.all(d, a + b + c + d >= 0))))";
    let schema = schema(&json!({"type": "array", "items": {"type": "integer"},
        "x-kubernetes-validations": [{"rule": heavy}, {"rule": "size(self) == 0"}]}));
    let many: Vec<u32> = (0..2000).collect();
    let began = std::time::Instant::now();
    assert_eq!(
        told(&schema, &json!(many), None),
        [
            r#"spec: Invalid value: "array": validation failed due to running out of cost budget, no further validation rules will be run"#
        ]
    );
    assert!(began.elapsed().as_secs() < 60);
}

#[test]
fn no_rule_breaks_the_program() {
    let deep = format!("{}1{} == 1", "(".repeat(5000), ")".repeat(5000));
    let chain = format!("{} == 1", vec!["1"; 20_000].join(" + "));
    let turns = format!("{}true", "!".repeat(5000));
    let choice = format!("{}true", "true ? true : ".repeat(3000));
    let dots = format!("self{} == 1", ".a".repeat(9000));
    let grown = format!("'a'{} == ''", ".replace('a', 'aaaaaaaaaaaaaaaaaaaaaaaa')".repeat(40));
    let range = "lists.range(9223372036854775807).size() > 0".to_owned();
    for rule in
        [deep, chain, turns, choice, dots, grown, range, "[][0]".to_owned(), "\u{0}".to_owned()]
    {
        let schema = schema(
            &json!({"type": "object", "x-kubernetes-validations": [{"rule": rule, "message": "m"}]}),
        );
        let _ = schema.rule_reports();
        let _ = told(&schema, &json!({}), None);
    }
}

#[test]
fn wrong_keywords_are_named() {
    let wrong = Schema::parse(
        &json!({"type": "thing", "properties": {"a": {"maxLength": "x", "items": []}}}),
    )
    .unwrap_err();
    let told: Vec<_> = wrong.iter().map(ToString::to_string).collect();
    assert_eq!(
        told,
        [
            r#"properties[a].items: Invalid value: "": must be a schema object and not an array"#,
            r#"properties[a].maxLength: Invalid value: "x": must be an integer"#,
            r#"type: Invalid value: "thing": must be one of array, boolean, integer, number, object, string"#,
        ]
    );
    assert!(Schema::parse(&json!(7)).is_err());
    let mut deep = json!({});
    for _ in 0..300 {
        deep = json!({"items": deep});
    }
    assert!(Schema::parse(&deep).is_err());
}
