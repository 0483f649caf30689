//! What the store refuses, and why.
//!
//! Must not know status codes: the verbs turn these into refusals of the API.

use crate::object::Object;

/// Why a write was not done. Nothing of it is visible, ever, unless it says otherwise.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum CommitError {
    /// It was to be new, and there is one.
    #[error("an object of that name exists at revision {}", .0.revision)]
    Exists(Object),
    /// It was to be changed or deleted, and there is none.
    #[error("no object of that name")]
    Missing,
    /// It was written by someone else in between; this is what there is now.
    #[error("the object was changed in between, at revision {}", .0.revision)]
    Changed(Object),
    /// The store takes no writes (any more).
    #[error("the store is closed: {0}")]
    Closed(String),
    /// There is no room; writes are taken again when there is.
    #[error("no room for the write: {0}")]
    Full(String),
}

impl CommitError {
    /// A stable name of the variant, for logs and metrics.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Exists(_) => "exists",
            Self::Missing => "missing",
            Self::Changed(_) => "changed",
            Self::Closed(_) => "closed",
            Self::Full(_) => "full",
        }
    }
}

/// The changes after that revision are no longer remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("changes up to revision {oldest} are no longer remembered")]
pub(crate) struct Compacted {
    /// The oldest revision that can be asked for.
    pub(crate) oldest: u64,
}

/// Why there is no list at a revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListError {
    /// It is no longer known what there was at that revision.
    #[error("the state at that revision is no longer known, the oldest known is {oldest}")]
    Compacted {
        /// The oldest revision that can be asked for.
        oldest: u64,
    },
    /// There was no such revision yet.
    #[error("that revision is yet to come, the current one is {current}")]
    Future {
        /// The revision of the store.
        current: u64,
    },
}
