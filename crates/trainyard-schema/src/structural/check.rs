//! Whether a value is what its schema says, rules apart.
//!
//! Owns the keywords of a node and the order in which they are checked, which follows the API
//! server's, as do the texts. Must not know which objects there are.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    correlate::{Elements, Pair},
    formats,
    node::{Additional, Marks, More, Node},
    numbers::{self, Numeral},
    problems::{Findings, Problem, field},
};
use crate::{Fault, FieldError, golang::quote};

static NOTHING: std::sync::LazyLock<More> = std::sync::LazyLock::new(More::default);

/// Checks a value; `old` is what it was before, if this is an update.
pub(super) fn check(node: &Node, path: &str, value: &Value, old: Option<&Value>) -> Findings {
    let pair = old.map(|old| Pair { new: value, old, node });
    checked(node, path, value, pair.as_ref())
}

/// What was wrong before and has not changed is let pass.
fn checked(node: &Node, path: &str, value: &Value, pair: Option<&Pair<'_>>) -> Findings {
    let mut findings = keywords(node, path, value, pair);
    if !findings.is_clean() && pair.is_some_and(Pair::is_unchanged) {
        findings.forgive();
    }
    findings
}

fn keywords(node: &Node, path: &str, value: &Value, pair: Option<&Pair<'_>>) -> Findings {
    let more = node.more().unwrap_or(&NOTHING);
    let mut findings = Findings::default();
    if value.is_null() {
        findings.merge(kind(node, more, path, value));
        findings.merge(choice(more, path, value));
        return findings;
    }
    if node.kind.is_some() || node.has(Marks::INT_OR_STRING) || !more.format.is_empty() {
        findings.merge(kind(node, more, path, value));
        findings.matches += 1;
    }
    findings.merge(clauses(more, path, value, pair));
    findings.matches += 1;
    match value {
        Value::String(text) => {
            findings.merge(of_text(more, path, text));
            findings.matches += 1;
            if !more.format.is_empty() {
                findings.merge(format(more, path, text));
                findings.matches += 1;
            }
        }
        Value::Number(number) => {
            findings.merge(numbers::check(node, more, path, number));
            findings.matches += 1;
        }
        Value::Array(items) => {
            findings.merge(array(node, more, path, items, pair));
            findings.matches += 1;
        }
        _ => {}
    }
    findings.merge(choice(more, path, value));
    findings.matches += 1;
    if let Value::Object(fields) = value {
        findings.merge(object(node, more, path, fields, pair));
        findings.matches += 1;
    }
    findings.matches += 1;
    findings
}

/// The name of a value's type, and of its format.
fn type_of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) => match Numeral::of(number) {
            Numeral::Whole(_) => ("integer", "int64"),
            Numeral::Float(_) => ("number", "float64"),
        },
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

fn kind(node: &Node, more: &More, path: &str, value: &Value) -> Findings {
    let mut findings = Findings::default();
    findings.matches = 1;
    let wanted: &[&str] = match (node.has(Marks::INT_OR_STRING), node.kind) {
        (true, _) => &["integer", "string"],
        (false, Some(kind)) => &[kind.name()],
        (false, None) => &[],
    };
    let refused = |problem| {
        let mut findings = Findings::default();
        findings.add(problem);
        findings
    };
    let (found, found_format) = type_of(value);
    if value.is_null() {
        if !wanted.is_empty() && !node.has(Marks::NULLABLE) {
            return refused(Problem::of_type(path, &wanted.join(","), found));
        }
        return findings;
    }
    let wants = |name: &str| wanted.contains(&name);
    let whole_float =
        found == "number" && wants("integer") && value.as_f64().is_some_and(numbers::is_whole);
    let whole_number = found == "integer" && wants("number");
    let fits = wants(found) || whole_float || whole_number;
    let format = &*more.format;
    let textual = value.is_string() || value.is_array();
    if !textual && !format.is_empty() && !fits && found_format != format {
        return refused(Problem::of_type(path, format, found_format));
    }
    if !wants("number") && !wants("integer") && !format.is_empty() && textual {
        return findings;
    }
    if !fits {
        return refused(Problem::of_type(path, &wanted.join(","), found));
    }
    findings
}

fn choice(more: &More, path: &str, value: &Value) -> Findings {
    let mut findings = Findings::default();
    if more.choices.is_empty() || more.choices.iter().any(|choice| is_choice(choice, value)) {
        return findings;
    }
    let words: Vec<String> = more
        .choices
        .iter()
        .map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned))
        .collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let error = FieldError::not_supported(field(path), value.clone(), &words);
    let text = format!("should be one of [{}]", words.join(" "));
    findings.add(Problem::with(error, path, &text));
    findings
}

/// Numbers are compared in the form that the choice has.
fn is_choice(choice: &Value, value: &Value) -> bool {
    match (choice, value) {
        (Value::Null, _) => false,
        (Value::Number(choice), Value::Number(value)) => {
            match (Numeral::of(choice), Numeral::of(value)) {
                (Numeral::Whole(choice), Numeral::Whole(value)) => choice == value,
                (Numeral::Float(_), _) => choice.as_f64() == value.as_f64(),
                (Numeral::Whole(_), Numeral::Float(value)) => {
                    choice.as_f64() == Some(value.trunc())
                }
            }
        }
        (choice, value) => choice == value,
    }
}

fn of_text(more: &More, path: &str, text: &str) -> Findings {
    let mut findings = Findings::default();
    let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
    if let Some(most) = more.max_length.filter(|most| length() > *most) {
        let error = FieldError::too_long(field(path), usize::try_from(most).unwrap_or(0));
        let words = format!("should be at most {most} chars long");
        findings.add(Problem::with(error, path, &words));
    } else if let Some(least) = more.min_length.filter(|least| length() < *least) {
        let words = format!("should be at least {least} chars long");
        findings.add(Problem::of_field(Fault::Invalid, path, text, &words));
    } else if let Some(pattern) = &more.pattern {
        let words = match pattern.is_match(text) {
            Ok(true) => return findings,
            Ok(false) => format!("should match '{}'", pattern.text()),
            Err(wrong) => {
                format!("should match '{}, but pattern is invalid: {wrong}'", pattern.text())
            }
        };
        findings.add(Problem::of_field(Fault::Invalid, path, text, &words));
    }
    findings
}

fn format(more: &More, path: &str, text: &str) -> Findings {
    let mut findings = Findings::default();
    if !formats::admits(&more.format, text) {
        findings.add(Problem::of_type(path, &more.format, text));
    }
    findings
}

fn array(
    node: &Node,
    more: &More,
    path: &str,
    items: &[Value],
    pair: Option<&Pair<'_>>,
) -> Findings {
    let mut findings = Findings::default();
    if let Some(element) = node.items() {
        let elements: Option<Elements<'_>> = pair.and_then(Pair::elements);
        for (index, item) in items.iter().enumerate() {
            let pair = elements.as_ref().and_then(|elements| elements.at(index));
            findings.merge(checked(element, &format!("{path}[{index}]"), item, pair.as_ref()));
        }
    }
    let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
    if let Some(least) = more.min_items.filter(|least| count < *least) {
        let words = format!("should have at least {least} items");
        findings.add(Problem::of_field(Fault::Invalid, path, count, &words));
    }
    if let Some(most) = more.max_items.filter(|most| count > *most) {
        let words = format!("should have at most {most} items");
        findings.add(too_many(path, items.len(), most, &words));
    }
    if node.has(Marks::UNIQUE) {
        let mut seen = HashSet::new();
        if !items.iter().all(|item| seen.insert(item.to_string())) {
            findings.add(Problem::of_field(
                Fault::Invalid,
                path,
                "",
                "shouldn't contain duplicates",
            ));
        }
    }
    findings.matches += 1;
    findings
}

fn too_many(path: &str, count: usize, most: i64, words: &str) -> Problem {
    let error = FieldError::too_many(field(path), count, usize::try_from(most).unwrap_or(0));
    Problem::with(error, path, words)
}

fn object(
    node: &Node,
    more: &More,
    path: &str,
    fields: &Map<String, Value>,
    pair: Option<&Pair<'_>>,
) -> Findings {
    let mut findings = Findings::default();
    let count = i64::try_from(fields.len()).unwrap_or(i64::MAX);
    if let Some(least) = more.min_properties.filter(|least| count < *least) {
        let words = format!("should have at least {least} properties");
        findings.add(Problem::of_field(Fault::Invalid, path, count, &words));
    }
    if let Some(most) = more.max_properties.filter(|most| count > *most) {
        let words = format!("should have at most {most} properties");
        findings.add(too_many(path, fields.len(), most, &words));
    }
    for (name, value) in fields {
        let known = node.property(name);
        match (known, node.additional()) {
            (Some(child), _) => {
                let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                let pair = child_pair(path, name, pair);
                findings.merge(checked(child, &below, value, pair.as_ref()));
            }
            (None, Additional::Allowed(false)) => {
                let text = format!("{path}.{name} in body is a forbidden property");
                let error = FieldError::invalid(field(path), name.as_str(), text.clone());
                findings.add(Problem::with(error, path, &text));
            }
            (None, Additional::Of(child)) => {
                let pair = child_pair(path, name, pair);
                findings.merge(checked(child, &format!("{path}.{name}"), value, pair.as_ref()));
            }
            (None, _) => {}
        }
    }
    for name in more.required.iter().filter(|name| !fields.contains_key(&***name)) {
        let path = format!("{path}.{name}");
        let error = FieldError::required(field(&path), "");
        findings.add(Problem::with(error, &path, "is required"));
    }
    findings
}

/// The head of an object is never let pass: old and new are read in the same version.
fn child_pair<'a>(path: &str, name: &str, pair: Option<&Pair<'a>>) -> Option<Pair<'a>> {
    let head = path.is_empty() && matches!(name, "kind" | "apiVersion");
    pair.filter(|_| !head)?.field(name)
}

/// `anyOf`, `oneOf`, `allOf` and `not`.
fn clauses(more: &More, path: &str, value: &Value, pair: Option<&Pair<'_>>) -> Findings {
    let mut findings = Findings::default();
    let name = quote(path);
    if !more.any_of.is_empty() {
        any_of(more, path, value, pair, &mut findings);
    }
    if !more.one_of.is_empty() {
        one_of(more, path, value, pair, &mut findings);
    }
    if !more.all_of.is_empty() {
        let mut holding = 0;
        for clause in &more.all_of {
            let found = keywords(clause, path, value, pair);
            holding += usize::from(found.is_clean());
            findings.merge(found);
        }
        if holding < more.all_of.len() {
            let rest = if holding == 0 { ". None validated" } else { "" };
            findings.add(Problem::general(format!(
                "{name} must validate all the schemas (allOf){rest}"
            )));
        }
    }
    if let Some(clause) = &more.not
        && keywords(clause, path, value, pair).is_clean()
    {
        findings.add(Problem::general(format!("{name} must not validate the schema (not)")));
    }
    findings.matches += 1;
    findings
}

/// The better of two failures: where more was right.
fn better(best: Option<Findings>, found: Findings) -> Findings {
    match best {
        Some(best) if best.matches >= found.matches => best,
        _ => found,
    }
}

fn any_of(
    more: &More,
    path: &str,
    value: &Value,
    pair: Option<&Pair<'_>>,
    findings: &mut Findings,
) {
    let mut best: Option<Findings> = None;
    for clause in &more.any_of {
        let found = keywords(clause, path, value, pair);
        if found.is_clean() {
            findings.merge(found);
            return;
        }
        best = Some(better(best, found));
    }
    let name = quote(path);
    findings.add(Problem::general(format!("{name} must validate at least one schema (anyOf)")));
    if let Some(best) = best {
        findings.merge(best);
    }
}

fn one_of(
    more: &More,
    path: &str,
    value: &Value,
    pair: Option<&Pair<'_>>,
    findings: &mut Findings,
) {
    let mut best: Option<Findings> = None;
    let mut first = None;
    let mut holding = 0;
    for clause in &more.one_of {
        let found = keywords(clause, path, value, pair);
        if found.is_clean() {
            holding += 1;
            best = None;
            first = first.or(Some(found));
        } else if holding == 0 {
            best = Some(better(best, found));
        }
    }
    if holding == 1 {
        if let Some(first) = first {
            findings.merge(first);
        }
        return;
    }
    let rest = if holding == 0 {
        "Found none valid".to_owned()
    } else {
        format!("Found {holding} valid alternatives")
    };
    let name = quote(path);
    findings.add(Problem::general(format!(
        "{name} must validate one and only one schema (oneOf). {rest}"
    )));
    if let Some(best) = best {
        findings.merge(best);
    }
}
