//! Reading: values as kubectl would read them.
//!
//! Owns which spellings mean what, and the limits that keep a hostile text from taking the memory.

use std::thread::ScopedJoinHandle;

use serde_json::{Number, Value};
use serde_saphyr::Options;
use thiserror::Error;

/// Longest text that is read. A Kubernetes object is at most 1.5 MB.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 20;
/// Deepest nesting. Printing and comparing values recurses, so this bounds the stack too.
const DEPTH_MAX: usize = 128;
/// What reading such a text takes, with room to spare: threads of a pool have less.
const STACK_BYTES: usize = 16 << 20;
/// Values in one text, aliases written out; a bomb of aliases ends here.
const NODES_MAX: usize = 1_000_000;

/// One document of a text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Document {
    /// Which one, counted from 1, empty ones left out.
    pub(crate) number: usize,
    /// What it says.
    pub(crate) value: Value,
}

/// Why a text could not be read.
#[derive(Debug, Error)]
pub(crate) enum Error {
    /// Not YAML, or beyond a limit.
    #[error("document {document}{}: {problem}", position(*.at))]
    Syntax {
        /// Which document.
        document: usize,
        /// Line and column, counted from 1.
        at: Option<(u64, u64)>,
        /// What is wrong.
        problem: String,
    },
    /// More text than anybody has reason to give.
    #[error("the text has {bytes} bytes; at most {TEXT_BYTES_MAX} are read")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// The machine has no room for one more thread.
    #[error("no thread to read it in: {problem}")]
    Thread {
        /// What the machine says.
        problem: String,
    },
    /// Not text.
    #[error("not UTF-8 text (byte {byte})")]
    Encoding {
        /// Where it stops being text.
        byte: usize,
    },
}

fn position(at: Option<(u64, u64)>) -> String {
    at.map_or_else(String::new, |(line, column)| format!(", line {line}, column {column}"))
}

/// Reads all documents of a text. Empty documents are left out, as kubectl does.
pub(crate) fn parse(text: &[u8]) -> Result<Vec<Document>, Error> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(Error::TooLong { bytes: text.len() });
    }
    if let Err(error) = std::str::from_utf8(text) {
        return Err(Error::Encoding { byte: error.valid_up_to() });
    }
    std::thread::scope(|scope| {
        let reading = std::thread::Builder::new().stack_size(STACK_BYTES);
        let read = reading.spawn_scoped(scope, || documents(text)).map(ScopedJoinHandle::join);
        match read {
            Ok(Ok(read)) => read,
            Ok(Err(fault)) => std::panic::resume_unwind(fault),
            Err(error) => Err(Error::Thread { problem: error.to_string() }),
        }
    })
}

fn documents(text: &[u8]) -> Result<Vec<Document>, Error> {
    let mut documents = Vec::new();
    let mut reader = text;
    for document in serde_saphyr::read_with_options::<_, Value>(&mut reader, options()) {
        let number = documents.len() + 1;
        let mut value = document.map_err(|error| syntax(number, &error))?;
        whole_numbers(&mut value);
        documents.push(Document { number, value });
    }
    Ok(documents)
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: 2 * NODES_MAX,
            max_reader_input_bytes: Some(TEXT_BYTES_MAX),
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: NODES_MAX },
        // kubectl reads `0644` as octal; file modes are written so.
        legacy_octal_numbers: true,
        emit_comments: false,
        with_snippet: false,
    }
}

fn syntax(document: usize, error: &serde_saphyr::Error) -> Error {
    let error = error.without_snippet();
    let at = error.location().map(|place| (place.line(), place.column()));
    let mut problem = error.render();
    // The library names the place as well; once is enough.
    if let Some((line, column)) = at {
        for place in
            [format!(" at line {line}, column {column}"), format!("line {line} column {column}: ")]
        {
            problem = problem.replacen(&place, "", 1);
        }
    }
    Error::Syntax { document, at: at.filter(|(line, _)| *line > 0), problem }
}

/// `1e3` and `2.0` are whole numbers to kubectl, which turns YAML into JSON first.
fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(whole) = whole(number) {
                *value = whole.into();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(fields) => fields.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

fn whole(number: &Number) -> Option<i64> {
    /// Above this a float no longer tells neighbouring whole numbers apart.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64().filter(|float| number.is_f64() && float.fract() == 0.0)?;
    // The cast is exact: whole and within the range checked here.
    #[expect(clippy::cast_possible_truncation, reason = "whole and within range")]
    (float.abs() <= EXACT).then_some(float as i64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(text: &str) -> Vec<Value> {
        parse(text.as_bytes()).unwrap().into_iter().map(|document| document.value).collect()
    }

    fn problem(text: &[u8]) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn scalars_mean_what_kubectl_takes_them_for() {
        for (text, meaning) in [
            ("0644", json!(420)),
            ("0o14", json!(12)),
            ("0x1F", json!(31)),
            ("1e3", json!(1000)),
            ("2.0", json!(2)),
            ("0.5", json!(0.5)),
            ("yes", json!(true)),
            ("off", json!(false)),
            ("y", json!(true)),
            ("'y'", json!("y")),
            ("\"1\"", json!("1")),
            ("1Gi", json!("1Gi")),
            ("2024-01-02", json!("2024-01-02")),
            ("12:30:45", json!("12:30:45")),
            ("127.0.0.1", json!("127.0.0.1")),
        ] {
            assert_eq!(values(&format!("a: {text}\n"))[..], [json!({ "a": meaning })], "{text}");
        }
    }

    #[test]
    fn documents_are_numbered_and_empty_ones_left_out() {
        let documents = parse(b"---\na: 1\n---\n---\n# nothing\n---\nb: 2\n").unwrap();
        assert_eq!(
            documents,
            [
                Document { number: 1, value: json!({"a": 1}) },
                Document { number: 2, value: json!({"b": 2}) },
            ]
        );
        assert_eq!(parse(b"").unwrap(), []);
        assert_eq!(parse(b"# only a comment\n").unwrap(), []);
    }

    #[test]
    fn anchors_and_merge_keys_are_written_out() {
        let text = "base: &b {x: 1}\nuse: {<<: *b, y1: 2}\n";
        assert_eq!(values(text), [json!({"base": {"x": 1}, "use": {"x": 1, "y1": 2}})]);
    }

    #[test]
    fn json_is_yaml() {
        assert_eq!(
            values("{\n\t\"a\": [1, true, \"\\u00e9\"]\n}\n"),
            [json!({"a": [1, true, "é"]})]
        );
    }

    #[test]
    fn a_mistake_is_named_with_document_and_place() {
        let text = problem(b"a: 1\n---\nb: 2\nb: 3\n");
        assert!(text.starts_with("document 2, line 4, column 1: "), "{text}");
        assert!(text.contains("duplicate"), "{text}");
        let text = problem(b"a: [1, 2\nb: }\n");
        assert!(text.starts_with("document 1, line 2"), "{text}");
        assert!(problem(b"a: \xff\n").contains("not UTF-8 text (byte 3)"));
    }

    #[test]
    fn bombs_and_deep_nests_are_refused() {
        let mut bomb = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned()];
        for level in 1..9 {
            let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
            bomb.push(format!("a{level}: &a{level} [{aliases}]"));
        }
        assert!(parse(bomb.join("\n").as_bytes()).is_err());
        assert!(parse("[".repeat(100_000).as_bytes()).is_err());
        assert!(parse("- ".repeat(100_000).as_bytes()).is_err());
        assert!(parse(&vec![b' '; TEXT_BYTES_MAX + 1]).is_err());
    }

    #[test]
    fn numbers_json_cannot_hold_are_refused() {
        assert!(parse(b"a: .nan\n").is_err());
        assert!(parse(b"a: .inf\n").is_err());
    }
}
