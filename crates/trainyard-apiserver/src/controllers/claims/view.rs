//! What is read of claims, volumes, storage classes and pods to bind claims.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use trainyard_schema::quantity::{self, Quantity};

use crate::controllers::view::{HasMeta, Key, Meta, null_is_empty};

pub(super) const BIND_COMPLETED: &str = "pv.kubernetes.io/bind-completed";
pub(super) const BOUND_BY_CONTROLLER: &str = "pv.kubernetes.io/bound-by-controller";
pub(super) const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";
const IS_DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";

/// A claim.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Claim {
    pub(super) metadata: Meta,
    pub(super) spec: ClaimSpec,
    pub(super) status: ClaimStatus,
}

impl HasMeta for Claim {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaimSpec {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) access_modes: Vec<String>,
    storage_class_name: Option<String>,
    pub(super) volume_name: String,
    volume_mode: Option<String>,
    pub(super) selector: Option<Value>,
    resources: Resources,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Resources {
    #[serde(deserialize_with = "null_is_empty")]
    requests: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct ClaimStatus {
    pub(super) phase: String,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) access_modes: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) capacity: BTreeMap<String, String>,
}

impl Claim {
    /// The class it asks for; `None` when it leaves that to others.
    pub(super) fn class(&self) -> Option<&str> {
        let annotated = self.metadata.annotations.get(CLASS);
        annotated.or(self.spec.storage_class_name.as_ref()).map(String::as_str)
    }

    /// How much it asks for, as written.
    pub(super) fn request(&self) -> &str {
        self.spec.resources.requests.get("storage").map_or("0", String::as_str)
    }

    pub(super) fn size(&self) -> Quantity {
        quantity::parse(self.request()).unwrap_or(Quantity::ZERO)
    }

    pub(super) fn mode(&self) -> &str {
        mode(self.spec.volume_mode.as_ref())
    }

    pub(super) fn is_bound(&self) -> bool {
        self.metadata.annotations.contains_key(BIND_COMPLETED)
    }
}

fn mode(mode: Option<&String>) -> &str {
    mode.map_or("Filesystem", String::as_str)
}

/// A volume.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Volume {
    pub(super) metadata: Meta,
    pub(super) spec: VolumeSpec,
    pub(super) status: VolumeStatus,
}

impl HasMeta for Volume {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct VolumeSpec {
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) access_modes: Vec<String>,
    #[serde(deserialize_with = "null_is_empty")]
    pub(super) capacity: BTreeMap<String, String>,
    pub(super) claim_ref: Option<ClaimRef>,
    storage_class_name: String,
    volume_mode: Option<String>,
    #[serde(rename = "persistentVolumeReclaimPolicy")]
    pub(super) reclaim: String,
    pub(super) host_path: Option<HostPath>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct ClaimRef {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl ClaimRef {
    pub(super) fn key(&self) -> Key {
        Key { namespace: self.namespace.clone(), name: self.name.clone() }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct HostPath {
    pub(super) path: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct VolumeStatus {
    pub(super) phase: String,
}

impl Volume {
    pub(super) fn class(&self) -> &str {
        self.metadata.annotations.get(CLASS).map_or(&*self.spec.storage_class_name, String::as_str)
    }

    pub(super) fn size(&self) -> Quantity {
        let text = self.spec.capacity.get("storage").map_or("0", String::as_str);
        quantity::parse(text).unwrap_or(Quantity::ZERO)
    }

    pub(super) fn mode(&self) -> &str {
        mode(self.spec.volume_mode.as_ref())
    }

    /// Whether it is bound to a claim, or kept for it.
    pub(super) fn is_for(&self, claim: &Meta) -> bool {
        self.spec.claim_ref.as_ref().is_some_and(|to| {
            to.name == claim.name
                && to.namespace == claim.namespace
                && (to.uid.is_empty() || to.uid == claim.uid)
        })
    }
}

/// A storage class.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Class {
    pub(super) metadata: Meta,
    pub(super) provisioner: String,
    volume_binding_mode: String,
    pub(super) reclaim_policy: Option<String>,
}

impl HasMeta for Class {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl Class {
    pub(super) fn is_default(&self) -> bool {
        self.metadata.annotations.get(IS_DEFAULT).is_some_and(|value| value == "true")
    }

    pub(super) fn waits(&self) -> bool {
        self.volume_binding_mode == "WaitForFirstConsumer"
    }
}

/// A pod as it is served.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServedPod {
    pub(super) metadata: Meta,
    spec: PodSpec,
    status: PodStatus,
}

impl HasMeta for ServedPod {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodSpec {
    node_name: String,
    #[serde(deserialize_with = "null_is_empty")]
    volumes: Vec<PodVolume>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodVolume {
    name: String,
    persistent_volume_claim: Option<PodClaim>,
    ephemeral: Option<Ephemeral>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PodClaim {
    claim_name: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Ephemeral {
    volume_claim_template: Option<Value>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct PodStatus {
    phase: String,
}

/// A pod that uses claims.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct User {
    pub(super) uid: String,
    /// The names of its claims.
    pub(super) claims: Vec<String>,
    /// Claims that are made for it: name and template.
    pub(super) own: Vec<(String, Value)>,
    pub(super) placed: bool,
    pub(super) going: bool,
}

impl User {
    /// The claims of a pod; `None` when it has none, or has ended.
    pub(super) fn of(served: ServedPod) -> Option<Self> {
        let ServedPod { metadata, spec, status } = served;
        if matches!(&*status.phase, "Succeeded" | "Failed") {
            return None;
        }
        let (mut claims, mut own) = (Vec::new(), Vec::new());
        for volume in spec.volumes {
            claims.extend(volume.persistent_volume_claim.map(|claim| claim.claim_name));
            if let Some(ephemeral) = volume.ephemeral {
                let name = format!("{}-{}", metadata.name, volume.name);
                claims.push(name.clone());
                own.extend(ephemeral.volume_claim_template.map(|template| (name, template)));
            }
        }
        let placed = !spec.node_name.is_empty();
        let going = metadata.is_deleting();
        (!claims.is_empty()).then_some(Self { uid: metadata.uid, claims, own, placed, going })
    }
}
