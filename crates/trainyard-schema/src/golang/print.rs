//! Values as `%v` and texts as `%q` write them.
//!
//! Must not know which message they go into.

use std::fmt::Write as _;

use serde_json::{Number, Value};

/// How many levels are written out; what lies deeper becomes `...`.
const DEEPEST: usize = 128;

/// From this power of ten on, numbers that are not whole are written with an exponent.
const SHORT_EXPONENT: i32 = 6;

/// A value as `%v` writes it: `map[a:1 b:[x y]]`.
#[must_use]
pub fn print(value: &Value) -> String {
    let mut text = String::new();
    push(&mut text, value, 0);
    text
}

fn push(text: &mut String, value: &Value, depth: usize) {
    if depth > DEEPEST {
        text.push_str("...");
        return;
    }
    match value {
        Value::Null => text.push_str("<nil>"),
        Value::Bool(yes) => text.push_str(if *yes { "true" } else { "false" }),
        Value::Number(amount) => text.push_str(&number(amount)),
        Value::String(word) => text.push_str(word),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                push(text, item, depth + 1);
            }
            text.push(']');
        }
        Value::Object(members) => {
            text.push_str("map[");
            for (index, (key, item)) in members.iter().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(key);
                text.push(':');
                push(text, item, depth + 1);
            }
            text.push(']');
        }
    }
}

/// A number as `%v` writes it: whole numbers plainly, others with an exponent from a million on.
#[must_use]
pub fn number(amount: &Number) -> String {
    if amount.is_i64() {
        return amount.to_string();
    }
    let float = amount.as_f64().unwrap_or_default();
    // Rust's shortest digits are Go's; only the layout differs.
    let shortest = format!("{float:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..SHORT_EXPONENT).contains(&exponent) {
        return format!("{float}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// A text as `%q` writes it.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        push_quoted(&mut quoted, letter);
    }
    quoted.push('"');
    quoted
}

fn push_quoted(quoted: &mut String, letter: char) {
    match letter {
        '"' => quoted.push_str("\\\""),
        '\\' => quoted.push_str("\\\\"),
        '\u{7}' => quoted.push_str("\\a"),
        '\u{8}' => quoted.push_str("\\b"),
        '\u{c}' => quoted.push_str("\\f"),
        '\n' => quoted.push_str("\\n"),
        '\r' => quoted.push_str("\\r"),
        '\t' => quoted.push_str("\\t"),
        '\u{b}' => quoted.push_str("\\v"),
        letter if is_printable(letter) => quoted.push(letter),
        letter => {
            let code = u32::from(letter);
            // Writing into a text cannot fail.
            let _ = match code {
                0..=0x1f | 0x7f => write!(quoted, "\\x{code:02x}"),
                0x20..=0xffff => write!(quoted, "\\u{code:04x}"),
                _ => write!(quoted, "\\U{code:08x}"),
            };
        }
    }
}

/// Whether a letter is shown as it is. Rust and Go draw this line by nearly the same tables.
fn is_printable(letter: char) -> bool {
    if letter.is_ascii() {
        return matches!(letter, ' '..='~');
    }
    // Marks that join the letter before them are escaped only where they stand first.
    let mut pair = String::from("a");
    pair.push(letter);
    pair.escape_debug().nth(1) == Some(letter)
}

/// The name of the Go type that holds a value which was read from JSON.
#[must_use]
pub fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "%!s(<nil>)",
        Value::Bool(_) => "bool",
        Value::Number(amount) if amount.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_written_as_go_writes_them() {
        let cases = [
            (json!(null), "<nil>"),
            (json!({"b": [1, "x y", true], "a": null}), "map[a:<nil> b:[1 x y true]]"),
            (json!(1.5), "1.5"),
            (json!(123_456.5), "123456.5"),
            (json!(1_234_567.5), "1.2345675e+06"),
            (json!(1e21), "1e+21"),
            (json!(u64::MAX), "1.8446744073709552e+19"),
            (json!(1.25e-7), "1.25e-07"),
            (json!(0.0001), "0.0001"),
            (json!(-3), "-3"),
            (json!({}), "map[]"),
        ];
        for (value, expected) in cases {
            assert_eq!(print(&value), expected);
        }
    }

    #[test]
    fn quoted_texts_keep_what_can_be_read() {
        assert_eq!(quote("a\"b\\c\n\u{1}"), r#""a\"b\\c\n\x01""#);
        assert_eq!(quote("é'日e\u{301}"), "\"é'日e\u{301}\"");
        assert_eq!(quote("\u{200b}\u{7f}\u{ad}\u{a0}"), r#""\u200b\x7f\u00ad\u00a0""#);
        assert_eq!(quote("\u{2028}😀\u{e000}\u{fffd}"), "\"\\u2028😀\\ue000\u{fffd}\"");
    }
}
