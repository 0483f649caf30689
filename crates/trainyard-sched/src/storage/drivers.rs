//! Classes of storage and what CSI drivers say of nodes and of space: read, and what follows from
//! one of them alone.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::migrated::driver_of;
use super::objects::bytes;
use crate::meta::Metadata;
use crate::selector::Selector;

/// A class of this provisioner has only volumes that somebody makes by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Where an object is found and which it is.
macro_rules! identified {
    ($kind:ident, $wire:ident) => {
        impl $kind {
            /// Its namespace, empty where there is none, and its name.
            #[must_use]
            pub fn key(&self) -> (String, String) {
                (self.namespace.clone(), self.name.clone())
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
        }

        impl<'de> Deserialize<'de> for $kind {
            fn deserialize<D: serde::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
                let wire = $wire::deserialize(reader)?;
                let version = wire.metadata.version();
                let Metadata { namespace, name, uid, .. } = wire.metadata;
                let facts = wire.facts;
                Ok(Self { namespace, name, uid, version, facts })
            }
        }
    };
}

/// An object of which little is read.
#[derive(Debug, Default, Deserialize)]
#[serde(bound = "T: Default + serde::de::DeserializeOwned")]
struct Wire<T> {
    #[serde(default)]
    metadata: Metadata,
    #[serde(flatten)]
    facts: T,
}

/// A class of storage (`StorageClass`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StorageClass {
    namespace: String,
    name: String,
    uid: String,
    version: u64,
    facts: ClassFacts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ClassFacts {
    provisioner: String,
    volume_binding_mode: Option<String>,
    allowed_topologies: Vec<Topology>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Topology {
    match_label_expressions: Vec<OneOf>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct OneOf {
    key: String,
    values: Vec<String>,
}

type ClassWire = Wire<ClassFacts>;
identified!(StorageClass, ClassWire);

impl StorageClass {
    /// Whether claims of it wait for the first pod that uses them.
    pub(crate) fn waits_for_consumer(&self) -> bool {
        self.facts.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer")
    }

    /// Who makes its volumes; nothing if nobody does.
    pub(crate) fn provisioner(&self) -> Option<&str> {
        let provisioner = self.facts.provisioner.as_str();
        (!matches!(provisioner, "" | NO_PROVISIONER)).then_some(provisioner)
    }

    /// The driver that its volumes are attached by, if it is one.
    pub(crate) fn driver(&self) -> &str {
        driver_of(&self.facts.provisioner)
    }

    /// Whether volumes for a node with these labels may be made.
    pub(crate) fn allows(&self, labels: &BTreeMap<String, String>) -> bool {
        let holds = |one: &OneOf| labels.get(&one.key).is_some_and(|at| one.values.contains(at));
        let terms = &self.facts.allowed_topologies;
        terms.is_empty()
            || terms.iter().any(|term| {
                // A term that says nothing allows nothing.
                !term.match_label_expressions.is_empty()
                    && term.match_label_expressions.iter().all(holds)
            })
    }
}

/// What CSI drivers say of a node (`CSINode`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsiNode {
    namespace: String,
    name: String,
    uid: String,
    version: u64,
    facts: NodeFacts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct NodeFacts {
    spec: NodeSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct NodeSpec {
    /// `null` on a node without drivers, for Kubernetes' own list is never left out.
    drivers: Option<Vec<NodeDriver>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct NodeDriver {
    name: String,
    allocatable: Option<Count>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Count {
    count: Option<i64>,
}

type NodeWire = Wire<NodeFacts>;
identified!(CsiNode, NodeWire);

impl CsiNode {
    /// How many volumes of a driver the node can have; nothing if there is no limit.
    pub(crate) fn limit(&self, driver: &str) -> Option<i64> {
        let found = self.facts.spec.drivers.iter().flatten().find(|one| one.name == driver);
        found.and_then(|one| one.allocatable.as_ref()?.count)
    }

    /// Whether nothing that is read here differs.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.facts == other.facts
    }

    /// Whether any driver has a limit.
    pub(crate) fn has_limits(&self) -> bool {
        let count = |one: &NodeDriver| one.allocatable.as_ref().and_then(|some| some.count);
        self.facts.spec.drivers.iter().flatten().any(|one| count(one).is_some())
    }
}

/// A CSI driver (`CSIDriver`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsiDriver {
    namespace: String,
    name: String,
    uid: String,
    version: u64,
    facts: DriverFacts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct DriverFacts {
    spec: DriverSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct DriverSpec {
    storage_capacity: Option<bool>,
}

type DriverWire = Wire<DriverFacts>;
identified!(CsiDriver, DriverWire);

impl CsiDriver {
    /// Whether it says how much space there is.
    pub(crate) fn tells_capacity(&self) -> bool {
        self.facts.spec.storage_capacity == Some(true)
    }
}

/// How much space there is for volumes of a class (`CSIStorageCapacity`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CsiStorageCapacity {
    namespace: String,
    name: String,
    uid: String,
    version: u64,
    facts: CapacityFacts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CapacityFacts {
    storage_class_name: String,
    node_topology: Option<Selector>,
    capacity: Option<String>,
    maximum_volume_size: Option<String>,
}

type CapacityWire = Wire<CapacityFacts>;
identified!(CsiStorageCapacity, CapacityWire);

impl CsiStorageCapacity {
    /// Whether nothing that is read here differs.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.facts == other.facts
    }

    /// Whether it is about volumes of a class on nodes with these labels.
    pub(crate) fn is_about(&self, class: &str, labels: &BTreeMap<String, String>) -> bool {
        self.facts.storage_class_name == class
            && self.facts.node_topology.as_ref().is_some_and(|selector| selector.selects(labels))
    }

    /// Whether there is space for one more volume beside others that are still to be made.
    pub(crate) fn covers(&self, size: i64, others: i64) -> bool {
        let capacity = self.facts.capacity.as_deref().and_then(bytes);
        let largest = self.facts.maximum_volume_size.as_deref().and_then(bytes).or(capacity);
        largest.is_some_and(|largest| largest >= size)
            && capacity.is_none_or(|capacity| others == 0 || capacity - others >= size)
    }
}

/// A volume that is attached to a node (`VolumeAttachment`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VolumeAttachment {
    namespace: String,
    name: String,
    uid: String,
    version: u64,
    facts: AttachmentFacts,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct AttachmentFacts {
    spec: AttachmentSpec,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AttachmentSpec {
    attacher: String,
    node_name: String,
    source: AttachmentSource,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AttachmentSource {
    persistent_volume_name: Option<String>,
}

type AttachmentWire = Wire<AttachmentFacts>;
identified!(VolumeAttachment, AttachmentWire);

impl VolumeAttachment {
    pub(crate) fn node(&self) -> &str {
        &self.facts.spec.node_name
    }

    /// Its driver and the name of its volume.
    pub(crate) fn volume(&self) -> Option<(&str, &str)> {
        let volume = self.facts.spec.source.persistent_volume_name.as_deref()?;
        Some((self.facts.spec.attacher.as_str(), volume)).filter(|(driver, _)| !driver.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_without_drivers_has_null_for_them() {
        for spec in [json!({"drivers": null}), json!({"drivers": []}), json!({})] {
            let node = json!({"metadata": {"name": "n"}, "spec": spec});
            let node: CsiNode = serde_json::from_value(node).unwrap();
            assert!(!node.has_limits() && node.limit("example.com").is_none(), "{node:?}");
        }
    }
}
