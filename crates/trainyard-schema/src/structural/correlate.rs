//! A value beside what it was before, as far as the schema lets the two be matched.
//!
//! Owns which part of an old object belongs to which part of the new one, and when the two count as
//! unchanged. Must not know what is checked.

use std::collections::HashMap;

use serde_json::Value;

use super::node::{ListType, Node};

/// A value and what it was before.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) new: &'a Value,
    pub(super) old: &'a Value,
    pub(super) node: &'a Node,
}

impl<'a> Pair<'a> {
    /// The same for a field; nothing when one of the two does not have it.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        Some(Self { new, old, node: self.node.child(name)? })
    }

    /// The same for elements; nothing when the list's elements have no identity.
    pub(super) fn elements(&self) -> Option<Elements<'a>> {
        let (Value::Array(new), Value::Array(old)) = (self.new, self.old) else {
            return None;
        };
        let node = self.node.items()?;
        let keys = list_keys(self.node)?;
        let mut by_key = HashMap::new();
        for item in old {
            if let Some(key) = key_of(keys, item) {
                by_key.entry(key).or_insert(item);
            }
        }
        Some(Elements { new, by_key, keys, node })
    }

    /// Whether nothing changed. An element of a keyed list may have moved.
    pub(super) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new
                        .keys()
                        .all(|name| self.field(name).is_some_and(|pair| pair.is_unchanged()))
            }
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                match self.elements() {
                    None => new == old,
                    Some(elements) => (0..new.len())
                        .all(|index| elements.at(index).is_some_and(|pair| pair.is_unchanged())),
                }
            }
            (new, old) => new == old,
        }
    }
}

/// The elements of a keyed list beside the old ones.
pub(super) struct Elements<'a> {
    new: &'a [Value],
    by_key: HashMap<String, &'a Value>,
    keys: &'a [Box<str>],
    node: &'a Node,
}

impl<'a> Elements<'a> {
    pub(super) fn at(&self, index: usize) -> Option<Pair<'a>> {
        let new = self.new.get(index)?;
        let old = self.by_key.get(&key_of(self.keys, new)?)?;
        Some(Pair { new, old, node: self.node })
    }
}

/// The keys of a keyed list.
fn list_keys(node: &Node) -> Option<&[Box<str>]> {
    let keys = &node.more()?.list_keys;
    (node.list_type == ListType::Map && !keys.is_empty()).then_some(keys.as_slice())
}

/// The values of the keys; nothing when one is missing or no scalar.
pub(super) fn key_of(keys: &[Box<str>], item: &Value) -> Option<String> {
    let mut text = String::new();
    for key in keys {
        match item.get(&**key)? {
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
            scalar => {
                text.push('\0');
                text.push_str(&scalar.to_string());
            }
        }
    }
    Some(text)
}
