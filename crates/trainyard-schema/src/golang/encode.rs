//! Values as Go's encoder writes JSON: `<`, `>` and `&` escaped, whole numbers without a point.
//!
//! Must not know where the text goes.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// How many levels are written out; what lies deeper becomes null.
const DEEPEST: usize = 128;

/// A value as JSON.
#[must_use]
pub fn json(value: &Value) -> String {
    let mut text = String::new();
    push(&mut text, value, 0);
    text
}

fn push(text: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Array(_) | Value::Object(_) if depth > DEEPEST => text.push_str("null"),
        Value::Null => text.push_str("null"),
        Value::Bool(yes) => text.push_str(if *yes { "true" } else { "false" }),
        Value::Number(amount) => push_number(text, amount),
        Value::String(word) => push_text(text, word),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                push(text, item, depth + 1);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push('{');
            for (index, (key, item)) in members.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                push_text(text, key);
                text.push(':');
                push(text, item, depth + 1);
            }
            text.push('}');
        }
    }
}

fn push_number(text: &mut String, amount: &Number) {
    let Some(float) = amount.as_f64().filter(|_| amount.is_f64()) else {
        text.push_str(&amount.to_string());
        return;
    };
    let size = float.abs();
    // Writing into a text cannot fail.
    let _ = if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let shortest = format!("{float:e}");
        match shortest.split_once("e-") {
            Some((digits, exponent)) => write!(text, "{digits}e-{exponent}"),
            None => write!(text, "{}", shortest.replace('e', "e+")),
        }
    } else {
        write!(text, "{float}")
    };
}

fn push_text(text: &mut String, word: &str) {
    text.push('"');
    for letter in word.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '\u{8}' => text.push_str("\\b"),
            '\u{c}' => text.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                // Writing into a text cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(letter));
            }
            plain => text.push(plain),
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json as value;

    use super::*;

    #[test]
    fn as_go_writes_it() {
        let cases = [
            (
                value!({"b": [1, 2.0, 1.5], "a": "<&>"}),
                r#"{"a":"\u003c\u0026\u003e","b":[1,2,1.5]}"#,
            ),
            (value!("q\"\\\n\u{1}\u{2028}é"), r#""q\"\\\n\u0001\u2028é""#),
            (
                value!([1e21, 1e20, 1.25e-7, 0.000_001, 0.0]),
                "[1e+21,100000000000000000000,1.25e-7,0.000001,0]",
            ),
            (
                value!([null, true, u64::MAX, i64::MIN]),
                "[null,true,18446744073709551615,-9223372036854775808]",
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(json(&value), expected);
        }
    }

    proptest! {
        #[test]
        fn texts_come_back(text in any::<String>()) {
            let read: String = serde_json::from_str(&json(&Value::from(text.clone()))).unwrap();
            prop_assert_eq!(read, text);
        }

        #[test]
        fn numbers_come_back(number in any::<f64>().prop_filter("finite", |n| n.is_finite())) {
            let read: f64 = serde_json::from_str(&json(&Value::from(number))).unwrap();
            prop_assert!((read - number).abs() <= number.abs() * 1e-15);
        }
    }
}
