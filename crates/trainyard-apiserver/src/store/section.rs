//! One storage: its objects, its part of the history, and the bell for those who watch it.
//!
//! Must not know other storages or the revision counter.

use std::collections::btree_map::Range;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::watch;

use super::history::{Event, size};
use crate::object::Object;

#[derive(Debug)]
pub(super) struct Section {
    objects: BTreeMap<Arc<str>, Object>,
    events: VecDeque<Arc<Event>>,
    /// All events after this revision are remembered.
    floor: u64,
    bell: watch::Sender<()>,
    /// Tells it from another of the same name.
    serial: u64,
}

impl Section {
    /// An empty storage whose history before `floor` is unknown.
    pub(super) fn new(floor: u64, serial: u64) -> Self {
        let bell = watch::Sender::new(());
        Self { objects: BTreeMap::new(), events: VecDeque::new(), floor, bell, serial }
    }

    pub(super) fn get(&self, path: &str) -> Option<&Object> {
        self.objects.get(path)
    }

    /// The key as it is already shared, if the object exists.
    pub(super) fn shared_path(&self, path: &str) -> Option<Arc<str>> {
        self.objects.get_key_value(path).map(|(known, _)| Arc::clone(known))
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(super) const fn floor(&self) -> u64 {
        self.floor
    }

    pub(super) const fn serial(&self) -> u64 {
        self.serial
    }

    pub(super) const fn bell(&self) -> &watch::Sender<()> {
        &self.bell
    }

    /// How many bytes its objects take.
    pub(super) fn object_bytes(&self) -> usize {
        self.objects.values().map(size).sum()
    }

    /// How many events it remembers, and what they cost.
    pub(super) fn history(&self) -> (usize, usize) {
        (self.events.len(), self.events.iter().map(|event| event.cost()).sum())
    }

    /// The objects within bounds, in order.
    pub(super) fn range(&self, from: &str, to: Option<&str>) -> Range<'_, Arc<str>, Object> {
        // Bounds in the wrong order are an empty range here, and a panic in the map.
        let to = to.map_or(Bound::Unbounded, |to| Bound::Excluded(to.max(from)));
        self.objects.range::<str, _>((Bound::Included(from), to))
    }

    /// The remembered events after a revision, oldest first.
    pub(super) fn since(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Arc<Event>> {
        let start = self.events.partition_point(|event| event.revision <= revision);
        self.events.range(start..)
    }

    /// Puts an object in at opening, without an event.
    pub(super) fn load(&mut self, path: Arc<str>, object: Object) {
        self.objects.insert(path, object);
    }

    pub(super) fn apply(&mut self, event: Arc<Event>) {
        if event.deleted {
            self.objects.remove(&event.path);
        } else {
            self.objects.insert(Arc::clone(&event.path), Arc::clone(&event.object));
        }
        self.events.push_back(event);
    }

    /// Forgets the oldest event.
    pub(super) fn forget(&mut self) -> Option<Arc<Event>> {
        let event = self.events.pop_front()?;
        self.floor = event.revision;
        Some(event)
    }
}
