//! Small objects that scheduling looks at: priority classes.

use serde::Deserialize;

use crate::meta::Identity;

/// A priority class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PriorityClass {
    metadata: Identity,
    /// Its worth.
    pub value: i64,
    /// Whether it counts for those that name none.
    pub global_default: bool,
}

impl PriorityClass {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Its identity.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// Its version; 0 when versions cannot be compared.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.metadata.version
    }
}
