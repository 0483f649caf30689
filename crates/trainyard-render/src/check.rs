//! Whether what was rendered can be used: YAML, objects, names.
//!
//! Owns what is refused and what is only worth a warning, and in which line it stands; must not
//! know what an object means.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::Value;
use serde_saphyr::Options;
use thiserror::Error;

use crate::rendering::{Part, Rendered};

/// Values of one part, aliases written out.
const NODES_MAX: usize = 1_000_000;
const DEPTH_MAX: usize = 128;
/// Shorter lists of hosts are read as they are.
const LONG: usize = 4096;

/// The rendered text is not YAML.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line} of the rendered text is not YAML: {problem}")]
pub struct CheckError {
    /// Counted from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

impl CheckError {
    /// A short name for the kind of error.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        "not-yaml"
    }
}

/// What is worth knowing about a rendered text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Warning {
    /// The same object again.
    #[error("line {line}: {object} stands there already, in line {first}")]
    Repeated {
        /// Counted from 1.
        line: usize,
        /// Kind and name.
        object: String,
        /// Where it stands first.
        first: usize,
    },
    /// Not an object with a kind and a name.
    #[error("line {line}: not an object with apiVersion, kind and metadata.name")]
    NoObject {
        /// Counted from 1.
        line: usize,
    },
}

impl Rendered {
    /// Reads every part as YAML.
    pub fn check(&self) -> Result<Vec<Warning>, CheckError> {
        let mut warnings = Vec::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for part in &self.parts {
            let text = self.shortened(part);
            for object in objects(&text, part)? {
                let Some(name) = identity(&object) else {
                    warnings.push(Warning::NoObject { line: part.line });
                    continue;
                };
                let line = part.line + line_of_name(&text, &object);
                let first = *seen.entry(name.clone()).or_insert(line);
                if first != line {
                    warnings.push(Warning::Repeated { line, object: name, first });
                }
            }
        }
        Ok(warnings)
    }

    /// The text of a part with few hosts: thousands of them are no different to YAML from one, and
    /// slow to read. Lines stay where they are.
    fn shortened(&self, part: &Part) -> Cow<'_, str> {
        let text = self.text_of(part);
        let roles = self.cluster.roles(part.role);
        if roles.len() > LONG {
            replaced(text, roles, self.stand_in.roles(part.role)).into()
        } else {
            text.into()
        }
    }

    /// All objects of the text, for those who want to create them.
    pub fn all_objects(&self) -> Result<Vec<Value>, CheckError> {
        let mut all = Vec::new();
        for part in &self.parts {
            all.extend(objects(self.text_of(part), part)?);
        }
        Ok(all)
    }
}

/// Reads all objects of a part.
fn objects(text: &str, part: &Part) -> Result<Vec<Value>, CheckError> {
    read(text)
        .map_err(|(line, problem)| CheckError { line: part.line + line.saturating_sub(1), problem })
}

/// In which line of a part an object is named, counted from 0.
fn line_of_name(text: &str, object: &Value) -> usize {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let names = |line: &str| {
        let value = line.trim().strip_prefix("name:").map(str::trim);
        value.is_some_and(|value| value.trim_matches(['"', '\'']) == name)
    };
    text.lines().position(names).unwrap_or(0)
}

/// The text with every `long` replaced. Only the start of `long` is searched for: preparing a search
/// for all of it would take longer than the search.
fn replaced(text: &str, long: &str, short: &str) -> String {
    let start = long.char_indices().nth(64).map_or(long, |(end, _)| &long[..end]);
    let mut made = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(start) {
        let (before, found) = rest.split_at(at);
        made.push_str(before);
        if let Some(after) = found.strip_prefix(long) {
            made.push_str(short);
            rest = after;
        } else {
            made.push_str(start);
            rest = &found[start.len()..];
        }
    }
    made + rest
}

/// Reads all documents of a text; empty ones are left out. A mistake comes with its line.
fn read(text: &str) -> Result<Vec<Value>, (usize, String)> {
    serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| place(&error))
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_events: 2 * NODES_MAX,
            max_reader_input_bytes: Some(256 << 20),
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: NODES_MAX },
        legacy_octal_numbers: true,
        emit_comments: false,
        with_snippet: false,
    }
}

fn place(error: &serde_saphyr::Error) -> (usize, String) {
    let error = error.without_snippet();
    let place = error.location().map(|place| (place.line(), place.column()));
    let mut problem = error.render();
    if let Some((line, column)) = place {
        // The line is that of the part, which nobody can look up; the message has another one.
        for known in
            [format!(" at line {line}, column {column}"), format!("line {line} column {column}: ")]
        {
            problem = problem.replacen(&known, "", 1);
        }
    }
    let line = place.map_or(1, |(line, _)| usize::try_from(line).unwrap_or(1));
    (line, problem)
}

/// What makes two objects the same one.
fn identity(object: &Value) -> Option<String> {
    object["apiVersion"].as_str()?;
    let kind = object["kind"].as_str()?;
    let name = object["metadata"]["name"].as_str()?;
    let namespace = object["metadata"]["namespace"].as_str();
    Some(match namespace {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    })
}

#[cfg(test)]
mod tests {
    use crate::{
        crew::{Crew, Wanted},
        rendering::{PORT, Rendered, render},
        template::Missing,
    };

    fn rendered(template: &str, machines: usize) -> Rendered {
        let nodes: Vec<_> = (0..machines).map(|at| format!("node-{at}.example.com")).collect();
        let crew = Crew::choose(&nodes, &Wanted::default()).unwrap();
        render(template, Missing::Refused, &crew, PORT).unwrap()
    }

    fn warnings(template: &str) -> Vec<String> {
        let warnings = rendered(template, 3).check().unwrap();
        warnings.iter().map(ToString::to_string).collect()
    }

    const JOB: &str = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: ";

    #[test]
    fn a_name_that_comes_again_is_warned_of_with_its_line() {
        let found = warnings(&format!("{JOB}mnist-{{{{.type}}}}"));
        assert_eq!(found, ["line 14: Job mnist-worker stands there already, in line 9"]);
        assert_eq!(warnings(&format!("{JOB}mnist-{{{{.host}}}}")), [""; 0]);
        let two = format!(
            "{JOB}a-{{{{.host}}}}\n---\napiVersion: v1\nkind: Service\nmetadata: {{name: a}}"
        );
        assert_eq!(warnings(&two).len(), 2);
    }

    #[test]
    fn what_is_no_object_is_warned_of() {
        assert_eq!(warnings("hello {{.host}}").len(), 3);
        assert_eq!(warnings("# {{.host}}"), [""; 0]);
    }

    #[test]
    fn what_is_not_yaml_is_refused_with_its_line() {
        let broken = format!("{JOB}a\nspec: {{{{if eq .index \"1\"}}}}[1, 2{{{{end}}}}\n");
        let error = rendered(&broken, 3).check().unwrap_err();
        assert_eq!(error.line, 17, "{error}");
        let twice = rendered(&format!("{JOB}a\nkind: Job"), 2).check().unwrap_err();
        assert_eq!(twice.line, 5, "{twice}");
    }

    #[test]
    fn only_the_whole_is_replaced() {
        let long = format!("{}end", "ab".repeat(40));
        let text = format!("1{long}2{}3{long}{long}", "ab".repeat(45));
        assert_eq!(super::replaced(&text, &long, "-"), format!("1-2{}3--", "ab".repeat(45)));
    }

    #[test]
    fn many_hosts_are_checked_in_a_shorter_text() {
        let template =
            format!("{JOB}{{{{.host}}}}\nspec: >\n{{{{.TF_CONFIG}}}}\nx: {{{{.index}}}}");
        let many = rendered(&template, 400);
        assert!(many.text.len() > 400 * 400 * 10);
        assert_eq!(many.check(), Ok(vec![]));
        assert_eq!(many.all_objects().unwrap().len(), 400);
    }
}
