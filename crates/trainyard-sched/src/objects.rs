//! Small objects that scheduling looks at: priority classes, claims and volumes.

use serde::Deserialize;

use crate::affinity::Terms;

/// A priority class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PriorityClass {
    metadata: Named,
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
}

/// A claim to a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Claim {
    metadata: Named,
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
    metadata: Named,
    spec: VolumeSpec,
}

impl Volume {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.metadata.name
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

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Named {
    namespace: String,
    name: String,
}
