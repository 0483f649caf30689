//! A node as the scheduler sees it.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::Amounts;
use crate::meta::Metadata;
use crate::taint::Taint;
use crate::vector::{ENDLESS, PODS};

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its version; 0 when versions cannot be compared.
    pub version: u64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// What pods may use of it.
    pub has: Amounts,
    /// Whether it takes no new pods.
    pub is_cordoned: bool,
    /// Whether its kubelet says that it is well; one that says nothing about it counts as such.
    pub is_ready: bool,
    pub(crate) taints: Vec<Taint>,
    /// What its kubelet says that it can do, among what not all can.
    pub(crate) features: Vec<String>,
    /// Whether it has devices, which pods without need leave to others.
    pub(crate) has_devices: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: Metadata,
    spec: Spec,
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    unschedulable: bool,
    taints: Vec<Taint>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Status {
    allocatable: BTreeMap<String, String>,
    declared_features: Vec<String>,
    conditions: Vec<Condition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: String,
    status: String,
}

impl Node {
    /// Whether what it has is there for queues to share.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.is_ready && !self.is_cordoned
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let Wire { metadata, spec, status } = Wire::deserialize(reader)?;
        let mut has = Amounts::read(&status.allocatable);
        if !status.allocatable.contains_key(PODS) {
            has.put(PODS, ENDLESS);
        }
        let mut ready = status.conditions.iter().filter(|one| one.r#type == "Ready");
        let has_devices = has.iter().any(|(resource, _)| resource.contains('/'));
        Ok(Self {
            version: metadata.version(),
            name: metadata.name,
            uid: metadata.uid,
            labels: metadata.labels,
            has_devices,
            has,
            is_cordoned: spec.unschedulable,
            is_ready: ready.all(|one| one.status == "True"),
            taints: spec.taints,
            features: status.declared_features,
        })
    }
}
