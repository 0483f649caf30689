//! What a scheduler is told once.

use std::collections::BTreeSet;

/// Settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The names that pods call this scheduler by.
    pub schedulers: BTreeSet<String>,
    /// After so many seconds of waiting a group goes first within its share, and nodes are kept
    /// for it.
    pub reserve_after: i64,
    /// After so many seconds of waiting a group goes before everything, share or not, and nothing
    /// that would delay it is started.
    pub overdue_after: i64,
    /// Groups are let into queues until so many hundredths of the cluster are spoken for.
    pub overcommit: i64,
    /// Whether claims and volumes are told of; otherwise they do not count.
    pub knows_volumes: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            schedulers: BTreeSet::new(),
            reserve_after: 60,
            overdue_after: 600,
            overcommit: 120,
            knows_volumes: false,
        }
    }
}
