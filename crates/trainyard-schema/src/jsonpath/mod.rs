//! Paths into objects, as printer columns write them: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! The same grammar and the same oddities as kubectl's, without the templates around paths. Must not
//! know what is done with what is found.

mod compare;
mod parser;
mod quoted;
mod walk;

use serde_json::Value;

/// A path that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    steps: Vec<Step>,
}

/// Why a text is no path, or why a path leads nowhere in an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is no path.
    #[error("{why}")]
    Syntax {
        /// What is wrong.
        why: String,
    },
    /// The object is not as the path has it.
    #[error("{why}")]
    Mismatch {
        /// What is otherwise.
        why: String,
    },
    /// The path leads to more places than are looked at.
    #[error("the path leads to more than {most} places: name fewer wildcards")]
    TooMany {
        /// How many are looked at.
        most: usize,
    },
}

impl PathError {
    fn syntax(why: impl Into<String>) -> Self {
        Self::Syntax { why: why.into() }
    }

    fn mismatch(why: impl Into<String>) -> Self {
        Self::Mismatch { why: why.into() }
    }

    /// A short name for logs and metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Syntax { .. } => "path_syntax",
            Self::Mismatch { .. } => "path_mismatch",
            Self::TooMany { .. } => "path_too_many",
        }
    }
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq)]
enum Step {
    /// `.name`
    Field(String),
    /// `.*`
    Wildcard,
    /// `..`
    Recursive,
    /// `[0]`, `[-1]`, `[1:3]`, `[*]`
    Slice(Slice),
    /// `[?(@.a=="b")]`
    Filter { left: Vec<Self>, operator: String, right: Vec<Self> },
    /// `[0,2]`
    Union(Vec<Vec<Self>>),
    /// A text, a number, a truth value.
    Literal(Value),
    /// A word that means something only in templates.
    Word(String),
}

/// Which elements of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slice {
    from: Option<i64>,
    to: Option<i64>,
    /// Whether the end follows from the beginning, as in `[3]`.
    single: bool,
    step: Option<i64>,
}

impl Path {
    /// Reads a path, with or without braces around it.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        let inner = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        Ok(Self { steps: parser::parse(inner.unwrap_or(text), 0)? })
    }

    /// Everything the path leads to; nothing when it leads nowhere.
    #[must_use]
    pub fn find<'a>(&'a self, object: &'a Value) -> Vec<&'a Value> {
        self.try_find(object).unwrap_or_default()
    }

    /// Everything the path leads to. Missing fields are no error; an index beyond a list is one, and
    /// so is a comparison of unlike things.
    pub fn try_find<'a>(&'a self, object: &'a Value) -> Result<Vec<&'a Value>, PathError> {
        walk::Walk::default().steps(vec![object], &self.steps)
    }
}

#[cfg(test)]
mod tests;
