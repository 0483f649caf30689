//! What must hold for every input of every fuzz target.
//!
//! The fuzz targets call these with what the fuzzer makes up, and an ordinary test with the kept
//! corpus. Panics here are findings. Inputs of patches are two lines: the target, then the patch.

use serde_json::Value;
use trainyard_schema::jsonpath::Path;
use trainyard_schema::patch::{self, Shape};
use trainyard_schema::quantity;
use trainyard_schema::select::{cont, fields, labels};

/// The two values of a patch's input.
fn two_lines(input: &[u8]) -> Option<(Value, Value)> {
    let text = std::str::from_utf8(input).ok()?;
    let (target, patch) = text.split_once('\n')?;
    Some((serde_json::from_str(target).ok()?, serde_json::from_str(patch).ok()?))
}

/// What is stored must be readable again.
pub fn comes_back(value: &Value) {
    let text = value.to_string();
    // A member of this name means something else to the library's own reader of values; whoever
    // reads foreign text as values must read it member by member.
    if text.contains("$serde_json::private::") {
        return;
    }
    let read: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert!(same(&read, value), "{read} {value}");
}

/// Whether two values are the same, but for the last digit of a fraction, which reading may turn.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.0 == b.0 && same(a.1, b.1))
        }
        (Value::Number(x), Value::Number(y)) if x.is_f64() && y.is_f64() => {
            let (x, y) = (x.as_f64().unwrap_or_default(), y.as_f64().unwrap_or_default());
            (x - y).abs() <= x.abs() * 1e-14
        }
        (a, b) => a == b,
    }
}

pub fn json_patch(input: &[u8]) {
    let Some((target, patch)) = two_lines(input) else { return };
    let _ = patch::json_patch_unknown_fields(&patch);
    match patch::json_patch(&target, &patch) {
        Ok(made) => comes_back(&made),
        Err(error) => assert!(!error.message().is_empty() && error.code() >= 400),
    }
}

pub fn merge_patch(input: &[u8]) {
    let Some((target, patch)) = two_lines(input) else { return };
    if let Ok(made) = patch::merge_patch(&target, &patch) {
        comes_back(&made);
        assert!(made.is_object());
    }
}

/// A type whose lists are merged by name at every level, and whose `tags` are sets.
pub enum Everywhere {
    Object,
    List,
    Set,
}

impl Shape for Everywhere {
    fn field(&self, name: &str) -> Option<&Self> {
        match name {
            "list" => Some(&Self::List),
            "tags" => Some(&Self::Set),
            _ => Some(&Self::Object),
        }
    }
    fn element(&self) -> Option<&Self> {
        Some(&Self::Object)
    }
    fn is_merged(&self) -> bool {
        !matches!(self, Self::Object)
    }
    fn retains_keys(&self) -> bool {
        false
    }
    fn merge_key(&self) -> Option<&str> {
        matches!(self, Self::List).then_some("name")
    }
}

pub fn strategic_merge(input: &[u8]) {
    let Some((target, patch)) = two_lines(input) else { return };
    if let Ok(made) = patch::strategic_merge(&target, &patch, Some(&Everywhere::Object)) {
        comes_back(&made);
    }
    let _ = patch::strategic_merge::<Everywhere>(&target, &patch, None);
}

pub fn label_selector(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(selector) = labels::Selector::parse(text) else { return };
    let again = labels::Selector::parse(&selector.to_string());
    assert_eq!(again.as_ref(), Ok(&selector));
    let labels = [("a".into(), "1".into()), ("b".into(), "x".into())];
    assert_eq!(selector.matches(&labels), again.is_ok_and(|again| again.matches(&labels)));
}

pub fn field_selector(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(selector) = fields::Selector::parse(text) else { return };
    let again = fields::Selector::parse(&selector.to_string()).expect("what is written is read");
    let sorted = |selector: &fields::Selector| {
        let mut all: Vec<String> =
            selector.requirements().iter().map(|one| format!("{one:?}")).collect();
        all.sort();
        all
    };
    assert_eq!(sorted(&again), sorted(&selector));
}

pub fn continue_token(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(token) = cont::Token::decode(text) else { return };
    if !token.start.is_empty() {
        assert_eq!(cont::Token::decode(&token.encode()), Ok(token));
    }
}

pub fn quantity(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(amount) = quantity::parse(text) else { return };
    let written = amount.to_string();
    let again = quantity::parse(&written).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again, amount, "{text} {written}");
    assert_eq!(again.to_string(), written);
}

/// Two lines: the path, then an object.
pub fn jsonpath(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (path, object) = text.split_once('\n').unwrap_or((text, "{\"a\":[{\"b\":1}]}"));
    let Ok(path) = Path::parse(path) else { return };
    let object: Value = serde_json::from_str(object).unwrap_or_default();
    if let Ok(found) = path.try_find(&object) {
        assert!(found.len() <= 100_000);
    }
}
