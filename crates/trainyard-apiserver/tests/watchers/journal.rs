//! Everything that was written, as the writers were told, and what a watcher must make of it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that nobody had before.
pub(crate) fn serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

pub(crate) type Key = (String, String);
/// Objects and their revisions.
pub(crate) type Contents = BTreeMap<Key, u64>;

#[derive(Debug, Clone)]
struct Write {
    key: Key,
    /// None: deleted.
    colour: Option<&'static str>,
}

/// What a watcher is to be told of one write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) revision: u64,
    pub(crate) key: Key,
    pub(crate) gone: bool,
}

/// All writes by their revisions.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    writes: Mutex<BTreeMap<u64, Write>>,
}

impl Journal {
    fn add(&self, revision: u64, write: Write) {
        let before = self.writes.lock().unwrap().insert(revision, write);
        assert!(before.is_none(), "revision {revision} was given twice");
    }

    pub(crate) fn put(&self, revision: u64, namespace: &str, name: &str, colour: &'static str) {
        let key = (namespace.to_owned(), name.to_owned());
        self.add(revision, Write { key, colour: Some(colour) });
    }

    pub(crate) fn delete(&self, revision: u64, namespace: &str, name: &str) {
        self.add(revision, Write { key: (namespace.to_owned(), name.to_owned()), colour: None });
    }

    /// What a watcher of these objects is to be told, from the very first write on.
    pub(crate) fn told(&self, namespace: Option<&str>, colour: Option<&str>) -> Vec<Told> {
        let writes = self.writes.lock().unwrap();
        let mut shown: BTreeMap<&Key, bool> = BTreeMap::new();
        let mut told = Vec::new();
        for (revision, write) in &*writes {
            if namespace.is_some_and(|namespace| write.key.0 != namespace) {
                continue;
            }
            let is = write.colour.is_some_and(|has| colour.is_none_or(|wanted| has == wanted));
            let was = shown.insert(&write.key, is).unwrap_or(false);
            if is || was {
                told.push(Told { revision: *revision, key: write.key.clone(), gone: !is });
            }
        }
        told
    }
}

/// The objects after some of what was told.
pub(crate) fn contents(told: &[Told]) -> Contents {
    let mut contents = Contents::new();
    for one in told {
        if one.gone {
            contents.remove(&one.key);
        } else {
            contents.insert(one.key.clone(), one.revision);
        }
    }
    contents
}
