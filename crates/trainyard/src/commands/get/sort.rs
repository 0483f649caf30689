//! The order of `--sort-by`.

use std::cmp::Ordering;

use jiff::Timestamp;
use serde_json::Value;

use crate::failure::Failure;
use crate::present::template::relaxed;

/// Puts things into the order of what a path leads to in their objects. Those where it leads
/// nowhere come first, as kubectl has them.
pub(super) fn by<T>(
    path: &str,
    things: &mut [T],
    object: impl Fn(&T) -> &Value,
) -> Result<(), Failure> {
    let path = relaxed(path).map_err(|error| {
        Failure::usage(format!("--sort-by {path:?} is no path: {error}"))
            .hint("write it like .metadata.creationTimestamp")
    })?;
    things.sort_by(|one, other| {
        let value = |thing: &T| path.find(object(thing)).first().map(|value| (*value).clone());
        compare(value(one).as_ref(), value(other).as_ref())
    });
    Ok(())
}

fn compare(one: Option<&Value>, other: Option<&Value>) -> Ordering {
    match (one, other) {
        (Some(Value::Number(one)), Some(Value::Number(other))) => {
            let numbers = (one.as_f64(), other.as_f64());
            numbers.0.partial_cmp(&numbers.1).unwrap_or(Ordering::Equal)
        }
        (Some(Value::String(one)), Some(Value::String(other))) => {
            match (one.parse::<Timestamp>(), other.parse::<Timestamp>()) {
                (Ok(one), Ok(other)) => one.cmp(&other),
                _ => natural(one, other),
            }
        }
        (Some(Value::Bool(one)), Some(Value::Bool(other))) => one.cmp(other),
        (one, other) => one.is_some().cmp(&other.is_some()),
    }
}

/// Texts with numbers in them by the numbers: `worker-2` before `worker-10`.
fn natural(one: &str, other: &str) -> Ordering {
    let (mut left, mut right) = (one, other);
    loop {
        let (a, b) = (digits(left), digits(right));
        if !a.is_empty() && !b.is_empty() {
            let (x, y) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then_with(|| x.cmp(y));
            if order.is_ne() {
                return order;
            }
            (left, right) = (&left[a.len()..], &right[b.len()..]);
            continue;
        }
        match (left.chars().next(), right.chars().next()) {
            (Some(a), Some(b)) if a == b => {
                (left, right) = (&left[a.len_utf8()..], &right[b.len_utf8()..]);
            }
            (a, b) => return a.cmp(&b),
        }
    }
}

fn digits(text: &str) -> &str {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sorted(values: &[Value]) -> Vec<Value> {
        let mut things: Vec<Value> = values.iter().map(|value| json!({"a": value})).collect();
        things.push(json!({}));
        by(".a", &mut things, |thing| thing).unwrap();
        things.into_iter().map(|mut thing| thing["a"].take()).collect()
    }

    #[test]
    fn by_number_time_and_name() {
        assert_eq!(
            sorted(&[json!(10), json!(9.5), json!(2)])[1..],
            [json!(2), json!(9.5), json!(10)]
        );
        let (early, late) = (json!("2026-01-01T00:00:00Z"), json!("2026-01-01T01:30:00+01:00"));
        assert_eq!(sorted(&[late.clone(), early.clone()])[1..], [early, late]);
        let names = sorted(&[json!("w-10"), json!("w-2"), json!("w"), json!("a")]);
        assert_eq!(names[1..], [json!("a"), json!("w"), json!("w-2"), json!("w-10")]);
        assert_eq!(names[0], Value::Null);
    }

    #[test]
    fn a_bad_path_is_named() {
        let failure = by(".a[", &mut [json!({})], |thing| thing).unwrap_err();
        assert!(failure.to_string().contains("--sort-by \".a[\" is no path"), "{failure}");
    }
}
