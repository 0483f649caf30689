//! One change as watches see it, and what remembering it costs.
//!
//! Must not know who watches.

use std::sync::Arc;

use super::change::parts;
use crate::object::Object;

/// One change of one object. Shared by all who watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    /// The revision of the change.
    pub(crate) revision: u64,
    pub(super) path: Arc<str>,
    /// Whether the object went.
    pub(crate) deleted: bool,
    /// The object as written; of one that went its last state, at the deletion's revision.
    pub(crate) object: Object,
    /// What was there before.
    pub(crate) previous: Option<Object>,
}

impl Event {
    /// The object's namespace; empty for cluster-scoped kinds.
    pub(crate) fn namespace(&self) -> &str {
        parts(&self.path).0
    }

    /// The object's name.
    pub(crate) fn name(&self) -> &str {
        parts(&self.path).1
    }

    /// How many bytes it keeps alive that nothing else does: the text it replaced, and the last
    /// state of an object that went. (The text it brought is the object's, and later the next
    /// event's.)
    pub(super) fn cost(&self) -> usize {
        const ITSELF: usize = 128;
        let previous = self.previous.as_ref().map_or(0, size);
        let last = if self.deleted { size(&self.object) } else { 0 };
        ITSELF + previous + last
    }
}

/// How many bytes an object takes in memory, nearly.
pub(super) fn size(object: &Object) -> usize {
    const ITSELF: usize = 160;
    const PAIR: usize = 96;
    let pairs = object.meta.labels.len() + object.meta.fields.len();
    object.text.len() + ITSELF + PAIR * pairs
}
