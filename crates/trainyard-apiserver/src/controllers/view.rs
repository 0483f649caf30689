//! What the controllers read of any object: its metadata, in small.
//!
//! Everything is optional, so that an object of an unusual shape is read as far as it goes. Must not
//! know kinds.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// An object's metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Meta {
    pub(super) name: String,
    pub(super) namespace: String,
    pub(super) uid: String,
    pub(super) resource_version: String,
    pub(super) creation_timestamp: Option<String>,
    pub(super) deletion_timestamp: Option<String>,
    pub(super) deletion_grace_period_seconds: Option<i64>,
    pub(super) generation: u64,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) annotations: BTreeMap<String, String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) finalizers: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) owner_references: Vec<Owner>,
}

impl Meta {
    /// Whether its deletion has been asked for.
    pub(super) fn is_deleting(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Whether a finalizer is on it.
    pub(super) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }

    /// Namespace and name.
    pub(super) fn key(&self) -> Key {
        Key { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

/// A reference to an owner.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Owner {
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) uid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) controller: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) block_owner_deletion: Option<bool>,
}

/// An object of one kind: its namespace and name.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl std::fmt::Display for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}", self.namespace, self.name)
    }
}

/// An object of which only the metadata is wanted.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Bare {
    pub(super) metadata: Meta,
}

/// Reads a list or map that some write as `null` when it is empty.
pub(super) fn null_is_empty<'de, D, T>(reader: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::deserialize(reader)?.unwrap_or_default())
}

/// What has metadata.
pub(super) trait HasMeta {
    /// The metadata.
    fn meta(&self) -> &Meta;
}

impl HasMeta for Bare {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_empty() {
        let bare: Bare = serde_json::from_str(r#"{"metadata": {"name": "a"}, "spec": 3}"#).unwrap();
        assert_eq!(bare.metadata.key().to_string(), "/a");
        assert!(!bare.metadata.is_deleting());
        let null =
            r#"{"metadata": {"labels": null, "finalizers": null, "deletionTimestamp": null}}"#;
        let bare: Bare = serde_json::from_str(null).unwrap();
        assert_eq!(bare.metadata, Meta::default());
    }
}
