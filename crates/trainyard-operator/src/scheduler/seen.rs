//! The kinds of object that scheduling looks at: where they are, and what they are to the state.
//!
//! Must not keep anything.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use trainyard_sched::{
    Claim, CsiDriver, CsiNode, CsiStorageCapacity, Delta, DisruptionBudget, Namespace, Node, Pod,
    PodGroup, PodName, PriorityClass, Queue, StorageClass, StorageDelta, Volume, VolumeAttachment,
};

use crate::cache::Object;
use crate::watch::Source;

const STORAGE: &str = "/apis/storage.k8s.io/v1";

/// Namespace and name; the first is empty where there is none.
pub(super) type Key = (String, String);

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Pods,
    Nodes,
    Groups,
    Queues,
    Classes,
    Claims,
    Volumes,
    StorageClasses,
    CsiNodes,
    CsiDrivers,
    CsiStorageCapacities,
    VolumeAttachments,
    Budgets,
    Namespaces,
}

impl Kind {
    pub(super) const ALL: [Self; 14] = [
        Self::Pods,
        Self::Nodes,
        Self::Groups,
        Self::Queues,
        Self::Classes,
        Self::Claims,
        Self::Volumes,
        Self::StorageClasses,
        Self::CsiNodes,
        Self::CsiDrivers,
        Self::CsiStorageCapacities,
        Self::VolumeAttachments,
        Self::Budgets,
        Self::Namespaces,
    ];

    /// Where it is found.
    pub(super) fn source(self) -> Source {
        let (group, resource) = match self {
            Self::Pods => ("/api/v1", "pods"),
            Self::Nodes => ("/api/v1", "nodes"),
            Self::Groups => ("/apis/scheduling.volcano.sh/v1beta1", "podgroups"),
            Self::Queues => ("/apis/scheduling.volcano.sh/v1beta1", "queues"),
            Self::Classes => ("/apis/scheduling.k8s.io/v1", "priorityclasses"),
            Self::Claims => ("/api/v1", "persistentvolumeclaims"),
            Self::Volumes => ("/api/v1", "persistentvolumes"),
            Self::StorageClasses => (STORAGE, "storageclasses"),
            Self::CsiNodes => (STORAGE, "csinodes"),
            Self::CsiDrivers => (STORAGE, "csidrivers"),
            Self::CsiStorageCapacities => (STORAGE, "csistoragecapacities"),
            Self::VolumeAttachments => (STORAGE, "volumeattachments"),
            Self::Budgets => ("/apis/policy/v1", "poddisruptionbudgets"),
            Self::Namespaces => ("/api/v1", "namespaces"),
        };
        Source {
            resource,
            path: format!("{group}/{resource}"),
            selector: None,
            remedy: "this API server cannot run pods",
        }
    }
}

/// An object that the state is told of.
pub(super) trait Told: DeserializeOwned + Send + 'static {
    const KIND: Kind;

    fn uid(&self) -> &str;
    fn version(&self) -> u64;
    fn key(&self) -> Key;
    fn there(self) -> Delta;
    fn gone(key: Key) -> Delta;
}

/// An object as it is followed.
#[derive(Debug, Deserialize)]
#[serde(transparent, bound = "T: DeserializeOwned")]
pub(super) struct Seen<T>(pub(super) T);

impl<T: Told> Object for Seen<T> {
    fn uid(&self) -> &str {
        self.0.uid()
    }

    #[expect(clippy::unnecessary_literal_bound, reason = "the trait's words")]
    fn name(&self) -> &str {
        // Nobody asks: what is followed here is kept by the state.
        ""
    }

    fn version(&self) -> u64 {
        self.0.version()
    }

    fn owner(&self) -> Option<&str> {
        None
    }

    fn same_facts(&mut self, _: &Self) -> bool {
        false
    }
}

/// The fields that most kinds have by these names.
macro_rules! identified {
    () => {
        fn uid(&self) -> &str {
            &self.uid
        }

        fn version(&self) -> u64 {
            self.version
        }
    };
}

impl Told for Pod {
    const KIND: Kind = Kind::Pods;

    identified!();

    fn key(&self) -> Key {
        (self.key.namespace.clone(), self.key.name.clone())
    }

    fn there(self) -> Delta {
        Delta::Pod(Box::new(self))
    }

    fn gone((namespace, name): Key) -> Delta {
        Delta::PodGone(PodName { namespace, name })
    }
}

impl Told for Node {
    const KIND: Kind = Kind::Nodes;

    identified!();

    fn key(&self) -> Key {
        (String::new(), self.name.clone())
    }

    fn there(self) -> Delta {
        Delta::Node(Box::new(self))
    }

    fn gone((_, name): Key) -> Delta {
        Delta::NodeGone(name)
    }
}

impl Told for Namespace {
    const KIND: Kind = Kind::Namespaces;

    identified!();

    fn key(&self) -> Key {
        (String::new(), self.name.clone())
    }

    fn there(self) -> Delta {
        Delta::Namespace(Box::new(self))
    }

    fn gone((_, name): Key) -> Delta {
        Delta::NamespaceGone(name)
    }
}

impl Told for PodGroup {
    const KIND: Kind = Kind::Groups;

    identified!();

    fn key(&self) -> Key {
        (self.namespace.clone(), self.name.clone())
    }

    fn there(self) -> Delta {
        Delta::Group(Box::new(self))
    }

    fn gone((namespace, name): Key) -> Delta {
        Delta::GroupGone(namespace, name)
    }
}

impl Told for Queue {
    const KIND: Kind = Kind::Queues;

    identified!();

    fn key(&self) -> Key {
        (String::new(), self.name.clone())
    }

    fn there(self) -> Delta {
        Delta::Queue(Box::new(self))
    }

    fn gone((_, name): Key) -> Delta {
        Delta::QueueGone(name)
    }
}

/// The same by methods.
macro_rules! identified_by_methods {
    () => {
        fn uid(&self) -> &str {
            self.uid()
        }

        fn version(&self) -> u64 {
            self.version()
        }
    };
}

impl Told for PriorityClass {
    const KIND: Kind = Kind::Classes;

    identified_by_methods!();

    fn key(&self) -> Key {
        (String::new(), self.name().to_owned())
    }

    fn there(self) -> Delta {
        Delta::Class(self)
    }

    fn gone((_, name): Key) -> Delta {
        Delta::ClassGone(name)
    }
}

impl Told for Claim {
    const KIND: Kind = Kind::Claims;

    identified_by_methods!();

    fn key(&self) -> Key {
        self.key()
    }

    fn there(self) -> Delta {
        Delta::Storage(Box::new(StorageDelta::Claim(self)))
    }

    fn gone((namespace, name): Key) -> Delta {
        Delta::Storage(Box::new(StorageDelta::ClaimGone(namespace, name)))
    }
}

impl Told for Volume {
    const KIND: Kind = Kind::Volumes;

    identified_by_methods!();

    fn key(&self) -> Key {
        (String::new(), self.name().to_owned())
    }

    fn there(self) -> Delta {
        Delta::Storage(Box::new(StorageDelta::Volume(Box::new(self))))
    }

    fn gone((_, name): Key) -> Delta {
        Delta::Storage(Box::new(StorageDelta::VolumeGone(name)))
    }
}

impl Told for CsiStorageCapacity {
    const KIND: Kind = Kind::CsiStorageCapacities;

    identified_by_methods!();

    fn key(&self) -> Key {
        self.key()
    }

    fn there(self) -> Delta {
        Delta::Storage(Box::new(StorageDelta::Capacity(Box::new(self))))
    }

    fn gone((namespace, name): Key) -> Delta {
        Delta::Storage(Box::new(StorageDelta::CapacityGone(namespace, name)))
    }
}

impl Told for DisruptionBudget {
    const KIND: Kind = Kind::Budgets;

    identified_by_methods!();

    fn key(&self) -> Key {
        self.key()
    }

    fn there(self) -> Delta {
        Delta::Budget(Box::new(self))
    }

    fn gone((namespace, name): Key) -> Delta {
        Delta::BudgetGone(namespace, name)
    }
}

/// Objects of storage without a namespace.
macro_rules! of_storage {
    ($kind:ident, $kinds:ident, $there:ident, $gone:ident) => {
        impl Told for $kind {
            const KIND: Kind = Kind::$kinds;

            identified_by_methods!();

            fn key(&self) -> Key {
                self.key()
            }

            fn there(self) -> Delta {
                Delta::Storage(Box::new(StorageDelta::$there(self)))
            }

            fn gone((_, name): Key) -> Delta {
                Delta::Storage(Box::new(StorageDelta::$gone(name)))
            }
        }
    };
}

of_storage!(StorageClass, StorageClasses, Class, ClassGone);
of_storage!(CsiNode, CsiNodes, Node, NodeGone);
of_storage!(CsiDriver, CsiDrivers, Driver, DriverGone);
of_storage!(VolumeAttachment, VolumeAttachments, Attachment, AttachmentGone);
