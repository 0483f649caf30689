//! The table of kinds as it is now: the built-in rows and those that definitions added.
//!
//! A snapshot is shared by requests and replaced as a whole. Must not know verbs.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use crate::kind::Kind;

/// The rows at one moment.
#[derive(Default)]
pub(crate) struct Table {
    rows: BTreeMap<(String, String), Arc<Kind>>,
    /// Counted up with every change, for caches of what is made from the rows.
    pub(crate) edition: u64,
}

impl Table {
    /// A row by group and plural name.
    pub(crate) fn find(&self, group: &str, plural: &str) -> Option<&Arc<Kind>> {
        self.rows.get(&(group.to_owned(), plural.to_owned()))
    }

    /// All rows, ordered by group and plural name.
    pub(crate) fn rows(&self) -> Vec<Arc<Kind>> {
        self.rows.values().cloned().collect()
    }
}

/// The present table.
pub(crate) struct Registry {
    built_in: Vec<Arc<Kind>>,
    table: RwLock<Arc<Table>>,
}

impl Registry {
    /// The built-in rows.
    pub(crate) fn new(built_in: Vec<Kind>) -> Self {
        let built_in: Vec<_> = built_in.into_iter().map(Arc::new).collect();
        let registry = Self { built_in, table: RwLock::default() };
        registry.define(Vec::new());
        registry
    }

    /// The rows as they are now.
    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces all rows that came by definitions. A built-in row is never displaced.
    pub(crate) fn define(&self, defined: Vec<Kind>) {
        let defined = defined.into_iter().map(Arc::new);
        let rows = defined
            .chain(self.built_in.iter().cloned())
            .map(|row| ((row.group.clone(), row.plural.clone()), row))
            .collect();
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        let edition = table.edition + 1;
        *table = Arc::new(Table { rows, edition });
    }
}
