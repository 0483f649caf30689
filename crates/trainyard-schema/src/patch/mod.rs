//! Patches: JSON patch, merge patch and strategic merge patch, as the API server applies them.
//!
//! Owns what they mean and how they fail. Must not know any kind: what a strategic merge asks of a
//! type it asks a [`Shape`].

mod json;
mod lists;
mod merge;
mod order;
mod strategic;

use serde_json::Value;

use crate::golang::mismatch;

pub use json::{json_patch, json_patch_unknown_fields};
pub use merge::merge_patch;
pub use strategic::strategic_merge;

/// How deep a patch and what it makes may be nested. What is stored must be readable again, and JSON
/// readers stop at 128.
pub const MAX_DEPTH: usize = 120;

/// How many operations a JSON patch may have.
pub const MAX_OPERATIONS: usize = 10_000;

/// What a strategic merge asks of a type.
pub trait Shape {
    /// The type of a field of an object (or of the values of a map).
    fn field(&self, name: &str) -> Option<&Self>;
    /// The type of a list's elements.
    fn element(&self) -> Option<&Self>;
    /// Whether a list is merged (`x-kubernetes-patch-strategy: merge`).
    fn is_merged(&self) -> bool;
    /// Whether keys of the live object that the patch does not name are kept out (`retainKeys`).
    fn retains_keys(&self) -> bool;
    /// By which key a merged list finds its elements (`x-kubernetes-patch-merge-key`).
    fn merge_key(&self) -> Option<&str>;
    /// The name of the type, for messages: `PodSpec`.
    fn name(&self) -> Option<&str> {
        None
    }
}

/// A type of which nothing is known: every list is replaced.
#[derive(Debug, Clone, Copy)]
pub enum Shapeless {}

impl Shape for Shapeless {
    fn field(&self, _name: &str) -> Option<&Self> {
        match *self {}
    }
    fn element(&self) -> Option<&Self> {
        match *self {}
    }
    fn is_merged(&self) -> bool {
        match *self {}
    }
    fn retains_keys(&self) -> bool {
        match *self {}
    }
    fn merge_key(&self) -> Option<&str> {
        match *self {}
    }
}

/// Why a patch was not applied. The text says what is wrong; [`PatchError::message`] is what the API
/// server tells its clients, which is less.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is no patch.
    #[error("{why}")]
    Malformed {
        /// What is wrong with it.
        why: String,
    },
    /// It has too many operations.
    #[error("the allowed maximum operations in a JSON patch is {most}, got {count}")]
    TooLarge {
        /// How many are allowed.
        most: usize,
        /// How many it has.
        count: usize,
    },
    /// It is a patch, but not for this object.
    #[error("{why}")]
    DoesNotApply {
        /// What does not fit.
        why: String,
    },
    /// It is a strategic merge patch that contradicts itself or the types; the API server has no
    /// reason for these.
    #[error("{why}")]
    Contradictory {
        /// What contradicts what.
        why: String,
    },
}

impl PatchError {
    fn malformed(why: impl Into<String>) -> Self {
        Self::Malformed { why: why.into() }
    }

    fn does_not_apply(why: impl Into<String>) -> Self {
        Self::DoesNotApply { why: why.into() }
    }

    fn contradictory(why: impl Into<String>) -> Self {
        Self::Contradictory { why: why.into() }
    }

    /// A short name for logs and metrics.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "patch_malformed",
            Self::TooLarge { .. } => "patch_too_large",
            Self::DoesNotApply { .. } => "patch_does_not_apply",
            Self::Contradictory { .. } => "patch_contradictory",
        }
    }

    /// The HTTP status code that the API server answers with.
    #[must_use]
    pub fn code(&self) -> u16 {
        match self {
            Self::Malformed { .. } => 400,
            Self::TooLarge { .. } => 413,
            Self::DoesNotApply { .. } => 422,
            Self::Contradictory { .. } => 500,
        }
    }

    /// The reason of its `Status`; empty where there is none.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "BadRequest",
            Self::TooLarge { .. } => "RequestEntityTooLarge",
            Self::DoesNotApply { .. } => "Invalid",
            Self::Contradictory { .. } => "",
        }
    }

    /// Whether its `Status` has (empty) details.
    #[must_use]
    pub fn has_details(&self) -> bool {
        matches!(self, Self::DoesNotApply { .. })
    }

    /// The message of its `Status`.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Malformed { why } | Self::Contradictory { why } => why.clone(),
            Self::TooLarge { most, count } => format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {most}, got {count}"
            ),
            Self::DoesNotApply { .. } => {
                "the server rejected our request due to an error in our request".to_owned()
            }
        }
    }
}

/// How deep a value is nested (a scalar is 0), looking no further than `most`; and how many values
/// were looked at.
fn depth(value: &Value, most: usize) -> (usize, usize) {
    let mut count = 1;
    let mut deepest = 0;
    let mut step = |item: &Value| {
        let (below, seen) = depth(item, most - 1);
        deepest = deepest.max(below + 1);
        count += seen;
    };
    match value {
        Value::Array(items) if most == 0 => return (usize::from(!items.is_empty()), count),
        Value::Object(members) if most == 0 => return (usize::from(!members.is_empty()), count),
        Value::Array(items) => items.iter().for_each(&mut step),
        Value::Object(members) => members.values().for_each(&mut step),
        _ => {}
    }
    (deepest, count)
}

/// Refuses a patch that is nested too deeply.
fn check_depth(patch: &Value) -> Result<(), PatchError> {
    if depth(patch, MAX_DEPTH).0 > MAX_DEPTH {
        return Err(PatchError::malformed(format!(
            "the patch is nested more than {MAX_DEPTH} levels deep: make it flatter"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod testing;
