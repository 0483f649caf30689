//! Comparisons in filters: like with like, and nothing else.
//!
//! Must not know paths.

use std::cmp::Ordering;

use serde_json::Value;

use super::PathError;

/// What can be compared.
#[derive(PartialEq)]
enum Plain<'a> {
    Bool(bool),
    Whole(i64),
    Broken(f64),
    Text(&'a str),
}

fn plain(value: &Value) -> Result<Plain<'_>, PathError> {
    match value {
        Value::Bool(yes) => Ok(Plain::Bool(*yes)),
        Value::Number(number) => Ok(match number.as_i64() {
            Some(whole) => Plain::Whole(whole),
            None => Plain::Broken(number.as_f64().unwrap_or_default()),
        }),
        Value::String(text) => Ok(Plain::Text(text)),
        _ => Err(PathError::mismatch("invalid type for comparison")),
    }
}

/// Whether a comparison holds.
pub(super) fn holds(left: &Value, operator: &str, right: &Value) -> Result<bool, PathError> {
    match operator {
        "==" => equal(left, right),
        "!=" => equal(left, right).map(|equal| !equal),
        "<" => less(left, right),
        "<=" => Ok(less(left, right)? || equal(left, right)?),
        ">" => Ok(!less(left, right)? && !equal(left, right)?),
        ">=" => less(left, right).map(|less| !less),
        other => Err(PathError::mismatch(format!("unrecognized filter operator {other}"))),
    }
}

fn incompatible() -> PathError {
    PathError::mismatch("incompatible types for comparison")
}

fn equal(left: &Value, right: &Value) -> Result<bool, PathError> {
    let (left, right) = (plain(left)?, plain(right)?);
    if std::mem::discriminant(&left) != std::mem::discriminant(&right) {
        return Err(incompatible());
    }
    Ok(left == right)
}

fn less(left: &Value, right: &Value) -> Result<bool, PathError> {
    let order = match (plain(left)?, plain(right)?) {
        (Plain::Whole(left), Plain::Whole(right)) => Some(left.cmp(&right)),
        (Plain::Broken(left), Plain::Broken(right)) => left.partial_cmp(&right),
        (Plain::Text(left), Plain::Text(right)) => Some(left.cmp(right)),
        (Plain::Bool(_), Plain::Bool(_)) => {
            return Err(PathError::mismatch("invalid type for comparison"));
        }
        _ => return Err(incompatible()),
    };
    Ok(order == Some(Ordering::Less))
}
