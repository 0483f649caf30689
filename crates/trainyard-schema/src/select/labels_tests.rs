//! What label selectors accept, refuse and select.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Vec<(Box<str>, Box<str>)> {
    let mut labels: Vec<_> = pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    labels.sort_unstable();
    labels
}

fn selects(selector: &str, pairs: &[(&str, &str)]) -> bool {
    Selector::parse(selector).unwrap().matches(&labels(pairs))
}

#[test]
fn selects_by_every_operator() {
    let object = [("app", "web"), ("tier", "front"), ("size", "12"), ("in", "in")];
    let held = [
        "",
        "   ",
        "app",
        "app=web",
        "app==web",
        "app = web , tier",
        "app in (web)",
        "app in (db, web)",
        "app notin (db)",
        "other notin (db)",
        "other!=x",
        "app!=db",
        "!other",
        "! other",
        "size>11",
        "size<13",
        "in in (in)",
        "in=in",
        "in",
        "app,tier,!x",
        "x notin ()",
    ];
    for selector in held {
        assert!(selects(selector, &object), "{selector:?} selects");
    }
    let refused = [
        "app=db",
        "app=",
        "app in ()",
        "app in (,)",
        "app notin (web,)",
        "!app",
        "app!=web",
        "other",
        "other>1",
        "app>1",
        "size>12",
        "size<12",
        "app=web,app=db",
    ];
    for selector in refused {
        assert!(!selects(selector, &object), "{selector:?} does not select");
    }
    assert!(selects("empty in (,a)", &[("empty", "")]));
    assert!(selects("empty=", &[("empty", "")]));
    assert!(!Selector::nothing().matches(&[]));
}

#[test]
fn refuses_in_the_words_of_the_api_server() {
    let name_rule = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    let value_rule = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
    let cases = [
        (",", "found ',', expected: !, identifier, or 'end of string'".to_owned()),
        ("a,", "found '', expected: identifier after ','".to_owned()),
        ("a,,b", "found ',', expected: identifier after ','".to_owned()),
        ("a=b c", "found 'c', expected: ',' or 'end of string'".to_owned()),
        ("!a=b", "found '=', expected: ',' or 'end of string'".to_owned()),
        ("!", "unable to parse requirement: found '', expected: identifier".to_owned()),
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
                .to_owned(),
        ),
        ("a in b", "unable to parse requirement: found 'b' expected: '('".to_owned()),
        (
            "a in (=",
            "unable to parse requirement: found '=', expected: ',', ')' or identifier".to_owned(),
        ),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'".to_owned()),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier".into()),
        ("a=(", "unable to parse requirement: found '(', expected: identifier".to_owned()),
        (
            "-a",
            format!(
                "unable to parse requirement: <nil>: Invalid value: \"-a\": name part {name_rule}"
            ),
        ),
        (
            "a=-",
            format!(
                "unable to parse requirement: values[0][a]: Invalid value: \"-\": {value_rule}"
            ),
        ),
        (
            "a>b",
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer".to_owned(),
        ),
    ];
    for (selector, expected) in cases {
        let error = Selector::parse(selector).unwrap_err();
        assert_eq!(error.to_string(), expected, "{selector:?}");
    }
}

#[test]
fn a_zero_byte_ends_a_word() {
    assert_eq!(Selector::parse("a\0").unwrap().to_string(), "a");
    assert!(Selector::parse("a\0b").is_err());
}

#[test]
fn the_object_form() {
    let selector = json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "old", "operator": "DoesNotExist"},
        ],
    });
    let selector = Selector::from_label_selector(&selector).unwrap();
    assert_eq!(selector.to_string(), "app=web,!old,tier in (a,b)");
    assert!(selector.matches_value(Some(&json!({"app": "web", "tier": "a"}))));
    assert!(!selector.matches_value(Some(&json!({"app": "web", "tier": "a", "old": ""}))));
    assert!(!selector.matches_value(None));

    assert!(Selector::from_label_selector(&json!({})).unwrap().is_empty());
    assert!(!Selector::from_label_selector(&json!(null)).unwrap().matches(&[]));
    let refused = [
        (json!([]), "invalid label selector: a label selector is an object"),
        (json!({"matchLabels": 1}), "invalid label selector: matchLabels is an object"),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Is"}]}),
            "\"Is\" is not a valid label selector operator",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
            "values: Invalid value: [\"x\"]: values set must be empty for exists and does not exist",
        ),
    ];
    for (selector, expected) in refused {
        let error = Selector::from_label_selector(&selector).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_as_the_same(text in r"([ab][=!<>]?[=]?[1x]?|!?[ab]|[ab] (in|notin) \([ab,]{0,4}\))(,[ab]=[ab]){0,2}") {
        if let Ok(selector) = Selector::parse(&text) {
            prop_assert_eq!(Selector::parse(&selector.to_string()).unwrap(), selector);
        }
    }

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        let _ = Selector::parse(&text);
    }

    #[test]
    fn a_key_is_in_or_not_in(value in "[ab]?", labels_of in prop::collection::btree_map("[ab]", "[ab]", 0..3)) {
        let labels: Vec<(Box<str>, Box<str>)> =
            labels_of.iter().map(|(k, v)| (k.as_str().into(), v.as_str().into())).collect();
        let inside = Selector::parse(&format!("a in ({value})")).unwrap().matches(&labels);
        let outside = Selector::parse(&format!("a notin ({value})")).unwrap().matches(&labels);
        prop_assert!(inside != outside);
    }
}
