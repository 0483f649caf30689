//! What a check has found, and how well the value fitted otherwise.
//!
//! Owns the rules by which findings of parts are put together: each text once, and a count of what
//! was right by which the best of several alternatives is chosen.

use std::collections::HashSet;

use serde_json::Value;

use crate::{Fault, FieldError, golang};

/// More than this many findings help nobody.
const MOST: usize = 1000;

/// One finding.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) error: FieldError,
    /// The words by which two findings are the same.
    text: String,
}

impl Problem {
    /// About a field: `words` go on after its name.
    pub(super) fn of_field(fault: Fault, path: &str, value: impl Into<Value>, words: &str) -> Self {
        let text = format!("{path} in body {words}");
        let error = FieldError::new(fault, field(path), value, text.clone());
        Self { error, text }
    }

    /// About a field, in words of its own.
    pub(super) fn with(error: FieldError, path: &str, words: &str) -> Self {
        Self { error, text: format!("{path} in body {words}") }
    }

    /// About the whole object: the field stands in the text only.
    pub(super) fn general(text: String) -> Self {
        Self { error: FieldError::invalid("", "", text.clone()), text }
    }

    /// About a type; `found` is the type that is there, or the text.
    pub(super) fn of_type(path: &str, wanted: &str, found: &str) -> Self {
        let words = format!("must be of type {wanted}: {}", golang::quote(found));
        Self::of_field(Fault::TypeInvalid, path, found, &words)
    }
}

/// The path as errors have it: additional fields of the root come with a dot before them.
pub(super) fn field(path: &str) -> String {
    path.strip_prefix('.').unwrap_or(path).to_owned()
}

/// What a check has found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    problems: Vec<Problem>,
    seen: HashSet<String>,
    /// How many checks were made and passed; only to compare alternatives.
    pub(super) matches: usize,
}

impl Findings {
    pub(super) fn is_clean(&self) -> bool {
        self.problems.is_empty()
    }

    pub(super) fn add(&mut self, problem: Problem) {
        if self.problems.len() < MOST && self.seen.insert(problem.text.clone()) {
            self.problems.push(problem);
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        for problem in other.problems {
            self.add(problem);
        }
    }

    /// Forgets the findings, not the count.
    pub(super) fn forgive(&mut self) {
        self.problems.clear();
        self.seen.clear();
    }

    pub(super) fn into_errors(self) -> impl Iterator<Item = FieldError> {
        self.problems.into_iter().map(|problem| problem.error)
    }
}
