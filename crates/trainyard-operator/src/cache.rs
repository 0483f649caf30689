//! What is known of the objects behind the API server.
//!
//! Filled from watches, and at once from the answers to our own writes, so that whoever reads it
//! never sees a state older than what we wrote ourselves. A plain data structure: it must not know
//! requests, time or what the objects mean.

use std::{collections::BTreeMap, sync::Arc};

use trainyard_core::{
    Aid, PodView, ServiceView,
    aid::{ClassFacts, CommandFacts, ConfigMapFacts, Facts, GroupFacts, Presence},
};

use crate::nodes::LostNodes;

/// What the cache asks of an object.
pub(crate) trait Object {
    /// Its identity.
    fn uid(&self) -> &str;
    /// Its name.
    fn name(&self) -> &str;
    /// Its version; 0 when versions cannot be compared.
    fn version(&self) -> u64;
    /// UID of the controller that owns it.
    fn owner(&self) -> Option<&str>;
    /// Whether it differs from an older version only in ways that matter to nobody.
    fn same_facts(&mut self, older: &Self) -> bool;
}

/// An object before and after something happened to it.
#[derive(Debug)]
pub(crate) struct Change<T> {
    pub(crate) before: Option<Arc<T>>,
    pub(crate) after: Option<Arc<T>>,
}

/// Objects of one kind, by identity and by owner.
#[derive(Debug)]
pub(crate) struct Store<T> {
    by_uid: BTreeMap<Arc<str>, Arc<T>>,
    /// In the order of their names.
    by_owner: BTreeMap<Arc<str>, Vec<Arc<T>>>,
    /// Objects that we deleted for good while the watch may still tell of them, with the version
    /// that was held last.
    deleted: BTreeMap<Arc<str>, u64>,
    /// The newest version that the watch has told of.
    told: u64,
    /// How many objects there were when [`Store::growth`] was last asked.
    known: usize,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self {
            by_uid: BTreeMap::new(),
            by_owner: BTreeMap::new(),
            deleted: BTreeMap::new(),
            told: 0,
            known: 0,
        }
    }
}

impl<T: Object> Store<T> {
    /// The object of that identity.
    pub(crate) fn get(&self, uid: &str) -> Option<&Arc<T>> {
        self.by_uid.get(uid)
    }

    /// Objects of that owner, in the order of their names.
    pub(crate) fn owned_by(&self, owner: &str) -> &[Arc<T>] {
        self.by_owner.get(owner).map_or(&[], Vec::as_slice)
    }

    /// All objects, in the order of their identities.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<T>> {
        self.by_uid.values()
    }

    /// How many objects there are more than when this was last asked.
    pub(crate) fn growth(&mut self) -> i64 {
        let before = std::mem::replace(&mut self.known, self.by_uid.len());
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        number(self.known) - number(before)
    }

    /// The watch tells of an object. Gives back what changed, unless it matters to nobody.
    pub(crate) fn see(&mut self, object: T) -> Option<Change<T>> {
        self.told = self.told.max(object.version());
        if self.deleted.contains_key(object.uid()) {
            return None;
        }
        self.hold(object)
    }

    /// The watch tells that an object is gone, or no longer selected, and what it was at last.
    pub(crate) fn see_gone(
        &mut self,
        uid: &str,
        version: u64,
        last: Option<T>,
    ) -> Option<Change<T>> {
        self.told = self.told.max(version);
        self.deleted.remove(uid);
        let held = self.by_uid.get(uid)?;
        if version != 0 && version < held.version() {
            return None;
        }
        let held = self.remove(uid)?;
        Some(Change { before: Some(last.map_or(held, Arc::new)), after: None })
    }

    /// The answer to a write or read of our own. An answer can come after the watch has told of
    /// that version and then of the end: what is not held any more is gone, and the watch will not
    /// say so again. What we took for deleted ourselves the watch has yet to speak of.
    pub(crate) fn own(&mut self, object: T) {
        let is_old = object.version() != 0 && object.version() <= self.told;
        let was_deleted = self.deleted.remove(object.uid()).is_some();
        if is_old && !was_deleted && !self.by_uid.contains_key(object.uid()) {
            return;
        }
        self.hold(object);
    }

    /// We learnt from an answer that an object is gone. Gives it back if it was held.
    pub(crate) fn own_gone(&mut self, uid: &str) -> Option<Arc<T>> {
        let before = self.remove(uid)?;
        self.deleted.insert(uid.into(), before.version());
        Some(before)
    }

    /// Everything there was at a version. `unreadable` objects exist, but nothing is known of them.
    pub(crate) fn relist(
        &mut self,
        objects: Vec<T>,
        unreadable: &[String],
        version: u64,
    ) -> Vec<Change<T>> {
        let mut listed: Vec<Box<str>> = unreadable.iter().map(|uid| uid.as_str().into()).collect();
        listed.extend(objects.iter().map(|object| object.uid().into()));
        listed.sort_unstable();
        let is_listed = |uid: &str| listed.binary_search_by(|other| (**other).cmp(uid)).is_ok();
        // An object that existed at a version up to the list's and is not listed was deleted
        // before the list was made. What is newer than the list says nothing about the list.
        let past = |held: u64| version == 0 || held <= version;
        let absent: Vec<Arc<str>> = self
            .by_uid
            .iter()
            .filter(|(uid, held)| !is_listed(uid) && past(held.version()))
            .map(|(uid, _)| Arc::clone(uid))
            .collect();
        self.deleted.retain(|uid, held| is_listed(uid) || !past(*held));
        // A server that was set back counts from an older version again.
        self.told = version;
        let mut changes: Vec<Change<T>> = absent
            .iter()
            .filter_map(|uid| self.remove(uid))
            .map(|before| Change { before: Some(before), after: None })
            .collect();
        changes.extend(objects.into_iter().filter_map(|object| self.see(object)));
        changes
    }

    fn hold(&mut self, mut object: T) -> Option<Change<T>> {
        let held = self.by_uid.get(object.uid());
        if held.is_some_and(|held| object.version() != 0 && object.version() <= held.version()) {
            return None;
        }
        let same = held.is_some_and(|held| object.same_facts(held));
        let uid: Arc<str> = self
            .by_uid
            .get_key_value(object.uid())
            .map_or_else(|| object.uid().into(), |(k, _)| Arc::clone(k));
        let before = self.remove(&uid);
        let after = Arc::new(object);
        if let Some(owner) = after.owner() {
            let group = match self.by_owner.get_mut(owner) {
                Some(group) => group,
                None => self.by_owner.entry(owner.into()).or_default(),
            };
            let place = group.partition_point(|other| other.name() < after.name());
            group.insert(place, Arc::clone(&after));
        }
        self.by_uid.insert(uid, Arc::clone(&after));
        (!same).then_some(Change { before, after: Some(after) })
    }

    fn remove(&mut self, uid: &str) -> Option<Arc<T>> {
        let object = self.by_uid.remove(uid)?;
        if let Some(owner) = object.owner()
            && let Some(group) = self.by_owner.get_mut(owner)
        {
            group.retain(|other| other.uid() != uid);
            if group.is_empty() {
                self.by_owner.remove(owner);
            }
        }
        Some(object)
    }
}

/// Everything that is known.
#[derive(Debug)]
pub(crate) struct Cache<J> {
    pub(crate) jobs: Store<J>,
    pub(crate) pods: Store<PodView>,
    pub(crate) services: Store<ServiceView>,
    pub(crate) config_maps: Store<Aid<ConfigMapFacts>>,
    pub(crate) policies: Store<Aid<Presence>>,
    pub(crate) claims: Store<Aid<Presence>>,
    pub(crate) groups: Store<Aid<GroupFacts>>,
    pub(crate) commands: Store<Aid<CommandFacts>>,
    pub(crate) classes: Store<Aid<ClassFacts>>,
    pub(crate) nodes: LostNodes,
}

impl<J> Default for Cache<J> {
    fn default() -> Self {
        Self {
            jobs: Store::default(),
            pods: Store::default(),
            services: Store::default(),
            config_maps: Store::default(),
            policies: Store::default(),
            claims: Store::default(),
            groups: Store::default(),
            commands: Store::default(),
            classes: Store::default(),
            nodes: LostNodes::default(),
        }
    }
}

impl Object for PodView {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    fn same_facts(&mut self, older: &Self) -> bool {
        let version = std::mem::replace(&mut self.version, older.version);
        let same = self == older;
        self.version = version;
        same
    }
}

impl Object for ServiceView {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    fn same_facts(&mut self, older: &Self) -> bool {
        let version = std::mem::replace(&mut self.version, older.version);
        let same = self == older;
        self.version = version;
        same
    }
}

impl<F: Facts> Object for Aid<F> {
    fn uid(&self) -> &str {
        &self.uid
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u64 {
        self.version
    }

    fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    fn same_facts(&mut self, older: &Self) -> bool {
        let version = std::mem::replace(&mut self.version, older.version);
        let same = self == older;
        self.version = version;
        same
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
