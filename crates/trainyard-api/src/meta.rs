//! The part of object metadata that decisions need.
//!
//! Everything else, above all `managedFields` and annotations, is skipped while reading and never
//! held in memory. It must not grow a field that no decision uses.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;

/// Metadata of an object, reduced to what decisions read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Meta {
    /// Name of the object.
    pub name: String,
    /// Namespace of the object; empty for cluster-scoped ones.
    pub namespace: String,
    /// Identity that survives neither deletion nor re-creation under the same name.
    pub uid: String,
    /// Version of the object, as the API server wrote it.
    pub resource_version: String,
    /// Generation of the specification; the API server raises it when `spec` changes.
    pub generation: i64,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Owners.
    pub owner_references: Vec<OwnerRef>,
    /// When the object was created.
    pub creation_timestamp: Option<Timestamp>,
    /// When the object is to be gone: the time of the deletion request plus its grace period.
    pub deletion_timestamp: Option<Timestamp>,
    /// Grace period of the deletion request.
    pub deletion_grace_period_seconds: Option<i64>,
}

/// One owner of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct OwnerRef {
    /// API group and version of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner.
    pub name: String,
    /// Identity of the owner.
    pub uid: String,
    /// Whether this owner is the managing controller.
    pub controller: Option<bool>,
}

impl Meta {
    /// The UID of the controller that owns this object, if there is one.
    #[must_use]
    pub fn controller_uid(&self) -> Option<&str> {
        self.owner_references
            .iter()
            .find(|owner| owner.controller == Some(true))
            .map(|owner| owner.uid.as_str())
    }

    /// The version as a number, for comparing two versions of one resource; 0 when it is opaque.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.resource_version.parse().unwrap_or(0)
    }

    /// Whether deletion of the object has been asked for.
    #[must_use]
    pub fn is_terminating(&self) -> bool {
        self.deletion_timestamp.is_some()
    }
}
