//! What a write asks for, and whether it may be done.
//!
//! Owns the expectations of writers (optimistic concurrency). Pure: must not know locks or disks.

use std::sync::Arc;

use super::{CommitError, Event};
use crate::object::{Draft, Object};

/// Where an object is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    /// The storage name of its kind: `pods`, `tfjobs.kubeflow.org`.
    pub(crate) storage: Arc<str>,
    /// Its namespace; empty for cluster-scoped kinds.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(storage: impl Into<Arc<str>>, namespace: &str, name: &str) -> Self {
        Self { storage: storage.into(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The key within its storage.
    pub(super) fn path(&self) -> String {
        path(&self.namespace, &self.name)
    }
}

/// `namespace/name`, or the name alone. Objects are ordered by this text, as by the keys of a
/// cluster's database; that is not the order of the pairs (`a-b/x` comes before `a/x`).
pub(super) fn path(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { [namespace, "/", name].concat() }
}

/// Namespace and name of a path.
pub(super) fn parts(path: &str) -> (&str, &str) {
    path.split_once('/').unwrap_or(("", path))
}

/// What a writer believes to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Nothing of that name.
    Absent,
    /// The object as written at that revision.
    Revision(u64),
}

/// What a writer wants there to be.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// This object.
    Put(Draft),
    /// Nothing; the draft is the object's last state.
    Delete(Draft),
}

impl Change {
    /// How many bytes it carries, nearly.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Put(draft) | Self::Delete(draft) => draft.len(),
        }
    }
}

/// A write that may be done: it holds as long as no other is done in between.
#[derive(Debug, Clone)]
pub(super) struct Write {
    pub(super) storage: Arc<str>,
    pub(super) deed: Deed,
}

#[derive(Debug, Clone)]
pub(super) enum Deed {
    /// One object comes, changes or goes.
    Event(Arc<Event>),
    /// The whole storage goes, at that revision.
    Drop(u64),
}

impl Write {
    pub(super) fn event(storage: Arc<str>, event: Event) -> Self {
        Self { storage, deed: Deed::Event(Arc::new(event)) }
    }

    pub(super) fn revision(&self) -> u64 {
        match &self.deed {
            Deed::Event(event) => event.revision,
            Deed::Drop(revision) => *revision,
        }
    }
}

/// Whether what is there now is what the writer believed.
pub(super) fn check(
    current: Option<&Object>,
    expect: Expect,
    change: &Change,
) -> Result<(), CommitError> {
    match (expect, current) {
        (Expect::Absent, Some(object)) => Err(CommitError::Exists(Arc::clone(object))),
        (Expect::Absent, None) if matches!(change, Change::Put(_)) => Ok(()),
        (_, None) => Err(CommitError::Missing),
        (Expect::Revision(known), Some(object)) if known == object.revision => Ok(()),
        (Expect::Revision(_), Some(object)) => Err(CommitError::Changed(Arc::clone(object))),
    }
}

/// What a change is when it is done at a revision.
pub(super) fn event(
    current: Option<&Object>,
    path: Arc<str>,
    change: Change,
    revision: u64,
) -> Event {
    let (draft, deleted) = match change {
        Change::Put(draft) => (draft, false),
        Change::Delete(draft) => (draft, true),
    };
    let previous = current.cloned();
    Event { revision, path, deleted, object: Arc::new(draft.at(revision)), previous }
}
