//! The columns that definitions bring, and their cells.
//!
//! Must not know any built-in kind.

use jiff::Timestamp;
use serde_json::{Value, json};
use trainyard_schema::golang;
use trainyard_schema::jsonpath::Path;

use super::columns::{self, Column};
use super::duration;
use super::read::{number, text};

/// The name, and what the definition asks for.
pub(super) fn columns(rows: &[Value]) -> Vec<Column> {
    let mut all = vec![columns::name()];
    for (row, _) in readable(rows) {
        let path = text(row, "/jsonPath");
        let description = match text(row, "/description") {
            "" => format!("Custom resource definition column (in JSONPath format): {path}"),
            description => description.to_owned(),
        };
        all.push(Column {
            name: text(row, "/name").to_owned(),
            kind: text(row, "/type").to_owned(),
            format: text(row, "/format").to_owned(),
            description,
            priority: number(row, "/priority"),
        });
    }
    all
}

/// The columns up to the first whose path is none.
fn readable(rows: &[Value]) -> impl Iterator<Item = (&Value, Path)> {
    rows.iter().map_while(|row| Some((row, Path::parse(text(row, "/jsonPath")).ok()?)))
}

pub(super) fn cells(rows: &[Value], object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![json!(text(object, "/metadata/name"))];
    for (row, path) in readable(rows) {
        let found = path.find(object).first().map(|value| cell(text(row, "/type"), value, now));
        cells.push(found.unwrap_or_default());
    }
    cells
}

fn cell(kind: &str, value: &Value, now: Timestamp) -> Value {
    match (kind, value) {
        ("string", Value::Null) => json!("<no value>"),
        ("string", Value::Object(_) | Value::Array(_)) => json!(golang::json(value)),
        ("string", plain) => json!(golang::print(plain)),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(whole) => json!(whole),
            None => truncated(number.as_f64().unwrap_or_default()),
        },
        ("number", Value::Number(number)) => whole_or_not(number.as_f64().unwrap_or_default()),
        ("boolean", Value::Bool(yes)) => json!(yes),
        ("date", Value::String(date)) => json!(ago(date, now)),
        _ => Value::Null,
    }
}

#[allow(clippy::cast_possible_truncation, reason = "cutting off what is broken is what is wanted")]
fn truncated(number: f64) -> Value {
    json!(number as i64)
}

/// A number without `.0` where it is whole, as Go writes it.
#[allow(clippy::cast_possible_truncation, reason = "only what fits is cast")]
fn whole_or_not(number: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT {
        json!(number as i64)
    } else {
        json!(number)
    }
}

fn ago(date: &str, now: Timestamp) -> String {
    if matches!(date, "" | "null") {
        return "<unknown>".to_owned();
    }
    match date.parse::<Timestamp>() {
        Ok(_) => duration::since(Some(&json!(date)), now),
        Err(_) => "<invalid>".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Value> {
        let column = |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
        vec![
            column("State", "string", ".status.conditions[-1:].type"),
            json!({"name": "N", "type": "integer", "jsonPath": ".spec.n", "priority": 1,
                   "format": "int32", "description": "How many."}),
            column("R", "number", ".spec.ratio"),
            column("On", "boolean", ".spec.on"),
            column("Age", "date", ".metadata.creationTimestamp"),
            column("All", "string", ".spec"),
        ]
    }

    fn now() -> Timestamp {
        "2026-11-16T06:00:00Z".parse().unwrap()
    }

    #[test]
    fn what_a_definition_asks_for() {
        let all = columns(&rows());
        assert_eq!(all.len(), 7);
        assert_eq!(all[0].name, "Name");
        assert_eq!(
            all[1].description,
            "Custom resource definition column (in JSONPath format): .status.conditions[-1:].type"
        );
        assert_eq!(
            all[2].value(),
            json!({"name": "N", "type": "integer", "format": "int32", "description": "How many.", "priority": 1})
        );
    }

    #[test]
    fn cells_by_type() {
        let object = json!({
            "metadata": {"name": "x", "creationTimestamp": "2026-11-16T05:55:00Z"},
            "spec": {"n": 3.9, "ratio": 2.0, "on": true, "<": null},
            "status": {"conditions": [{"type": "A"}, {"type": "B"}]},
        });
        let expected = json!([
            "x",
            "B",
            3,
            2,
            true,
            "5m",
            "{\"\\u003c\":null,\"n\":3.9,\"on\":true,\"ratio\":2}"
        ]);
        assert_eq!(Value::Array(cells(&rows(), &object, now())), expected);
    }

    #[test]
    fn what_is_missing_or_otherwise_is_null() {
        let object = json!({
            "metadata": {"name": "x", "creationTimestamp": 5},
            "spec": {"n": "3", "on": "yes", "ratio": null},
            "status": {"conditions": {}},
        });
        let found = cells(&rows(), &object, now());
        assert_eq!(
            found[..6],
            [json!("x"), json!(null), json!(null), json!(null), json!(null), json!(null)]
        );
        assert_eq!(ago("soon", now()), "<invalid>");
        assert_eq!(ago("", now()), "<unknown>");
        assert_eq!(cell("string", &json!(null), now()), "<no value>");
        assert_eq!(cell("string", &json!(1_000_000.5), now()), "1.0000005e+06");
    }

    #[test]
    fn a_path_that_is_none_ends_the_columns() {
        let rows = [json!({"name": "A", "type": "string", "jsonPath": ".a["})];
        assert_eq!(columns(&rows).len(), 1);
        assert_eq!(cells(&rows, &json!({}), now()), [json!("")]);
    }
}
