//! Reads paths.
//!
//! Must not know how they are followed.

use serde_json::Value;

use super::{PathError, Slice, Step, quoted::unquoted};

/// How deep paths may stand inside paths.
const DEEPEST: usize = 16;

/// The steps of a path without braces.
pub(super) fn parse(text: &str, depth: usize) -> Result<Vec<Step>, PathError> {
    if depth > DEEPEST {
        return Err(PathError::syntax(format!("paths inside paths more than {DEEPEST} deep")));
    }
    let mut parser = Parser { text, at: 0, depth, steps: Vec::new() };
    while parser.step()? {}
    Ok(parser.steps)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    steps: Vec<Step>,
}

/// Letters that end a field.
fn ends_field(letter: char) -> bool {
    matches!(letter, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.rest().chars().next()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    /// Reads one step; whether there may be another.
    fn step(&mut self) -> Result<bool, PathError> {
        let rest = self.rest();
        if rest.starts_with("[?(") {
            self.filter()?;
            return Ok(true);
        }
        if rest.starts_with("..") {
            self.recursive()?;
            return Ok(true);
        }
        let start = self.at;
        match self.next() {
            // What follows the closing brace is text around the path.
            None | Some('}') => return Ok(false),
            Some('\r' | '\n') => return Err(PathError::syntax("unclosed action")),
            Some(' ' | '@' | '$') => {}
            Some('[') => self.array()?,
            Some(quote @ ('"' | '\'')) => self.quote(start, quote)?,
            Some('.') => self.field(),
            Some(letter) if letter == '+' || letter == '-' || letter.is_numeric() => {
                self.number(start)?;
            }
            Some(letter) if letter == '_' || letter.is_alphanumeric() => {
                let word = self.word(start);
                self.steps.push(match word {
                    "true" => Step::Literal(Value::Bool(true)),
                    "false" => Step::Literal(Value::Bool(false)),
                    other => Step::Word(other.to_owned()),
                });
            }
            Some(letter) => {
                return Err(PathError::syntax(format!(
                    "unrecognized character in action: U+{:04X} '{letter}'",
                    u32::from(letter)
                )));
            }
        }
        Ok(true)
    }

    fn word(&mut self, start: usize) -> &'a str {
        let rest = self.rest();
        self.at += rest.find(ends_field).unwrap_or(rest.len());
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn field(&mut self) {
        let mut name = String::new();
        let mut escaped = false;
        let rest = self.rest();
        let mut length = rest.len();
        for (at, letter) in rest.char_indices() {
            if !escaped && ends_field(letter) {
                length = at;
                break;
            }
            escaped = !escaped && letter == '\\';
            if letter != '\\' {
                name.push(letter);
            }
        }
        self.at += length;
        self.steps.push(if rest.get(..length) == Some("*") {
            Step::Wildcard
        } else {
            Step::Field(name)
        });
    }

    fn recursive(&mut self) -> Result<(), PathError> {
        if self.steps.last() == Some(&Step::Recursive) {
            return Err(PathError::syntax("invalid multiple recursive descent"));
        }
        self.at += 2;
        self.steps.push(Step::Recursive);
        let letter = self.rest().chars().next();
        if letter.is_some_and(|letter| letter == '_' || letter.is_alphanumeric()) {
            self.field();
        }
        Ok(())
    }

    fn number(&mut self, start: usize) -> Result<(), PathError> {
        let rest = self.rest();
        let ends = |letter: char| letter != '.' && !letter.is_numeric();
        self.at += rest.find(ends).unwrap_or(rest.len());
        let text = self.text.get(start..self.at).unwrap_or_default();
        let whole = text.parse::<i64>().ok().map(Value::from);
        let broken = || text.parse::<f64>().ok().filter(|n| n.is_finite()).map(Value::from);
        let value = whole.or_else(broken);
        let wrong = || PathError::syntax(format!("cannot parse number {text}"));
        self.steps.push(Step::Literal(value.ok_or_else(wrong)?));
        Ok(())
    }

    fn quote(&mut self, start: usize, quote: char) -> Result<(), PathError> {
        let bytes = self.text.as_bytes();
        loop {
            match self.next() {
                None | Some('\n') => return Err(PathError::syntax("unterminated quoted string")),
                Some(letter) if letter == quote => {
                    if bytes.get(self.at.wrapping_sub(2)) != Some(&b'\\') {
                        break;
                    }
                }
                Some(_) => {}
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let inner = text.get(1..text.len() - 1).unwrap_or_default();
        let plain = unquoted(inner, quote).ok_or_else(|| {
            PathError::syntax(format!("unquote string {text} error invalid syntax"))
        })?;
        self.steps.push(Step::Literal(Value::String(plain)));
        Ok(())
    }

    fn array(&mut self) -> Result<(), PathError> {
        let rest = self.rest();
        let end = rest.find([']', '\n']).filter(|end| rest.as_bytes().get(*end) == Some(&b']'));
        let end = end.ok_or_else(|| PathError::syntax("unterminated array"))?;
        let text = rest.get(..end).unwrap_or_default();
        self.at += end + 1;
        let text = if text == "*" { ":" } else { text };
        if text.contains(',') {
            let parts = text
                .split(',')
                .map(|part| parse(&format!("[{}]", part.trim_matches(' ')), self.depth + 1));
            let parts = parts.collect::<Result<_, _>>()?;
            self.steps.push(Step::Union(parts));
            return Ok(());
        }
        let key = text
            .strip_prefix('\'')
            .and_then(|text| text.strip_suffix('\''))
            .filter(|key| !key.contains('\''));
        if let Some(key) = key {
            // A key is read as fields are, so that its dots must be escaped.
            self.steps.extend(parse(&format!(".{key}"), self.depth + 1)?);
            return Ok(());
        }
        self.steps.push(Step::Slice(slice(text)?));
        Ok(())
    }

    fn filter(&mut self) -> Result<(), PathError> {
        self.at += "[?(".len();
        let start = self.at;
        let bytes = self.text.as_bytes();
        let (mut opened, mut closed) = (None, false);
        loop {
            match self.next() {
                None | Some('\n') => return Err(PathError::syntax("unterminated filter")),
                Some(quote @ ('"' | '\'')) => match opened {
                    None => opened = Some(quote),
                    Some(pair) => {
                        let escaped = bytes.get(self.at.wrapping_sub(2)) == Some(&b'\\');
                        closed |= !escaped && quote == pair;
                    }
                },
                Some(')') if opened.is_some() == closed => break,
                Some(_) => {}
            }
        }
        let text = self.text.get(start..self.at - 1).unwrap_or_default();
        if self.next() != Some(']') {
            return Err(PathError::syntax("unclosed array expect ]"));
        }
        let parsed = |text: &str| parse(text, self.depth + 1);
        let step = match comparison(text) {
            Some((left, operator, right)) => Step::Filter {
                left: parsed(left)?,
                operator: operator.to_owned(),
                right: parsed(right)?,
            },
            None => Step::Filter {
                left: parsed(text)?,
                operator: "exists".to_owned(),
                right: Vec::new(),
            },
        };
        self.steps.push(step);
        Ok(())
    }
}

/// The two sides of a comparison and what stands between them.
fn comparison(text: &str) -> Option<(&str, &str, &str)> {
    let is_operator = |letter: char| matches!(letter, '!' | '<' | '>' | '=');
    let start = text.find(is_operator).filter(|start| *start > 0)?;
    let (left, rest) = text.split_at(start);
    let length = rest.find(|letter| !is_operator(letter)).unwrap_or(rest.len());
    // There is always a right side, be it the last letter of the operator.
    let length = if length == rest.len() { length - 1 } else { length };
    if length == 0 {
        return None;
    }
    let (operator, right) = rest.split_at(length);
    Some((left, operator, right))
}

fn slice(text: &str) -> Result<Slice, PathError> {
    let invalid = || PathError::syntax(format!("invalid array index {text}"));
    let parts: Vec<&str> = text.split(':').collect();
    let digits = |part: &str| {
        let digits = part.strip_prefix('-').unwrap_or(part);
        digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    if parts.len() > 3 || !parts.iter().all(|part| digits(part)) {
        return Err(invalid());
    }
    let number = |index: usize| match parts.get(index) {
        None | Some(&"") => Ok(None),
        Some(part) => part
            .parse::<i64>()
            .map(Some)
            .map_err(|_| PathError::syntax(format!("array index {part} is not a number"))),
    };
    let (from, to, step) = (number(0)?, number(1)?, number(2)?);
    if parts.len() == 1 {
        let next = from.unwrap_or(0).saturating_add(1);
        return Ok(Slice { from, to: Some(next), single: true, step });
    }
    Ok(Slice { from, to, single: false, step })
}
