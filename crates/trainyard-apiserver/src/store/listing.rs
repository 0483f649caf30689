//! Lists: the objects of a storage in the order of their keys, now or at an older revision, in
//! pages.
//!
//! A state of the past is today's with the events since undone. Must not know selectors: a filter
//! is a question about one object.

use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::iter::Peekable;
use std::sync::Arc;

use super::change::parts;
use super::section::Section;
use super::{ListError, Shared};
use crate::object::{Object, Stored};

/// Whether an object of that namespace and name is wanted.
pub(crate) type Filter<'a> = dyn Fn(&str, &str, &Stored) -> bool + 'a;

/// What is asked of a list.
#[derive(Clone, Copy, Default)]
pub(crate) struct Query<'a> {
    /// Only objects of that namespace; all when empty or none is given.
    pub(crate) namespace: Option<&'a str>,
    /// The state at that revision; the newest otherwise.
    pub(crate) at: Option<u64>,
    /// Where to begin: [`Listing::next`] of the page before. It is what a continue token calls its
    /// start, relative to the namespace when one is given.
    pub(crate) start: Option<&'a str>,
    /// At most so many objects; zero for all.
    pub(crate) limit: usize,
    /// Only these.
    pub(crate) filter: Option<&'a Filter<'a>>,
}

/// A list, or a page of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The revision whose state this is.
    pub(crate) revision: u64,
    /// The objects in order.
    pub(crate) items: Vec<Object>,
    /// Where the next page begins, when there are objects left to look at.
    pub(crate) next: Option<String>,
    /// How many objects come after this page; only known without a filter.
    pub(crate) remaining: Option<u64>,
}

type Entry = (Arc<str>, Object);

pub(super) fn list(
    shared: &Shared,
    storage: &str,
    query: &Query<'_>,
) -> Result<Listing, ListError> {
    let state = shared.read();
    let current = state.revision();
    let revision = query.at.unwrap_or(current);
    if revision > current {
        return Err(ListError::Future { current });
    }
    let oldest = state.floor(storage);
    if revision < oldest {
        return Err(ListError::Compacted { oldest });
    }
    let Some(section) = state.section(storage) else {
        return Ok(Listing { revision, ..Listing::default() });
    };
    let namespace = query.namespace.filter(|namespace| !namespace.is_empty());
    let prefix = namespace.map(|namespace| [namespace, "/"].concat()).unwrap_or_default();
    let bounds = Bounds::new(&prefix, query.start);
    let mut entries = Merge::new(section, &bounds, undone(section, &bounds, revision));
    let limit = if query.limit == 0 { usize::MAX } else { query.limit };
    let Some(filter) = query.filter else {
        let mut last = None;
        let mut items = Vec::new();
        for (path, object) in entries.by_ref().take(limit) {
            items.push(Arc::clone(object));
            last = Some(path);
        }
        let left = if items.len() < limit { 0 } else { entries.count() };
        let next = last.filter(|_| left > 0).map(|path| following(path, &prefix));
        let remaining = next.as_ref().map(|_| left as u64);
        return Ok(Listing { revision, items, next, remaining });
    };
    // Selectors may be slow: they are asked after the lock is gone.
    let entries: Vec<Entry> =
        entries.map(|(path, object)| (Arc::clone(path), Arc::clone(object))).collect();
    drop(state);
    Ok(filtered(revision, entries, &prefix, limit, filter))
}

fn filtered(
    revision: u64,
    entries: Vec<Entry>,
    prefix: &str,
    limit: usize,
    filter: &Filter<'_>,
) -> Listing {
    let mut items = Vec::new();
    let mut entries = entries.into_iter();
    for (path, object) in entries.by_ref() {
        let (namespace, name) = parts(&path);
        if !filter(namespace, name, &object) {
            continue;
        }
        items.push(object);
        if items.len() == limit {
            let next = (entries.len() > 0).then(|| following(&path, prefix));
            return Listing { revision, items, next, remaining: None };
        }
    }
    Listing { revision, items, next: None, remaining: None }
}

/// The first possible key after a path, relative to what all keys begin with.
fn following(path: &str, prefix: &str) -> String {
    let mut next = path.strip_prefix(prefix).unwrap_or(path).to_owned();
    next.push('\0');
    next
}

/// Which keys a list looks at.
struct Bounds {
    from: String,
    /// The first text after all that begin with the prefix.
    to: Option<String>,
}

impl Bounds {
    fn new(prefix: &str, start: Option<&str>) -> Self {
        let from = [prefix, start.unwrap_or_default()].concat();
        // The sign after `/`.
        let to = prefix.strip_suffix('/').map(|namespace| [namespace, "0"].concat());
        Self { from, to }
    }

    fn contains(&self, path: &str) -> bool {
        *path >= *self.from && self.to.as_deref().is_none_or(|to| path < to)
    }
}

/// What was under a key at an older revision.
type Past<'a> = BTreeMap<&'a Arc<str>, Option<&'a Object>>;

/// What was at that revision under each key that was written since.
fn undone<'a>(section: &'a Section, bounds: &Bounds, revision: u64) -> Past<'a> {
    let mut past = Past::new();
    // The newest first, so that the oldest has the last word.
    for event in section.since(revision).rev().filter(|event| bounds.contains(&event.path)) {
        past.insert(&event.path, event.previous.as_ref());
    }
    past
}

/// The objects of today and of the past in one order, the past having precedence.
struct Merge<'a> {
    today: Peekable<btree_map::Range<'a, Arc<str>, Object>>,
    past: Peekable<btree_map::IntoIter<&'a Arc<str>, Option<&'a Object>>>,
}

impl<'a> Merge<'a> {
    fn new(section: &'a Section, bounds: &Bounds, past: Past<'a>) -> Self {
        let today = section.range(&bounds.from, bounds.to.as_deref()).peekable();
        Self { today, past: past.into_iter().peekable() }
    }
}

impl<'a> Iterator for Merge<'a> {
    type Item = (&'a Arc<str>, &'a Object);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let Some((was, _)) = self.past.peek() else {
                return self.today.next();
            };
            match self.today.peek().map(|(is, _)| is.cmp(was)) {
                Some(Ordering::Less) => return self.today.next(),
                Some(Ordering::Equal) => {
                    self.today.next();
                }
                Some(Ordering::Greater) | None => {}
            }
            if let Some((path, Some(object))) = self.past.next() {
                return Some((path, object));
            }
        }
    }
}
