//! Everything a store holds: the revision counter, the storages, and the bounds of the history.
//!
//! Owns how writes are applied and what is forgotten. Must not know locks, threads or disks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio::sync::watch;

use super::change::{self, Change, Deed, Expect, Key, Write};
use super::disk::{Everything, Loaded};
use super::history::{Event, size};
use super::section::Section;
use super::{CommitError, Limits};
use crate::object::Object;

#[derive(Debug)]
pub(super) struct State {
    limits: Limits,
    revision: u64,
    sections: BTreeMap<Arc<str>, Section>,
    serial: u64,
    /// Of which storage each remembered event is, oldest first.
    order: VecDeque<Arc<str>>,
    history_bytes: usize,
    object_bytes: usize,
    /// Before this revision nothing is known of a storage that has no section.
    floor: u64,
}

/// What is left to do after writes were applied, best without holding any lock.
pub(super) struct After {
    bells: Vec<watch::Sender<()>>,
    /// Freed here, since that takes its time.
    forgotten: Vec<Arc<Event>>,
    dropped: Vec<Section>,
}

impl After {
    /// Wakes those who watch.
    pub(super) fn wake(self) {
        drop((self.forgotten, self.dropped));
        for bell in &self.bells {
            bell.send_replace(());
        }
    }
}

impl State {
    pub(super) const fn new(limits: Limits) -> Self {
        Self {
            limits,
            revision: 1,
            sections: BTreeMap::new(),
            serial: 0,
            order: VecDeque::new(),
            history_bytes: 0,
            object_bytes: 0,
            floor: 1,
        }
    }

    /// A state without history.
    pub(super) fn loaded(limits: Limits, loaded: Loaded) -> Self {
        let mut state = Self::new(limits);
        state.revision = loaded.revision;
        state.floor = loaded.revision;
        for (storage, path, object) in loaded.objects {
            let object = Arc::new(object);
            state.object_bytes += size(&object);
            state.section_or_new(&storage).load(path, object);
        }
        state
    }

    pub(super) const fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn section(&self, storage: &str) -> Option<&Section> {
        self.sections.get(storage)
    }

    /// The oldest revision after which all events of a storage are remembered.
    pub(super) fn floor(&self, storage: &str) -> u64 {
        self.section(storage).map_or(self.floor, Section::floor)
    }

    /// The section of a storage, made when there is none.
    pub(super) fn section_or_new(&mut self, storage: &Arc<str>) -> &mut Section {
        self.sections.entry(Arc::clone(storage)).or_insert_with(|| {
            self.serial += 1;
            Section::new(self.floor, self.serial)
        })
    }

    /// How many bytes all objects take, nearly.
    pub(super) const fn object_bytes(&self) -> usize {
        self.object_bytes
    }

    /// All objects as they are now.
    pub(super) fn everything(&self) -> Everything {
        let mut objects = Vec::new();
        for (storage, section) in &self.sections {
            let of_section = section.range("", None);
            objects.extend(
                of_section.map(|(path, object)| {
                    (Arc::clone(storage), Arc::clone(path), Arc::clone(object))
                }),
            );
        }
        Everything { revision: self.revision, objects }
    }

    #[cfg(test)]
    pub(super) fn storages(&self) -> Vec<Arc<str>> {
        let used = self.sections.iter().filter(|(_, section)| !section.is_empty());
        used.map(|(name, _)| Arc::clone(name)).collect()
    }

    /// Whether a write may be done now, and what it then is.
    pub(super) fn decide(
        &self,
        key: &Key,
        expect: Expect,
        change: Change,
    ) -> Result<Event, CommitError> {
        let path = key.path();
        let section = self.section(&key.storage);
        let current = section.and_then(|section| section.get(&path));
        change::check(current, expect, &change)?;
        self.check_room(current, &change, 0)?;
        let path =
            section.and_then(|section| section.shared_path(&path)).unwrap_or_else(|| path.into());
        Ok(change::event(current, path, change, self.revision + 1))
    }

    pub(super) fn decide_drop(&self, storage: &str) -> Option<Write> {
        let (storage, _) = self.sections.get_key_value(storage)?;
        Some(Write { storage: Arc::clone(storage), deed: Deed::Drop(self.revision + 1) })
    }

    /// Refuses what would make the objects larger than they may be, `coming` bytes being on the
    /// way. Answers by how much they grow.
    pub(super) fn check_room(
        &self,
        current: Option<&Object>,
        change: &Change,
        coming: usize,
    ) -> Result<usize, CommitError> {
        let Change::Put(draft) = change else {
            return Ok(0);
        };
        let had = current.map_or(0, |object| object.text.len());
        let grown = draft.len().saturating_sub(had);
        let limit = self.limits.object_bytes;
        if grown == 0 || self.object_bytes + coming + grown <= limit {
            return Ok(grown);
        }
        let (held, limit) = (self.object_bytes >> 20, limit >> 20);
        Err(CommitError::Full(format!(
            "all objects together take {held} MiB of {limit} MiB; delete some"
        )))
    }

    /// Does what was decided.
    pub(super) fn apply(&mut self, writes: Vec<Write>) -> After {
        let mut after = After { bells: Vec::new(), forgotten: Vec::new(), dropped: Vec::new() };
        let mut rung: Vec<Arc<str>> = Vec::new();
        for write in writes {
            self.revision = self.revision.max(write.revision());
            match write.deed {
                Deed::Event(event) => self.apply_event(&write.storage, event),
                Deed::Drop(_) => {
                    if let Some(section) = self.drop_section(&write.storage) {
                        after.bells.push(section.bell().clone());
                        after.dropped.push(section);
                    }
                }
            }
            if !rung.contains(&write.storage) {
                rung.push(write.storage);
            }
        }
        self.forget(&mut after.forgotten);
        let sections = rung.iter().filter_map(|storage| self.sections.get(storage));
        after.bells.extend(sections.map(|section| section.bell().clone()));
        after
    }

    fn apply_event(&mut self, storage: &Arc<str>, event: Arc<Event>) {
        self.history_bytes += event.cost();
        if !event.deleted {
            self.object_bytes += size(&event.object);
        }
        let previous = event.previous.as_ref().map_or(0, size);
        self.object_bytes = self.object_bytes.saturating_sub(previous);
        self.section_or_new(storage).apply(event);
        // The name as it is already shared.
        let known = self.sections.get_key_value(storage).map_or(storage, |(name, _)| name);
        self.order.push_back(Arc::clone(known));
    }

    fn drop_section(&mut self, storage: &str) -> Option<Section> {
        let section = self.sections.remove(storage)?;
        self.order.retain(|name| **name != *storage);
        self.history_bytes = self.history_bytes.saturating_sub(section.history().1);
        self.object_bytes = self.object_bytes.saturating_sub(section.object_bytes());
        self.floor = self.revision;
        Some(section)
    }

    /// Keeps the history within its bounds.
    fn forget(&mut self, forgotten: &mut Vec<Arc<Event>>) {
        while self.order.len() > self.limits.history_events
            || self.history_bytes > self.limits.history_bytes
        {
            let Some(storage) = self.order.pop_front() else {
                return;
            };
            let Some(event) = self.sections.get_mut(&storage).and_then(Section::forget) else {
                continue;
            };
            self.history_bytes = self.history_bytes.saturating_sub(event.cost());
            forgotten.push(event);
        }
    }
}
