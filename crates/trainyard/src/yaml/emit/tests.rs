//! What is printed is read back as the same values, by this reader and by those of YAML 1.1.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::yaml::parse;

fn read_back(value: &Value) -> Value {
    let text = to_string([value]);
    let mut documents = parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0).value
}

#[test]
fn the_style_is_kubectls() {
    let value = json!({
        "metadata": {"labels": {}, "name": "a"},
        "spec": {"args": ["--x=1", "-c"], "containers": [{"name": "t", "ports": [{"port": 1}]}]},
        "lists": [[1, 2], []],
        "text": "one\ntwo\n",
    });
    let text = "\
lists:
- - 1
  - 2
- []
metadata:
  labels: {}
  name: a
spec:
  args:
  - --x=1
  - -c
  containers:
  - name: t
    ports:
    - port: 1
text: |
  one
  two
";
    assert_eq!(to_string([&value]), text);
    assert_eq!(to_string([&json!({"a": 1}), &json!({"b": 2})]), "a: 1\n---\nb: 2\n");
}

/// Strings that a reader of some YAML takes for something else, or for the end of a document.
#[rustfmt::skip]
const AMBIGUOUS: [&str; 72] = [
    "", " ", "y", "Y", "n", "yes", "No", "on", "OFF", "true", "False", "null", "~", "Null",
    "0644", "1e3", "1_000", "0x1F", "0b1", "0o7", "12:30:45", "1.5", ".5", "-1", "+1",
    "2024-01-02", "2001-12-14t21:59:43.10-05:00", ".inf", "-.inf", ".nan", "nan", "inf", "-inf",
    "<<", "=", "-", "- a", "?", "? a", ":", "a: b", "a:", "a #b", "#a", "---", "--- a", "---a",
    "...", "&a", "*a", "!a", "|", ">", "%a", "@a", "`a", "'a'", "\"a\"", "{a}", "[a]", ",a",
    "a ", "\ta", "a\tb", "é", "\u{7f}", "\u{85}", "\u{2028}", "\u{feff}", "1e", "0.0.0.0",
    "127.0.0.1",
];

#[test]
fn strings_that_somebody_reads_as_something_else_are_quoted() {
    for text in AMBIGUOUS {
        let mut out = String::new();
        string(&mut out, text);
        assert!(out.starts_with('"'), "{text:?} is printed as {out}");
        assert_eq!(read_back(&json!({text: text})), json!({text: text}));
    }
}

#[test]
fn ordinary_strings_are_not() {
    for text in [
        "mnist",
        "kubeflow.org/v1",
        "--batch_size=32",
        "-m",
        "/train",
        "1Gi",
        "100m",
        "a:b",
        "gcr.io/x/y:1.0",
        "$(POD_NAME)",
        "one two",
        "./run.sh",
        ".spec.a",
        "a#b",
        "yes!",
        "Nine",
    ] {
        let mut out = String::new();
        string(&mut out, text);
        assert_eq!(out, text);
        assert_eq!(read_back(&json!({text: text})), json!({text: text}));
    }
}

#[test]
fn texts_of_several_lines() {
    for text in [
        "a\nb",
        "a\nb\n",
        "a\nb\n\n\n",
        "a\n\n  b\n",
        "a\n b",
        "#!/bin/sh\nexit 1\n",
        "a\n---\nb",
        "a: b\nc: d",
        " a\nb",
        "\na",
        "\n",
        "a\r\nb",
        "a\n\tb",
        "a \nb ",
        "- a\n- b\n",
        "a\n\u{1}",
    ] {
        let value = json!([{"k": text}, text, [text]]);
        assert_eq!(read_back(&value), value, "{text:?}");
    }
}

#[test]
fn numbers_keep_their_value() {
    for value in [
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(0.1),
        json!(1e300),
        json!(5e-324),
    ] {
        assert_eq!(read_back(&json!({"n": value})), json!({"n": value}));
    }
    assert_eq!(to_string([&json!(1e300)]), "1.0e+300\n");
}

#[test]
fn long_keys_are_announced() {
    let value = json!({"k".repeat(5_000): {"a": [1]}, "b": {"x y".repeat(1_000): "v"}});
    assert_eq!(read_back(&value), value);
}

fn any_text() -> impl Strategy<Value = String> {
    // Short texts of characters that mean something, and any text at all.
    prop_oneof![
        "[-:#?&*!|>%@`'\"{}\\[\\], \n\r\tyYnN0-9a-fxeE._+~=<\u{85}\u{2028}\u{feff}é]{0,8}",
        any::<String>(),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|float: f64| Value::from(float + 0.5_f64.powi(20))),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            proptest::collection::btree_map(any_text(), inner, 0..5).prop_map(Value::from_iter),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_reads_back_equal(value in any_value()) {
        // A document that is nothing is left out when reading.
        let value = json!({"v": value});
        prop_assert_eq!(read_back(&value), value);
    }
}
