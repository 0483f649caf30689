//! Small objects that scheduling looks at: priority classes, claims and volumes.

use serde::Deserialize;

use crate::affinity::Terms;
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

/// A claim to a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Claim {
    metadata: Identity,
    spec: ClaimSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaimSpec {
    volume_name: String,
}

impl Claim {
    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> (String, String) {
        (self.metadata.namespace.clone(), self.metadata.name.clone())
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

    /// The volume that it is bound to; empty while it is not.
    #[must_use]
    pub fn volume(&self) -> &str {
        &self.spec.volume_name
    }
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Volume {
    metadata: Identity,
    spec: VolumeSpec,
}

impl Volume {
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

    /// The nodes from which it can be used; from everywhere if nothing is said.
    pub(crate) fn terms(&self) -> Option<&Terms> {
        self.spec.node_affinity.required.as_ref()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VolumeSpec {
    node_affinity: VolumeAffinity,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct VolumeAffinity {
    required: Option<Terms>,
}
