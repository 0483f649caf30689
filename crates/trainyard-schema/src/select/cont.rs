//! Where a list goes on: the continue token of a page.
//!
//! To clients it is opaque; it is written exactly as the API server writes it: JSON, then base64 for
//! URLs without padding. Must not know which list it belongs to.

use serde::Serialize;
use serde_json::Value;

use crate::golang::{self, mismatch};

const VERSION: &str = "meta.k8s.io/v1";
const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Where a list goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The revision of the first page, and so of all; 0 for "whatever is newest by then".
    pub revision: u64,
    /// The first key that is not looked at yet: the last one shown and a zero byte. As seen from the
    /// list: `default/last-name\0` in a list of all namespaces, `last-name\0` in that of one.
    pub start: String,
}

/// Why a text is no continue token. The texts are the API server's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Not written by any server.
    #[error("continue key is not valid: {why}")]
    Garbled {
        /// What is wrong.
        why: String,
    },
    /// Written by a server with another form.
    #[error("continue key is not valid: server does not recognize this encoded version {version}")]
    Version {
        /// The form it names.
        version: String,
    },
    /// Without a revision.
    #[error(
        "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)"
    )]
    NoRevision,
    /// Without a key.
    #[error("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")]
    NoStart,
}

impl TokenError {
    /// A short name for logs and metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Garbled { .. } => "continue_garbled",
            Self::Version { .. } => "continue_version",
            Self::NoRevision => "continue_revision",
            Self::NoStart => "continue_start",
        }
    }
}

#[derive(Serialize)]
struct Written<'a> {
    v: &'a str,
    rv: i64,
    start: &'a str,
}

impl Token {
    /// The text for the client.
    #[must_use]
    pub fn encode(&self) -> String {
        // There is no revision 0; the API server says -1 for "whatever is newest".
        let rv = match self.revision {
            0 => -1,
            revision => i64::try_from(revision).unwrap_or(i64::MAX),
        };
        let start = format!("/{}", self.start);
        let written = Written { v: VERSION, rv, start: &start };
        // Writing texts and numbers as JSON cannot fail.
        base64(&serde_json::to_vec(&written).unwrap_or_default())
    }

    /// Reads what a client sent.
    pub fn decode(text: &str) -> Result<Self, TokenError> {
        let garbled = |why: String| TokenError::Garbled { why };
        let json = unbase64(text.as_bytes())
            .map_err(|at| garbled(format!("illegal base64 data at input byte {at}")))?;
        if let Some(fault) = golang::json_fault(&json) {
            return Err(garbled(fault.message));
        }
        let read: Value = serde_json::from_str(&String::from_utf8_lossy(&json))
            .map_err(|error| garbled(error.to_string()))?;
        let field = |name: &str| read.get(name).unwrap_or(&Value::Null);
        let (Value::Object(_) | Value::Null) = read else {
            return Err(garbled(mismatch(&read, "value of type storage.continueToken")));
        };
        let version = text_of(field("v"), "v").map_err(garbled)?;
        let revision = revision_of(field("rv")).map_err(garbled)?;
        let start = text_of(field("start"), "start").map_err(garbled)?;
        if version != VERSION {
            return Err(TokenError::Version { version: version.to_owned() });
        }
        if revision == 0 {
            return Err(TokenError::NoRevision);
        }
        if start.is_empty() {
            return Err(TokenError::NoStart);
        }
        if !is_clean(start) {
            return Err(garbled(start.to_owned()));
        }
        let start = start.strip_prefix('/').unwrap_or(start).to_owned();
        Ok(Self { revision: u64::try_from(revision).unwrap_or(0), start })
    }
}

/// Whether a key stays where it is: no empty part, no `.` and no `..`, which could lead out of the
/// list.
fn is_clean(start: &str) -> bool {
    let key = start.strip_prefix('/').unwrap_or(start);
    key.is_empty() || key.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

fn text_of<'a>(value: &'a Value, field: &str) -> Result<&'a str, String> {
    match value {
        Value::Null => Ok(""),
        Value::String(text) => Ok(text),
        other => {
            Err(mismatch(other, &format!("struct field continueToken.{field} of type string")))
        }
    }
}

fn revision_of(value: &Value) -> Result<i64, String> {
    let place = "struct field continueToken.rv of type int64";
    match value {
        Value::Null => Ok(0),
        Value::Number(number) => number
            .as_i64()
            .ok_or_else(|| format!("json: cannot unmarshal number {number} into Go {place}")),
        other => Err(mismatch(other, place)),
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..=group.len() {
            let sextet = bits >> (18 - 6 * index) & 0x3f;
            let letter = LETTERS.get(sextet as usize).copied().unwrap_or_default();
            text.push(char::from(letter));
        }
    }
    text
}

/// The bytes, or the place of the first letter that does not belong.
fn unbase64(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 2);
    let (mut bits, mut letters) = (0u32, 0u32);
    for (at, letter) in text.iter().enumerate() {
        let sextet = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'-' => 62,
            b'_' => 63,
            // Line breaks may stand anywhere.
            b'\r' | b'\n' => continue,
            _ => return Err(at),
        };
        bits = bits << 6 | u32::from(sextet);
        letters += 1;
        if letters == 4 {
            bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
            (bits, letters) = (0, 0);
        }
    }
    match letters {
        0 => {}
        1 => return Err(text.len() - 1),
        left => {
            let whole = (bits << (6 * (4 - left))).to_be_bytes();
            bytes.extend(whole.into_iter().skip(1).take(left as usize - 1));
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn is_written_as_the_api_server_writes_it() {
        let token = Token { revision: 227, start: "a\0".to_owned() };
        let text = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjI3LCJzdGFydCI6Ii9hXHUwMDAwIn0";
        assert_eq!(token.encode(), text);
        assert_eq!(Token::decode(text), Ok(token));
        // The slash in front may be left out.
        let text = "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjA3LCJzdGFydCI6ImRlZmF1bHQvYVx1MDAwMCJ9";
        let token = Token { revision: 207, start: "default/a\0".to_owned() };
        assert_eq!(Token::decode(text), Ok(token));
    }

    #[test]
    fn what_is_no_token_is_refused_in_its_words() {
        let of = |json: &str| base64(json.as_bytes());
        let cases = [
            ("@", "continue key is not valid: illegal base64 data at input byte 0"),
            ("abcd=", "continue key is not valid: illegal base64 data at input byte 4"),
            ("abcde", "continue key is not valid: illegal base64 data at input byte 4"),
            ("", "continue key is not valid: unexpected end of JSON input"),
            (
                "abc",
                "continue key is not valid: invalid character 'i' looking for beginning of value",
            ),
            (
                &of("[]"),
                "continue key is not valid: json: cannot unmarshal array into Go value of type storage.continueToken",
            ),
            (
                &of(r#"{"v":1}"#),
                "continue key is not valid: json: cannot unmarshal number into Go struct field continueToken.v of type string",
            ),
            (
                &of(r#"{"rv":1.5}"#),
                "continue key is not valid: json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64",
            ),
            (
                &of("{}"),
                "continue key is not valid: server does not recognize this encoded version ",
            ),
            (
                &of(r#"{"v":"meta.k8s.io/v2"}"#),
                "continue key is not valid: server does not recognize this encoded version meta.k8s.io/v2",
            ),
            (
                &of(r#"{"v":"meta.k8s.io/v1","start":"a"}"#),
                "continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
            ),
            (
                &of(r#"{"v":"meta.k8s.io/v1","rv":1}"#),
                "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)",
            ),
            (
                &of(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"../a"}"#),
                "continue key is not valid: ../a",
            ),
            (
                &of(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"a//b"}"#),
                "continue key is not valid: a//b",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(Token::decode(text).unwrap_err().to_string(), expected, "{text:?}");
        }
    }

    #[test]
    fn line_breaks_may_stand_in_it() {
        let text = Token { revision: 1, start: "a".to_owned() }.encode();
        let (front, back) = text.split_at(7);
        assert!(Token::decode(&format!("{front}\r\n{back}\n")).is_ok());
    }

    #[test]
    fn the_newest_revision_has_a_number_of_its_own() {
        let token = Token { revision: 0, start: "a".to_owned() };
        assert_eq!(Token::decode(&token.encode()), Ok(token));
    }

    proptest! {
        #[test]
        fn comes_back(revision in 0..=i64::MAX as u64, start in r"[a-z\x00é]{1,5}(/[a-z\x00.]{3,5})?") {
            let token = Token { revision, start };
            prop_assert_eq!(Token::decode(&token.encode()), Ok(token));
        }

        #[test]
        fn any_text_is_answered(text in any::<String>(), json in r#"\{"(v|rv|start)":["0-9a-z./]{0,5}\}"#) {
            let _ = Token::decode(&text);
            let _ = Token::decode(&base64(json.as_bytes()));
        }
    }
}
