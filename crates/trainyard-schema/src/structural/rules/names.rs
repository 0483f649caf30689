//! Names of fields as rules write them, and paths as `fieldPath` writes them.
//!
//! Owns the escapes of both. Must not evaluate anything.

use super::{
    super::node::{Additional, Node},
    Place,
};

const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A field's name in a rule; nothing when it cannot be written there.
pub(super) fn escaped(name: &str) -> Option<String> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(c) = rest.chars().next() {
        let (word, length) = match c {
            '_' if rest.starts_with("__") => ("__underscores__", 2),
            '.' => ("__dot__", 1),
            '-' => ("__dash__", 1),
            '/' => ("__slash__", 1),
            c if c.is_ascii_alphanumeric() || c == '_' => (rest.get(..1)?, 1),
            _ => return None,
        };
        out.push_str(word);
        rest = rest.get(length..)?;
    }
    Some(out)
}

/// The parts of `.spec.a['b.c']`.
fn tokens(path: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '.' | '[' | ']' => 1,
            '\'' => {
                let mut previous = '\'';
                let end = rest.char_indices().skip(1).find(|(_, c)| {
                    let ends = *c == '\'' && previous != '\\';
                    previous = *c;
                    ends
                });
                end.map_or(rest.len(), |(at, _)| at + 1)
            }
            _ => rest.find(['.', '[', ']']).unwrap_or(rest.len()),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after;
    }
    tokens
}

/// A `fieldPath` in the form that errors have, if it leads somewhere.
pub(in crate::structural) fn field_path(path: &str, place: Place<'_>) -> Result<String, String> {
    let mut out = String::new();
    let mut node = place.node;
    let mut resource = place.resource;
    let mut tokens = tokens(path).into_iter();
    while let Some(token) = tokens.next() {
        let end = || "unexpected end of JSON path".to_owned();
        let name = match token {
            "." => tokens.next().ok_or_else(end)?.to_owned(),
            "[" => {
                let quoted = tokens.next().ok_or_else(end)?;
                let inside = quoted.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let inside = inside
                    .filter(|_| quoted.len() >= 2)
                    .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                let name = unescaped(inside)?;
                match tokens.next() {
                    None => return Err(end()),
                    Some("]") => name,
                    Some(other) => return Err(format!("expected ] but got {other}")),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        node = step(node, resource, &name, &mut out)?;
        resource = false;
    }
    Ok(out)
}

fn step<'a>(
    node: &'a Node,
    resource: bool,
    name: &str,
    out: &mut String,
) -> Result<&'a Node, String> {
    let dot = if out.is_empty() { "" } else { "." };
    if !node.properties.is_empty() || resource {
        *out = format!("{out}{dot}{name}");
        return node
            .property(name)
            .or_else(|| (resource && name == "metadata").then(super::super::metadata::shape))
            .ok_or_else(|| "does not refer to a valid field".to_owned());
    }
    match node.additional() {
        Additional::Of(child) => {
            *out = format!("{out}[{name}]");
            Ok(child)
        }
        _ => Err("does not refer to a valid field".to_owned()),
    }
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        out.push(match rest.next() {
            Some('a') => '\u{7}',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('v') => '\u{b}',
            Some('\'') => '\'',
            Some('\\') | None => '\\',
            Some(other) => {
                return Err(format!("invalid string literal: invalid escape char \\{other}"));
            }
        });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::structural::Schema;

    #[test]
    fn names_are_escaped() {
        for (name, text) in [
            ("plain", Some("plain")),
            ("a-b", Some("a__dash__b")),
            ("a.b/c", Some("a__dot__b__slash__c")),
            ("a__b", Some("a__underscores__b")),
            ("namespace", Some("__namespace__")),
            ("7up", None),
            ("ä", None),
            ("", None),
        ] {
            assert_eq!(escaped(name).as_deref(), text, "{name}");
        }
    }

    #[test]
    fn paths_lead_to_fields() {
        let schema = Schema::parse(&json!({"type": "object", "properties": {
            "a.b": {"type": "object", "additionalProperties": {"type": "object", "properties": {"c": {}}}},
        }}))
        .unwrap();
        let place = Place { node: schema.node(), resource: true };
        assert_eq!(field_path("['a.b']['k'].c", place).as_deref(), Ok("a.b[k].c"));
        assert_eq!(field_path(".metadata.name", place).as_deref(), Ok("metadata.name"));
        for (path, wrong) in [
            (".x", "does not refer to a valid field"),
            ("a", "expected [ or . but got: a"),
            (".", "unexpected end of JSON path"),
            ("[a]", "expected single quoted string but got a"),
            ("['a.b'", "unexpected end of JSON path"),
            ("['\\x']", "invalid string literal: invalid escape char \\x"),
            ("['", "expected single quoted string but got '"),
        ] {
            assert_eq!(field_path(path, place).unwrap_err(), wrong, "{path}");
        }
    }
}
