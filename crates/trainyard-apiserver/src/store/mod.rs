//! The store: every object at its newest revision, the recent history, and one revision counter.
//!
//! Owns what a write, a list and a watch mean ([`Store`]); on disk or in memory only. Must not know
//! kinds, verbs or transport: to it an object is a text under a name.

mod change;
mod cursor;
mod disk;
mod error;
mod history;
mod listing;
mod section;
mod state;
mod writer;

#[cfg(test)]
mod concurrency_tests;
#[cfg(test)]
mod durable_tests;
#[cfg(test)]
mod kill_tests;
#[cfg(test)]
mod measure_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use change::{Change, Expect, Key};
pub(crate) use cursor::Cursor;
pub use disk::OpenError;
pub(crate) use error::{CommitError, Compacted, ListError};
pub(crate) use history::Event;
pub(crate) use listing::{Listing, Query};

use crate::object::Object;
use change::Write;
use disk::{Disk, Loaded};
use state::State;
use writer::Writer;

/// How much a store may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// How many changes are remembered for watches and for lists at older revisions.
    pub(crate) history_events: usize,
    /// How many bytes those may keep alive beside the objects themselves.
    pub(crate) history_bytes: usize,
    /// How many bytes all objects together may have.
    pub(crate) object_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { history_events: 100_000, history_bytes: 32 << 20, object_bytes: 2 << 30 }
    }
}

/// The store. Clones are the same store.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    shared: Arc<Shared>,
    /// Who writes, if there is a disk to write to.
    writer: Option<Writer>,
}

#[derive(Debug)]
struct Shared {
    state: RwLock<State>,
}

impl Shared {
    // A panic between two changes of the state cannot happen: applying a write has no way to fail.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn commit(&self, key: Key, expect: Expect, change: Change) -> Result<Object, CommitError> {
        let mut state = self.write();
        let event = state.decide(&key, expect, change)?;
        let object = Arc::clone(&event.object);
        let after = state.apply(vec![Write::event(key.storage, event)]);
        drop(state);
        after.wake();
        Ok(object)
    }

    fn drop_storage(&self, storage: &str) {
        let mut state = self.write();
        let write = state.decide_drop(storage);
        let after = state.apply(write.into_iter().collect());
        drop(state);
        after.wake();
    }

    /// Makes writes visible to reads and watches, all at once.
    fn publish(&self, writes: Vec<Write>) {
        let mut state = self.write();
        let after = state.apply(writes);
        drop(state);
        after.wake();
    }
}

impl Store {
    /// An empty store that lives as long as the process.
    pub(crate) fn memory(limits: Limits) -> Self {
        let state = RwLock::new(State::new(limits));
        Self { shared: Arc::new(Shared { state }), writer: None }
    }

    /// The store in a folder, a fresh one if there is none. It holds the folder until it is closed
    /// or all its clones are gone. Blocks while it reads the folder.
    pub(crate) fn open(folder: &Path, limits: Limits) -> Result<Self, OpenError> {
        let (disk, loaded) = Disk::open(folder)?;
        Self::on(folder, limits, disk, loaded)
    }

    fn on(folder: &Path, limits: Limits, disk: Disk, loaded: Loaded) -> Result<Self, OpenError> {
        let state = RwLock::new(State::loaded(limits, loaded));
        let shared = Arc::new(Shared { state });
        let writer = Writer::start(Arc::clone(&shared), disk)
            .map_err(|source| OpenError::Io { path: folder.to_owned(), source })?;
        Ok(Self { shared, writer: Some(writer) })
    }

    /// Ends writing: what was asked before is done, what comes after is refused, and the folder is
    /// free when it returns. Reads go on. A store in memory is not touched by it.
    pub(crate) async fn close(&self) {
        if let Some(writer) = &self.writer {
            writer.close().await;
        }
    }

    /// The revision of the last write; 1 for a fresh store.
    pub(crate) fn revision(&self) -> u64 {
        self.shared.read().revision()
    }

    /// One object at its newest. `namespace` is empty for cluster-scoped kinds.
    pub(crate) fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Object> {
        let state = self.shared.read();
        let section = state.section(storage)?;
        section.get(&change::path(namespace, name)).cloned()
    }

    /// The objects of a storage in the order of their keys, newest or at a revision, whole or in
    /// pages.
    pub(crate) fn list(&self, storage: &str, query: &Query<'_>) -> Result<Listing, ListError> {
        listing::list(&self.shared, storage, query)
    }

    /// Writes one object, or none when the expectation does not hold. Answers with the object as it
    /// was written; for a deletion that is its last state at the deletion's revision.
    pub(crate) async fn commit(
        &self,
        key: Key,
        expect: Expect,
        change: Change,
    ) -> Result<Object, CommitError> {
        match &self.writer {
            Some(writer) => writer.commit(key, expect, change).await,
            None => self.shared.commit(key, expect, change),
        }
    }

    /// The changes of a storage after a revision, as they come.
    pub(crate) fn watch(&self, storage: &str, from: u64) -> Result<Cursor, Compacted> {
        Cursor::open(Arc::clone(&self.shared), &storage.into(), from)
    }

    /// The names in use: of every storage that has objects.
    #[cfg(test)]
    pub(crate) fn storages(&self) -> Vec<Arc<str>> {
        self.shared.read().storages()
    }

    /// Forgets a storage with all that is in it. Its watches end with [`Compacted`].
    pub(crate) async fn drop_storage(&self, storage: &str) -> Result<(), CommitError> {
        if let Some(writer) = &self.writer {
            return writer.drop_storage(storage).await;
        }
        self.shared.drop_storage(storage);
        Ok(())
    }
}
