//! How objects are shown: as tables, as YAML or JSON, by paths into them, by their names.
//!
//! Owns formats; pure, but for the current time that callers pass in. Must not know where objects
//! come from.

pub(crate) mod columns;
mod custom;
pub(crate) mod events;
pub(crate) mod format;
pub(crate) mod harmless;
pub(crate) mod paint;
pub(crate) mod table;
pub(crate) mod template;
pub(crate) mod time;

use serde_json::Value;

pub(crate) use harmless::harmless;

/// A member's text; empty when there is none.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

/// What a path of names leads to; null when it leads nowhere.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(object, |value, name| &value[*name])
}

/// The elements of a list; none when it is not there.
pub(crate) fn items<'a>(
    object: &'a Value,
    path: &[&str],
) -> std::iter::Flatten<std::option::IntoIter<&'a Vec<Value>>> {
    at(object, path).as_array().into_iter().flatten()
}

/// A text on one line, for a cell of a table: its lines follow each other.
pub(crate) fn one_line(text: &str) -> String {
    let lines = text.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']);
    let lines: Vec<String> =
        lines.map(|line| harmless(line.trim())).filter(|line| !line.is_empty()).collect();
    lines.join(" ")
}

/// A text with its line breaks, without blank lines and without what a terminal would obey.
pub(crate) fn lines(text: &str) -> String {
    let lines: Vec<String> = text
        .trim()
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| harmless(line.trim_end()))
        .collect();
    lines.join("\n")
}
