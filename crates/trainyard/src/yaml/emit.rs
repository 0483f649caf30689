//! Printing in the block style that kubectl prints.
//!
//! Owns which strings may stand unquoted. The rule is narrow on purpose: a string is quoted unless
//! no reader of YAML 1.1 or 1.2 can take it for something else, keys included.

use std::fmt::Write as _;

use serde_json::{Map, Number, Value};

/// Longest key that readers find without being told that a key comes.
const KEY_CHARS_MAX: usize = 1_000;

/// All documents as one text, separated by `---`.
pub(crate) fn to_string<'a>(documents: impl IntoIterator<Item = &'a Value>) -> String {
    let mut out = String::new();
    for document in documents {
        if !out.is_empty() {
            out.push_str("---\n");
        }
        match document {
            Value::Object(fields) if !fields.is_empty() => mapping(&mut out, fields, 0),
            Value::Array(items) if !items.is_empty() => sequence(&mut out, items, 0),
            scalar => {
                self::scalar(&mut out, scalar, 0);
                out.push('\n');
            }
        }
    }
    out
}

/// Fields, one below the other. The first one stands where the text is now.
fn mapping(out: &mut String, fields: &Map<String, Value>, indent: usize) {
    for (at, (name, value)) in fields.iter().enumerate() {
        if at > 0 {
            spaces(out, indent);
        }
        if name.chars().count() > KEY_CHARS_MAX {
            out.push_str("? ");
            string(out, name);
            out.push('\n');
            spaces(out, indent);
        } else {
            string(out, name);
        }
        out.push(':');
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                out.push('\n');
                spaces(out, indent + 2);
                mapping(out, fields, indent + 2);
            }
            // Items stand below their key, not to the right of it, as in kubectl's output.
            Value::Array(items) if !items.is_empty() => {
                out.push('\n');
                spaces(out, indent);
                sequence(out, items, indent);
            }
            other => {
                out.push(' ');
                scalar(out, other, indent);
                out.push('\n');
            }
        }
    }
}

fn sequence(out: &mut String, items: &[Value], indent: usize) {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            spaces(out, indent);
        }
        out.push_str("- ");
        match item {
            Value::Object(fields) if !fields.is_empty() => mapping(out, fields, indent + 2),
            Value::Array(items) if !items.is_empty() => sequence(out, items, indent + 2),
            other => {
                scalar(out, other, indent);
                out.push('\n');
            }
        }
    }
}

fn scalar(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Value::Number(value) => number(out, value),
        Value::String(text) if fits_block(text) => block(out, text, indent),
        Value::String(text) => string(out, text),
        Value::Array(_) => out.push_str("[]"),
        Value::Object(_) => out.push_str("{}"),
    }
}

/// Numbers as YAML 1.1 spells them: an exponent needs a point before it and a sign.
fn number(out: &mut String, number: &Number) {
    let text = number.to_string();
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let point = if mantissa.contains('.') { "" } else { ".0" };
            let sign = if exponent.starts_with(['-', '+']) { "" } else { "+" };
            let _ = write!(out, "{mantissa}{point}e{sign}{exponent}");
        }
        None => out.push_str(&text),
    }
}

fn string(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push_str(text);
    } else {
        quoted(out, text);
    }
}

/// Whether a string can stand as it is.
fn is_plain(text: &str) -> bool {
    let Some(first) = text.chars().next() else {
        return false;
    };
    let opens = match first {
        '/' | '_' | '(' | '$' => true,
        // `1Gi` and `100m` are strings to everybody; what holds only characters of numbers,
        // times and dates may not be.
        '0'..='9' => {
            text.chars().any(|c| c.is_ascii_alphabetic() && !"abcdefABCDEFxXoOtTzZ".contains(c))
        }
        '-' => text[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '-'),
        '.' => text[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/'),
        letter => letter.is_ascii_alphabetic(),
    };
    opens
        && text.chars().all(|c| c.is_ascii_graphic() || c == ' ')
        && !text.contains(": ")
        && !text.contains(" #")
        && !text.ends_with([':', ' '])
        // kubectl takes any line that starts so for the end of a document.
        && !text.starts_with("---")
        && !is_word_with_a_meaning(text)
}

fn is_word_with_a_meaning(text: &str) -> bool {
    const WORDS: [&str; 15] = [
        "y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "-inf",
        "infinity", ".nan", ".inf",
    ];
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printable(c) => out.push(c),
            c => {
                let code = u32::from(c);
                let _ = match code {
                    ..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push('"');
}

/// What a YAML text may hold literally; line breaks of all kinds, byte-order marks and what turns the
/// direction of reading apart.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202f}'..='\u{2065}'
        | '\u{206a}'..='\u{d7ff}'
        | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

/// Whether a text of several lines can be printed line by line: a first line that starts with
/// white space would have to say how deep it is indented.
fn fits_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with(char::is_whitespace)
        && text.chars().all(|c| c == '\n' || c == '\t' || is_printable(c))
}

fn block(out: &mut String, text: &str, indent: usize) {
    let body = text.trim_end_matches('\n');
    // `-` drops the last line break, `+` keeps all of them, neither keeps one.
    out.push_str(match text.len() - body.len() {
        0 => "|-",
        1 => "|",
        _ => "|+",
    });
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            spaces(out, indent + 2);
            out.push_str(line);
        }
    }
    // The caller ends the last line.
    for _ in 1..text.len() - body.len() {
        out.push('\n');
    }
}

fn spaces(out: &mut String, count: usize) {
    out.extend(std::iter::repeat_n(' ', count));
}

#[cfg(test)]
mod tests;
