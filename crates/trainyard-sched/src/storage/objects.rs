//! The objects of storage that scheduling looks at, as far as it reads them: claims and volumes.
//!
//! Owns reading them and what follows from one of them alone. The objects of drivers are in
//! `drivers`.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ClaimKey, Disk, InTree};
use crate::affinity::Terms;
use crate::meta::{Metadata, Owner};
use crate::selector::Selector;

const BETA_CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
/// The node that a claim is provisioned for.
pub(crate) const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";
const ONE_POD: &str = "ReadWriteOncePod";
const MANY_NODES: [&str; 2] = ["ReadWriteMany", "ReadOnlyMany"];
const FILESYSTEM: &str = "Filesystem";

/// A claim to a volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "ClaimWire")]
pub struct Claim {
    key: ClaimKey,
    uid: String,
    version: u64,
    volume: String,
    is_complete: bool,
    pub(crate) class: String,
    /// The node that it is to be provisioned for.
    pub(crate) selected: Option<String>,
    modes: Vec<String>,
    mode: String,
    /// How much it asks for, in bytes.
    pub(crate) size: Option<i64>,
    selector: Option<Selector>,
    attributes: String,
    pub(crate) is_lost: bool,
    pub(crate) is_leaving: bool,
    /// The pod that it was made for.
    pub(crate) owner: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ClaimWire {
    metadata: Metadata,
    spec: ClaimSpec,
    status: Phase,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClaimSpec {
    volume_name: String,
    storage_class_name: Option<String>,
    access_modes: Vec<String>,
    volume_mode: Option<String>,
    volume_attributes_class_name: Option<String>,
    selector: Option<Selector>,
    resources: Requests,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Requests {
    requests: BTreeMap<String, String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Phase {
    phase: String,
}

/// So many bytes, rounded up.
pub(super) fn bytes(written: &str) -> Option<i64> {
    trainyard_schema::quantity::parse(written).ok().map(trainyard_schema::quantity::Quantity::value)
}

fn storage(written: &BTreeMap<String, String>) -> Option<i64> {
    bytes(written.get("storage")?)
}

impl From<ClaimWire> for Claim {
    fn from(wire: ClaimWire) -> Self {
        let ClaimWire { mut metadata, spec, status } = wire;
        let annotated = metadata.annotations.remove(BETA_CLASS);
        Self {
            version: metadata.version(),
            is_leaving: metadata.is_leaving(),
            is_complete: metadata.annotations.contains_key(BIND_COMPLETED),
            selected: metadata.annotations.remove(SELECTED_NODE),
            owner: metadata.owner_references.into_iter().find_map(Owner::controller),
            key: (metadata.namespace, metadata.name),
            uid: metadata.uid,
            volume: spec.volume_name,
            class: annotated.or(spec.storage_class_name).unwrap_or_default(),
            modes: spec.access_modes,
            mode: spec.volume_mode.unwrap_or_else(|| FILESYSTEM.to_owned()),
            size: storage(&spec.resources.requests),
            selector: spec.selector,
            attributes: spec.volume_attributes_class_name.unwrap_or_default(),
            is_lost: status.phase == "Lost",
        }
    }
}

impl Claim {
    /// Namespace and name.
    #[must_use]
    pub fn key(&self) -> (String, String) {
        self.key.clone()
    }

    /// Its identity.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Its version; 0 when versions cannot be compared.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The volume that it is bound to, or asks for; empty while there is none.
    #[must_use]
    pub fn volume(&self) -> &str {
        &self.volume
    }

    /// Whether it has its volume for good.
    pub(crate) fn is_bound(&self) -> bool {
        !self.volume.is_empty() && self.is_complete
    }

    /// Whether only one pod at a time may use it.
    pub(crate) fn is_for_one_pod(&self) -> bool {
        self.modes.iter().any(|mode| mode == ONE_POD)
    }

    /// Whether pods on several nodes may use it at the same time.
    pub(crate) fn is_for_many_nodes(&self) -> bool {
        self.modes.iter().any(|mode| MANY_NODES.contains(&mode.as_str()))
    }
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "VolumeWire")]
pub struct Volume {
    name: String,
    uid: String,
    version: u64,
    labels: BTreeMap<String, String>,
    terms: Option<Terms>,
    /// The claim that it belongs to or is kept for.
    pub(crate) claim: Option<ClaimReference>,
    pub(crate) class: String,
    modes: Vec<String>,
    mode: String,
    pub(crate) size: i64,
    attributes: String,
    is_available: bool,
    is_leaving: bool,
    /// Driver and handle of a CSI volume.
    pub(crate) csi: Option<Disk>,
    /// The same of a volume of an older kind.
    in_tree: Option<Disk>,
}

/// A claim as a volume names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct ClaimReference {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VolumeWire {
    metadata: Metadata,
    spec: VolumeSpec,
    status: Phase,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct VolumeSpec {
    node_affinity: VolumeAffinity,
    claim_ref: Option<ClaimReference>,
    storage_class_name: String,
    access_modes: Vec<String>,
    volume_mode: Option<String>,
    volume_attributes_class_name: Option<String>,
    capacity: BTreeMap<String, String>,
    csi: Option<CsiSource>,
    #[serde(flatten)]
    in_tree: InTree,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VolumeAffinity {
    required: Option<Terms>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CsiSource {
    driver: String,
    volume_handle: String,
}

impl From<VolumeWire> for Volume {
    fn from(wire: VolumeWire) -> Self {
        let VolumeWire { mut metadata, spec, status } = wire;
        let annotated = metadata.annotations.remove(BETA_CLASS);
        Self {
            version: metadata.version(),
            is_leaving: metadata.is_leaving(),
            name: metadata.name,
            uid: metadata.uid,
            labels: metadata.labels,
            terms: spec.node_affinity.required,
            claim: spec.claim_ref,
            class: annotated.unwrap_or(spec.storage_class_name),
            modes: spec.access_modes,
            mode: spec.volume_mode.unwrap_or_else(|| FILESYSTEM.to_owned()),
            size: storage(&spec.capacity).unwrap_or(0),
            attributes: spec.volume_attributes_class_name.unwrap_or_default(),
            is_available: status.phase == "Available",
            csi: spec.csi.map(|csi| (csi.driver, csi.volume_handle)),
            in_tree: spec.in_tree.attached(),
        }
    }
}

impl Volume {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its identity.
    #[must_use]
    pub fn uid(&self) -> &str {
        &self.uid
    }

    /// Its version; 0 when versions cannot be compared.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The disk that a CSI driver attaches for it.
    pub(super) fn attached(&self) -> Option<&Disk> {
        self.csi.as_ref().or(self.in_tree.as_ref())
    }

    pub(crate) fn labels(&self) -> &BTreeMap<String, String> {
        &self.labels
    }

    /// Whether it can be used from a node.
    pub(crate) fn is_reached_from(&self, node: &crate::Node) -> bool {
        self.terms.as_ref().is_none_or(|terms| terms.admits(&node.name, &node.labels))
    }

    /// Whether it belongs to a claim or is kept for it.
    pub(crate) fn is_for(&self, claim: &Claim) -> bool {
        self.claim.as_ref().is_some_and(|to| {
            (&to.namespace, &to.name) == (&claim.key.0, &claim.key.1)
                && (to.uid.is_empty() || to.uid == claim.uid)
        })
    }

    /// Whether it is large enough and of the right kind for a claim, whoever else has it.
    pub(super) fn could_serve(&self, claim: &Claim) -> bool {
        self.size >= claim.size.unwrap_or(0)
            && self.mode == claim.mode
            && self.attributes == claim.attributes
            && !self.is_leaving
    }

    /// Whether a claim that it is not kept for may take it.
    pub(super) fn is_free_for(&self, claim: &Claim) -> bool {
        self.claim.is_none()
            && self.is_available
            && self.class == claim.class
            && claim.selector.as_ref().is_none_or(|selector| selector.selects(&self.labels))
            && claim.modes.iter().all(|mode| self.modes.contains(mode))
    }
}
