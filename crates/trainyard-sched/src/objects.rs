//! Small objects that scheduling looks at: priority classes and namespaces.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::meta::{Identity, Metadata};

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

/// A namespace: terms of pod affinity mean namespaces by their labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "NamespaceWire")]
pub struct Namespace {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its version; 0 when versions cannot be compared.
    pub version: u64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct NamespaceWire {
    metadata: Metadata,
}

impl From<NamespaceWire> for Namespace {
    fn from(NamespaceWire { metadata }: NamespaceWire) -> Self {
        let version = metadata.version();
        Self { name: metadata.name, uid: metadata.uid, version, labels: metadata.labels }
    }
}
