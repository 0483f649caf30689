//! Which objects a request is about: label selectors, field selectors, and where a list goes on.
//!
//! Must not know any kind or which fields it has.

pub mod cont;
pub mod fields;
mod label_parser;
pub mod labels;
pub mod words;

/// Why a selector means nothing. The texts are the API server's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// A requirement of a label selector is wrong.
    #[error("unable to parse requirement: {why}")]
    Requirement {
        /// What is wrong with it.
        why: String,
    },
    /// Something stands where something else must.
    #[error("found '{found}', expected: {wanted}")]
    Unexpected {
        /// What stands there.
        found: String,
        /// What may.
        wanted: &'static str,
    },
    /// A key or a value of a `matchLabels` or `matchExpressions` is wrong.
    #[error("{why}")]
    Expression {
        /// What is wrong with it.
        why: String,
    },
    /// A term of a field selector has no operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    Term {
        /// The whole selector.
        selector: String,
        /// The term.
        term: String,
    },
    /// A backslash before a letter that needs none.
    #[error("invalid field selector: invalid escape sequence: {sequence}")]
    Escape {
        /// The backslash and the letter.
        sequence: String,
    },
    /// A letter in a value that needs a backslash.
    #[error("invalid field selector: unescaped character in value: {letter}")]
    Unescaped {
        /// The number of the letter.
        letter: u32,
    },
}

impl SelectError {
    /// A short name for logs and metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Requirement { .. } => "label_requirement",
            Self::Unexpected { .. } => "label_syntax",
            Self::Expression { .. } => "label_expression",
            Self::Term { .. } => "field_term",
            Self::Escape { .. } => "field_escape",
            Self::Unescaped { .. } => "field_unescaped",
        }
    }
}
