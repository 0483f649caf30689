//! In which order the elements of a merged list stand: those that the patch names in its order, the
//! others in theirs, and both together as near to the live order as that allows.
//!
//! Must not know how elements are merged.

use std::collections::BTreeMap;

use serde_json::Value;

use super::lists::no_key;
use super::strategic::{Outcome, wrong_type};

/// The key of an element, when it is an object that has one.
pub(super) fn element_key<'a>(item: &'a Value, merge_key: &str) -> Outcome<&'a Value> {
    let members = item.as_object().ok_or_else(|| wrong_type("map[string]interface {}", item))?;
    members.get(merge_key).ok_or_else(|| no_key(members, merge_key))
}

/// The places of a list's elements, by key.
pub(super) struct Order<'a> {
    merge_key: &'a str,
    places: BTreeMap<String, usize>,
}

impl<'a> Order<'a> {
    /// The order of a list; of elements with the same key the first counts. Without a merge key the
    /// elements are their own keys.
    pub(super) fn of(list: &[Value], merge_key: &'a str) -> Self {
        let mut order = Self { merge_key, places: BTreeMap::new() };
        for (place, item) in list.iter().enumerate() {
            let key = order.key(item);
            order.places.entry(key).or_insert(place);
        }
        order
    }

    fn key(&self, item: &Value) -> String {
        if self.merge_key.is_empty() {
            item.to_string()
        } else {
            item.get(self.merge_key).unwrap_or(&Value::Null).to_string()
        }
    }

    fn place(&self, item: &Value) -> Option<usize> {
        self.places.get(&self.key(item)).copied()
    }

    /// The elements that stand in this list, and the others.
    pub(super) fn partition(&self, items: Vec<Value>) -> (Vec<Value>, Vec<Value>) {
        items.into_iter().partition(|item| self.place(item).is_some())
    }

    fn sort(&self, items: Vec<Value>) -> Vec<Value> {
        let mut known = Vec::with_capacity(items.len());
        let mut unknown = Vec::new();
        for item in items {
            match self.place(&item) {
                Some(place) => known.push((place, item)),
                None => unknown.push(item),
            }
        }
        known.sort_by_key(|(place, _)| *place);
        let known = known.into_iter().map(|(_, item)| item);
        // What has no place comes last, and its last first: where the API server's sort leaves it.
        known.chain(unknown.into_iter().rev()).collect()
    }
}

/// One list of those that the patch names and the others: each in its own order, and where the live
/// list has both, the one that came first there goes first.
pub(super) fn interleave(
    named: Vec<Value>,
    others: Vec<Value>,
    by_patch: &Order<'_>,
    by_original: &Order<'_>,
) -> Vec<Value> {
    let mut named = by_patch.sort(named).into_iter().peekable();
    let mut others = by_original.sort(others).into_iter().peekable();
    let mut all = Vec::with_capacity(named.len() + others.len());
    loop {
        let other_first = match (others.peek(), named.peek()) {
            (None, None) => return all,
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some(other), Some(name)) => {
                match (by_original.place(other), by_original.place(name)) {
                    (Some(other), Some(name)) => other < name,
                    _ => false,
                }
            }
        };
        all.extend(if other_first { others.next() } else { named.next() });
    }
}
