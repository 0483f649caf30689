//! What paths find, and what is no path.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "metadata": {"name": "n", "labels": {"a.b/c": "dotted", "plain": "p"}},
        "spec": {"replicas": 3, "ratio": 0.5, "on": true, "none": null},
        "status": {
            "conditions": [
                {"type": "Ready", "status": "True", "n": 1},
                {"type": "Failed", "status": "False", "n": 2},
                {"type": "Odd", "n": 3},
            ],
            "list": ["x", "y", "z"],
        },
    })
}

fn found(path: &str) -> Value {
    Path::parse(path).unwrap().find(&object()).into_iter().cloned().collect()
}

#[test]
fn what_columns_write() {
    let cases = [
        (".metadata.name", json!(["n"])),
        ("{.metadata.name}", json!(["n"])),
        ("$.metadata.name", json!(["n"])),
        (".spec.missing.deep", json!([])),
        (".spec.none", json!([null])),
        (r".metadata.labels.a\.b/c", json!(["dotted"])),
        (r".metadata.labels['a\.b/c']", json!(["dotted"])),
        (".metadata.labels['plain']", json!(["p"])),
        (".metadata['labels.plain']", json!(["p"])),
        (".status.list[0]", json!(["x"])),
        (".status.list[-1]", json!(["z"])),
        (".status.list[-1:]", json!(["z"])),
        (".status.list[*]", json!(["x", "y", "z"])),
        (".status.list.*", json!(["x", "y", "z"])),
        (".status.list[0:2]", json!(["x", "y"])),
        (".status.list[::2]", json!(["x", "z"])),
        (".status.list[0,2]", json!(["x", "z"])),
        (".status.list[]", json!(["x"])),
        (".status.list[1:1]", json!([])),
        (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
        (".status.conditions[?(@.type=='Failed')].status", json!(["False"])),
        (".status.conditions[?(@.type!='Failed')].type", json!(["Ready", "Odd"])),
        (".status.conditions[?(@.n>1)].n", json!([2, 3])),
        (".status.conditions[?(@.n>=2)].n", json!([2, 3])),
        (".status.conditions[?(@.n<2)].n", json!([1])),
        (".status.conditions[?(@.n<=2)].n", json!([1, 2])),
        (".status.conditions[?(@.status)].n", json!([1, 2])),
        (".status.conditions[?(@.status==@.type)].n", json!([])),
        (".status.list[?(@=='y')]", json!(["y"])),
        ("..n", json!([1, 2, 3])),
        (".metadata.labels.*", json!(["dotted", "p"])),
        ("'text'", json!(["text"])),
    ];
    for (path, expected) in cases {
        assert_eq!(found(path), expected, "{path}");
    }
}

#[test]
fn what_leads_nowhere() {
    let cases = [
        (".status.list[3]", "array index out of bounds: index 3, length 3"),
        (".status.list[-4]", "array index out of bounds: index -1, length 3"),
        (".status.list[2:1]", "starting index 2 is greater than ending index 1"),
        (".status.list[0:1:0]", "step must be > 0"),
        (".spec[0]", "map[string]interface {} is not array or slice"),
        (".spec.replicas[?(@.a)]", "3 is not array or slice and cannot be filtered"),
        (".status.conditions[?(@.n==1.5)]", "incompatible types for comparison"),
        (".status.conditions[?(@.n=='1')]", "incompatible types for comparison"),
        (".status.conditions[?(@==1)]", "invalid type for comparison"),
        (".status.conditions[?(@.n=1)]", "unrecognized filter operator ="),
        (".status.conditions[?(@.*==1)]", "can only compare one element at a time"),
        ("spec", "unrecognized identifier spec"),
    ];
    for (path, expected) in cases {
        let path = Path::parse(path).unwrap();
        let object = object();
        assert_eq!(path.try_find(&object).unwrap_err().to_string(), expected, "{path:?}");
        assert!(path.find(&object).is_empty());
    }
}

#[test]
fn what_is_no_path() {
    let cases = [
        (".a[", "unterminated array"),
        (".a[x]", "invalid array index x"),
        (".a[-]", "array index - is not a number"),
        (".a[0:1:2:3]", "invalid array index 0:1:2:3"),
        (".a[?(@.b", "unterminated filter"),
        (".a[?(@.b)", "unclosed array expect ]"),
        (".a[?(@.b=='x)]", "unterminated filter"),
        ("'x", "unterminated quoted string"),
        (r"'\q'", r"unquote string '\q' error invalid syntax"),
        (".a....b", "invalid multiple recursive descent"),
        ("1.2.3", "cannot parse number 1.2.3"),
        ("\n", "unclosed action"),
        ("(", "unrecognized character in action: U+0028 '('"),
    ];
    for (path, expected) in cases {
        assert_eq!(Path::parse(path).unwrap_err().to_string(), expected, "{path}");
    }
}

#[test]
fn escapes_in_texts() {
    let object = json!([{"a": "é\"'\tA"}]);
    let path = Path::parse(r#"[?(@.a=="\u00e9\"'\t\x41")]"#).unwrap();
    assert_eq!(path.find(&object).len(), 1);
}

#[test]
fn wildcards_have_a_bound() {
    let mut wide = json!([]);
    for _ in 0..6 {
        wide = Value::Array(vec![wide; 6]);
    }
    let path = Path::parse("..[*]..[*]..[*]").unwrap();
    assert!(matches!(path.try_find(&wide), Err(PathError::TooMany { .. })));
}

proptest! {
    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        let _ = Path::parse(&text).map(|path| path.find(&object()).len());
    }

    #[test]
    fn nearly_paths_are_answered(text in r#"(\.[a-z*]|\.\.|\[|\]|[0-9:,*-]|'|"|\?|\(|\)|@|\$|==|<|\\|\{|\}){0,12}"#) {
        let _ = Path::parse(&text).map(|path| path.find(&object()).len());
    }

    #[test]
    fn a_field_is_found(name in "[a-z]{1,5}", value in any::<i64>()) {
        let object = json!({(name.clone()): value});
        let path = Path::parse(&format!(".{name}")).unwrap();
        let expected = Value::from(value);
        prop_assert_eq!(path.find(&object), vec![&expected]);
    }
}
