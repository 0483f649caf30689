//! What is wrong with a text that should be JSON, in the words of Go's reader.
//!
//! Only looks at the grammar; values are read by others. Must not know what the text was for.

use std::fmt;

use serde_json::Value;

use super::quote;

/// Go gives up at this many open brackets.
const DEEPEST: usize = 10_000;

/// Where a text stops being JSON, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonFault {
    /// How many bytes were read, the offending one included.
    pub offset: usize,
    /// `invalid character 'x' looking for beginning of value`.
    pub message: String,
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for JsonFault {}

/// What is wrong with a text; `None` when it is one JSON value.
#[must_use]
pub fn json_fault(text: &[u8]) -> Option<JsonFault> {
    Scanner { text, at: 0, open: Vec::new() }.document().err()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Bracket {
    Object,
    Array,
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    open: Vec<Bracket>,
}

type Step = Result<(), JsonFault>;

impl Scanner<'_> {
    fn document(&mut self) -> Step {
        loop {
            // A value begins, or one that opens a bracket has been entered.
            if self.begin_value()? {
                continue;
            }
            loop {
                let Some(bracket) = self.open.last().copied() else {
                    self.blanks();
                    return match self.peek() {
                        None => Ok(()),
                        Some(_) => Err(self.invalid("after top-level value")),
                    };
                };
                if self.after_value(bracket)? {
                    break;
                }
            }
        }
    }

    /// Reads a value that is no bracket, or the opening of one; whether another value must follow.
    fn begin_value(&mut self) -> Result<bool, JsonFault> {
        self.blanks();
        match self.peek() {
            Some(b'{') => {
                self.enter(Bracket::Object)?;
                self.blanks();
                if self.peek() == Some(b'}') {
                    self.leave();
                    return Ok(false);
                }
                self.key()?;
                Ok(true)
            }
            Some(b'[') => {
                self.enter(Bracket::Array)?;
                self.blanks();
                if self.peek() == Some(b']') {
                    self.leave();
                    return Ok(false);
                }
                Ok(true)
            }
            Some(b'"') => self.string().map(|()| false),
            Some(b't') => self.literal("true").map(|()| false),
            Some(b'f') => self.literal("false").map(|()| false),
            Some(b'n') => self.literal("null").map(|()| false),
            Some(b'-' | b'0'..=b'9') => self.number().map(|()| false),
            _ => Err(self.invalid("looking for beginning of value")),
        }
    }

    /// Goes on after a value inside a bracket; whether another value must follow.
    fn after_value(&mut self, bracket: Bracket) -> Result<bool, JsonFault> {
        self.blanks();
        match (bracket, self.peek()) {
            (Bracket::Object, Some(b',')) => {
                self.at += 1;
                self.blanks();
                self.key()?;
                Ok(true)
            }
            (Bracket::Array, Some(b',')) => {
                self.at += 1;
                Ok(true)
            }
            (Bracket::Object, Some(b'}')) | (Bracket::Array, Some(b']')) => {
                self.leave();
                Ok(false)
            }
            (Bracket::Object, _) => Err(self.invalid("after object key:value pair")),
            (Bracket::Array, _) => Err(self.invalid("after array element")),
        }
    }

    fn key(&mut self) -> Step {
        if self.peek() != Some(b'"') {
            return Err(self.invalid("looking for beginning of object key string"));
        }
        self.string()?;
        self.blanks();
        if self.peek() != Some(b':') {
            return Err(self.invalid("after object key"));
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Step {
        self.at += 1;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    self.at += 1;
                    self.escape()?;
                }
                Some(0x20..) => self.at += 1,
                _ => return Err(self.invalid("in string literal")),
            }
        }
    }

    fn escape(&mut self) -> Step {
        match self.peek() {
            Some(b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.cut_short("in \\u hexadecimal character escape"));
                    }
                    self.at += 1;
                }
                Ok(())
            }
            _ => Err(self.cut_short("in string escape code")),
        }
    }

    fn literal(&mut self, word: &str) -> Step {
        self.at += 1;
        for expected in word.bytes().skip(1) {
            if self.peek() != Some(expected) {
                let context = format!("in literal {word} (expecting '{}')", char::from(expected));
                return Err(self.cut_short(&context));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Step {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.cut_short("in numeric literal")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.some_digits("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.some_digits("in exponent of numeric literal")?;
        }
        Ok(())
    }

    fn some_digits(&mut self, context: &str) -> Step {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.cut_short(context));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn enter(&mut self, bracket: Bracket) -> Step {
        self.at += 1;
        self.open.push(bracket);
        if self.open.len() > DEEPEST {
            return Err(JsonFault { offset: self.at, message: "exceeded max depth".to_owned() });
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.at += 1;
        self.open.pop();
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn invalid(&self, context: &str) -> JsonFault {
        let message = match self.peek() {
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character {} {context}", quoted(byte)),
        };
        JsonFault { offset: (self.at + 1).min(self.text.len()), message }
    }

    /// In the middle of a word or a number, where the end of the text is told as a blank.
    fn cut_short(&self, context: &str) -> JsonFault {
        let byte = self.peek().unwrap_or(b' ');
        let message = format!("invalid character {} {context}", quoted(byte));
        JsonFault { offset: (self.at + 1).min(self.text.len()), message }
    }
}

/// A byte as Go's reader shows it.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        other => {
            let quoted = quote(&char::from(other).to_string());
            format!("'{}'", quoted.trim_matches('"'))
        }
    }
}

/// What Go's reader says of a value of another type than wanted.
pub(crate) fn mismatch(value: &Value, place: &str) -> String {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("json: cannot unmarshal {found} into Go {place}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn faults_are_told_in_go_words() {
        let cases = [
            ("", "unexpected end of JSON input"),
            ("  ", "unexpected end of JSON input"),
            ("x", "invalid character 'x' looking for beginning of value"),
            ("{", "unexpected end of JSON input"),
            ("{a", "invalid character 'a' looking for beginning of object key string"),
            ("{\"a\"}", "invalid character '}' after object key"),
            ("{\"a\":1 2", "invalid character '2' after object key:value pair"),
            ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
            ("[1 2]", "invalid character '2' after array element"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            ("{} {", "invalid character '{' after top-level value"),
            ("\"\n\"", "invalid character '\\n' in string literal"),
            ("\"\\x\"", "invalid character 'x' in string escape code"),
            ("\"\\u12x\"", "invalid character 'x' in \\u hexadecimal character escape"),
            ("-x", "invalid character 'x' in numeric literal"),
            ("1.x", "invalid character 'x' after decimal point in numeric literal"),
            ("1e+'", "invalid character '\\'' in exponent of numeric literal"),
            ("trux", "invalid character 'x' in literal true (expecting 'e')"),
            ("nul", "invalid character ' ' in literal null (expecting 'l')"),
            ("-", "invalid character ' ' in numeric literal"),
            ("\"\\", "invalid character ' ' in string escape code"),
            ("\"a", "unexpected end of JSON input"),
            ("01", "invalid character '1' after top-level value"),
            ("é", "invalid character 'Ã' looking for beginning of value"),
        ];
        for (text, expected) in cases {
            let fault = json_fault(text.as_bytes()).map(|fault| fault.message);
            assert_eq!(fault.as_deref(), Some(expected), "{text:?}");
        }
        assert_eq!(json_fault(b" {\"a\": [1, -0.5e-3, {}, [], null, \"\\u00e9\"]} "), None);
    }

    #[test]
    fn brackets_without_end_are_no_danger() {
        let fault = json_fault("[".repeat(1_000_000).as_bytes());
        assert_eq!(fault.map(|fault| fault.message).as_deref(), Some("exceeded max depth"));
    }

    proptest! {
        #[test]
        fn agrees_with_another_reader(text in r#"[\[\]{}:,"\\ ux01e.+\-tfn]{0,12}"#) {
            let read = serde_json::from_str::<serde_json::Value>(&text);
            // Numbers out of range and lone surrogates are no faults of grammar.
            let grammatical = read.as_ref().err().is_none_or(|error| {
                let said = error.to_string();
                said.starts_with("number out of range") || said.contains("surrogate")
            });
            prop_assert_eq!(json_fault(text.as_bytes()).is_none(), grammatical, "{:?}", read);
        }
    }
}
