//! Assertions that give an error instead of a panic, so that one failed scenario names what it
//! saw and the others go on.

use std::fmt::Debug;

use anyhow::{Result, ensure};
use serde_json::Value;

/// Both must be the same.
#[expect(
    clippy::needless_pass_by_value,
    reason = "callers pass literals, references and computed values alike"
)]
pub fn equal<A, B>(what: &str, got: A, wanted: B) -> Result<()>
where
    A: PartialEq<B> + Debug,
    B: Debug,
{
    ensure!(got == wanted, "{what}:\n     got {got:?}\n  wanted {wanted:?}");
    Ok(())
}

/// The fields, by JSON pointer, must have these values.
pub fn fields(what: &str, object: &Value, wanted: &[(&str, Value)]) -> Result<()> {
    for (pointer, value) in wanted {
        let got = object.pointer(pointer).unwrap_or(&Value::Null);
        ensure!(got == value, "{what}, {pointer}:\n     got {got}\n  wanted {value}");
    }
    Ok(())
}

/// The text must hold all the parts.
pub fn contains(what: &str, text: &str, parts: &[&str]) -> Result<()> {
    for part in parts {
        ensure!(text.contains(part), "{what}: {part:?} is missing in {text:?}");
    }
    Ok(())
}

/// One of the lines must start with these words.
pub fn has_line(what: &str, lines: &[String], start: &str) -> Result<()> {
    ensure!(
        lines.iter().any(|line| line.starts_with(start)),
        "{what}: no line starts with {start:?}; there are {lines:#?}"
    );
    Ok(())
}

/// None of the lines may start with these words.
pub fn no_line(what: &str, lines: &[String], start: &str) -> Result<()> {
    ensure!(
        !lines.iter().any(|line| line.starts_with(start)),
        "{what}: a line starts with {start:?}; there are {lines:#?}"
    );
    Ok(())
}
