//! The metadata of an object, as far as scheduling reads it: one reader for all kinds.
//!
//! Must not know what the objects mean.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::time::seconds;

/// Metadata as written.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Metadata {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    resource_version: String,
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) owner_references: Vec<Owner>,
}

/// An owner of an object.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Owner {
    uid: String,
    controller: bool,
}

impl Owner {
    /// Its identity, if it is the one that controls the object.
    pub(crate) fn controller(self) -> Option<String> {
        self.controller.then_some(self.uid)
    }
}

impl Metadata {
    /// Its version; 0 when versions cannot be compared.
    pub(crate) fn version(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }

    /// When it was made, in seconds since 1970; 0 when that is not known.
    pub(crate) fn created(&self) -> i64 {
        seconds(self.creation_timestamp.as_deref())
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// What an annotation, or else a label, says.
    pub(crate) fn marked(&self, key: &str) -> Option<&String> {
        self.annotations.get(key).or_else(|| self.labels.get(key))
    }
}

/// What is kept of it for small objects: where and which they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Metadata")]
pub(crate) struct Identity {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: u64,
}

impl From<Metadata> for Identity {
    fn from(metadata: Metadata) -> Self {
        let version = metadata.version();
        Self { namespace: metadata.namespace, name: metadata.name, uid: metadata.uid, version }
    }
}
