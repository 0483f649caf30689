//! Texts with paths in them, as `-o jsonpath=` takes them: `{.metadata.name}{"\n"}`,
//! `{range .items[*]}…{end}`.
//!
//! The paths themselves are `trainyard-schema`'s.

use serde_json::Value;
use trainyard_schema::golang;
use trainyard_schema::jsonpath::{Path, PathError};

/// How deep ranges may stand inside each other.
const DEEPEST: usize = 16;

/// A text that was read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Path(Path),
    Range(Path, Vec<Self>),
}

impl Template {
    /// Reads a template. A text without braces is taken for a path.
    pub(crate) fn parse(text: &str) -> Result<Self, PathError> {
        if !text.contains('{') && !text.is_empty() {
            return Ok(Self { parts: vec![Part::Path(relaxed(text)?)] });
        }
        let mut rest = text;
        let (parts, ended) = parts(&mut rest, 0)?;
        if ended {
            return Err(syntax("not in range, nothing to end"));
        }
        Ok(Self { parts })
    }

    /// Fills it in.
    pub(crate) fn fill(&self, object: &Value) -> Result<String, PathError> {
        let mut out = String::new();
        fill(&self.parts, object, &mut out)?;
        Ok(out)
    }
}

/// A path as `--sort-by`, `custom-columns` and `wait` take it: braces and the first dot may be left
/// out.
pub(crate) fn relaxed(text: &str) -> Result<Path, PathError> {
    let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
    let first = inner.chars().next();
    if first.is_some_and(|letter| letter.is_alphanumeric() || letter == '_') {
        Path::parse(&format!(".{inner}"))
    } else {
        Path::parse(inner)
    }
}

/// What is found, as text.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => golang::json(value),
        other => golang::print(other),
    }
}

fn syntax(why: impl Into<String>) -> PathError {
    PathError::Syntax { why: why.into() }
}

/// Reads parts up to the end of the text or of the range; whether it was a range's.
fn parts(rest: &mut &str, depth: usize) -> Result<(Vec<Part>, bool), PathError> {
    if depth > DEEPEST {
        return Err(syntax(format!("ranges inside ranges more than {DEEPEST} deep")));
    }
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let Some(open) = rest.find('{') else {
            parts.push(Part::Text(std::mem::take(rest).to_owned()));
            break;
        };
        if open > 0 {
            parts.push(Part::Text(rest[..open].to_owned()));
        }
        let close = closing(&rest[open..]).ok_or_else(|| syntax("unclosed action"))?;
        let action = rest[open + 1..open + close].trim();
        *rest = &rest[open + close + 1..];
        if action == "end" {
            return Ok((parts, true));
        }
        if let Some(over) = action.strip_prefix("range ").or_else(|| action.strip_prefix("range."))
        {
            let from = if action.starts_with("range.") { &action[5..] } else { over.trim() };
            let path = Path::parse(from)?;
            let (inner, ended) = self::parts(rest, depth + 1)?;
            if !ended {
                return Err(syntax("unclosed range: write {end} after it"));
            }
            parts.push(Part::Range(path, inner));
        } else {
            parts.push(Part::Path(Path::parse(action)?));
        }
    }
    Ok((parts, false))
}

/// Where the brace closes that a text begins with; braces in quotes do not count.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), letter) if letter == open => quote = None,
            (None, '"' | '\'') => quote = Some(letter),
            (None, '}') => return Some(at),
            _ => {}
        }
    }
    None
}

fn fill(parts: &[Part], object: &Value, out: &mut String) -> Result<(), PathError> {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(text),
            Part::Path(path) => {
                let found: Vec<String> = path.try_find(object)?.into_iter().map(shown).collect();
                out.push_str(&found.join(" "));
            }
            Part::Range(path, inner) => {
                for item in path.try_find(object)? {
                    fill(inner, item, out)?;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(template: &str) -> String {
        let object = json!({"kind": "List", "items": [
            {"name": "a", "n": 1, "labels": {"x": "<1>"}, "on": true},
            {"name": "b", "n": 2.5, "on": false},
        ]});
        Template::parse(template).and_then(|template| template.fill(&object)).unwrap()
    }

    #[test]
    fn paths_stand_in_text() {
        for (template, text) in [
            ("{.kind}", "List"),
            (".kind", "List"),
            ("kind", "List"),
            ("{.items[*].name}", "a b"),
            ("{.items[*].n}", "1 2.5"),
            ("kind={.kind}{\"\\n\"}", "kind=List\n"),
            ("{range .items[*]}{.name}:{.n}{'\\t'}{end}!", "a:1\tb:2.5\t!"),
            ("{.items[0].labels}", "{\"x\":\"\\u003c1\\u003e\"}"),
            ("{.items[?(@.name==\"b\")].on}", "false"),
            ("{.missing}", ""),
            ("{\"}\"}", "}"),
        ] {
            assert_eq!(filled(template), text, "{template}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for template in ["{.a", "{range .items[*]}{.name}", "{end}", "{.a[}", "{\"x}"] {
            assert!(Template::parse(template).is_err(), "{template}");
        }
    }
}
