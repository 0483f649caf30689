//! Pods that are decided together: a gang, or one pod alone.

use crate::{Gang, Pod, PodName};

/// What waits for one decision.
#[derive(Debug)]
pub(crate) struct Group<'s> {
    pub(crate) gang: Option<(&'s Gang, usize)>,
    /// Members that wait for a node.
    pub(crate) waiting: Vec<&'s Pod>,
    /// Members that exist, waiting or not.
    pub(crate) present: usize,
}

impl Group<'_> {
    /// How many members are still to be made.
    pub(crate) fn missing(&self) -> usize {
        self.gang.map_or(0, |(_, size)| size.saturating_sub(self.present))
    }

    /// The order of decisions: higher priority first, then the older, then by name.
    pub(crate) fn rank(&self) -> (i64, &str, &PodName) {
        static NOBODY: PodName = PodName { namespace: String::new(), name: String::new() };
        let priority = self.waiting.iter().map(|pod| pod.priority).max().unwrap_or(0);
        let oldest = self.waiting.iter().map(|pod| pod.created.as_str()).min().unwrap_or("");
        let first = self.waiting.iter().map(|pod| &pod.key).min().unwrap_or(&NOBODY);
        (-priority, oldest, first)
    }
}
