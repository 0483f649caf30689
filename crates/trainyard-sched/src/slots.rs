//! Things by key and by number: looked up by key, passed around by number.
//!
//! Numbers are used again and depend on history, so nothing may be ordered by them.

use std::collections::BTreeMap;

/// Which slot.
pub(crate) type Id = usize;

/// Things with keys.
#[derive(Debug, Clone)]
pub(crate) struct Slots<K, V> {
    ids: BTreeMap<K, Id>,
    things: Vec<Option<V>>,
    free: Vec<Id>,
}

impl<K, V> Default for Slots<K, V> {
    fn default() -> Self {
        Self { ids: BTreeMap::new(), things: Vec::new(), free: Vec::new() }
    }
}

impl<K: Ord + Clone, V> Slots<K, V> {
    pub(crate) fn id(&self, key: &K) -> Option<Id> {
        self.ids.get(key).copied()
    }

    pub(crate) fn get(&self, id: Id) -> Option<&V> {
        self.things.get(id)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, id: Id) -> Option<&mut V> {
        self.things.get_mut(id)?.as_mut()
    }

    /// Puts a thing in; what had the key before is replaced.
    pub(crate) fn insert(&mut self, key: K, thing: V) -> Id {
        if let Some(id) = self.id(&key) {
            if let Some(place) = self.things.get_mut(id) {
                *place = Some(thing);
            }
            return id;
        }
        let id = self.free.pop().unwrap_or(self.things.len());
        if id == self.things.len() {
            self.things.push(Some(thing));
        } else if let Some(place) = self.things.get_mut(id) {
            *place = Some(thing);
        }
        self.ids.insert(key, id);
        id
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let id = self.ids.remove(key)?;
        self.free.push(id);
        self.things.get_mut(id)?.take()
    }

    /// All of them, by key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, Id, &V)> {
        self.ids.iter().filter_map(|(key, id)| Some((key, *id, self.get(*id)?)))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.ids.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_keys_keep_their_order() {
        let mut slots = Slots::default();
        let (b, _) = (slots.insert("b", 1), slots.insert("c", 2));
        assert_eq!(slots.remove(&"b"), Some(1));
        assert_eq!(slots.insert("a", 3), b);
        let seen: Vec<_> = slots.iter().map(|(key, _, thing)| (*key, *thing)).collect();
        assert_eq!(seen, [("a", 3), ("c", 2)]);
        assert_eq!((slots.id(&"b"), slots.insert("a", 4)), (None, b));
    }
}
