//! A place in the history of one storage, from which its changes are read as they come.
//!
//! Owns no queue: a cursor looks into the history that all share, and one that falls behind it
//! learns so. Must not know selectors or clients.

use std::sync::Arc;

use tokio::sync::watch;

use super::section::Section;
use super::state::State;
use super::{Compacted, Event, Shared};

/// How much one look takes at most, so that a slow reader keeps little alive.
const EVENTS_AT_ONCE: usize = 512;
const BYTES_AT_ONCE: usize = 1 << 20;

/// Reads the changes of a storage in order, each once.
#[derive(Debug)]
pub(crate) struct Cursor {
    shared: Arc<Shared>,
    storage: Arc<str>,
    /// Which section of that name.
    serial: u64,
    position: u64,
    bell: watch::Receiver<()>,
    /// Set once the storage was dropped or the place forgotten: it stays so.
    ended: Option<Compacted>,
}

impl Cursor {
    pub(super) fn open(
        shared: Arc<Shared>,
        storage: &Arc<str>,
        from: u64,
    ) -> Result<Self, Compacted> {
        let state = shared.read();
        let known =
            state.section(storage).map(|section| (section.serial(), section.bell().subscribe()));
        let oldest = state.floor(storage);
        drop(state);
        if from < oldest {
            return Err(Compacted { oldest });
        }
        // The history may move on in between; then the first look says so.
        let (serial, bell) = known.unwrap_or_else(|| {
            let mut state = shared.write();
            let section = state.section_or_new(storage);
            (section.serial(), section.bell().subscribe())
        });
        let storage = Arc::clone(storage);
        Ok(Self { shared, storage, serial, position: from, bell, ended: None })
    }

    /// The changes after the position, as soon as there are any; the position is then the revision
    /// of the last of them. May be dropped while waiting without losing anything.
    pub(crate) async fn next(&mut self) -> Result<Vec<Arc<Event>>, Compacted> {
        loop {
            self.bell.mark_unchanged();
            let events = self.look()?;
            if !events.is_empty() {
                return Ok(events);
            }
            if self.bell.changed().await.is_err() {
                // The bell went with its storage.
                let oldest = self.shared.read().revision();
                self.ended = Some(Compacted { oldest });
            }
        }
    }

    /// The changes that are there now.
    fn look(&mut self) -> Result<Vec<Arc<Event>>, Compacted> {
        if let Some(ended) = self.ended {
            return Err(ended);
        }
        let state = self.shared.read();
        let oldest = state.floor(&self.storage);
        let Some(section) = self.section(&state).filter(|_| self.position >= oldest) else {
            let ended = Compacted { oldest };
            self.ended = Some(ended);
            return Err(ended);
        };
        let mut bytes = 0;
        let mut events = Vec::new();
        for event in section.since(self.position).take(EVENTS_AT_ONCE) {
            if bytes > BYTES_AT_ONCE {
                break;
            }
            bytes += event.object.text.len();
            events.push(Arc::clone(event));
        }
        if let Some(last) = events.last() {
            self.position = last.revision;
        }
        Ok(events)
    }

    /// The section that is watched; one that came later under its name is another.
    fn section<'a>(&self, state: &'a State) -> Option<&'a Section> {
        state.section(&self.storage).filter(|section| section.serial() == self.serial)
    }

    /// Up to which revision all changes of the storage were handed out.
    pub(crate) const fn position(&self) -> u64 {
        self.position
    }

    /// Moves the position on to the revision of the store, if nothing of this storage is in
    /// between, and says where it is: what a bookmark may tell.
    pub(crate) fn quiet(&mut self) -> u64 {
        let state = self.shared.read();
        let waiting = self.section(&state).is_none_or(|section| {
            self.position < section.floor() || section.since(self.position).next().is_some()
        });
        if !waiting && self.ended.is_none() {
            self.position = self.position.max(state.revision());
        }
        self.position
    }
}
