//! Volumes and what scheduling has to do with them: which nodes a pod's claims allow, which volumes
//! claims get that wait for their first pod, and what of that is under way.
//!
//! By kube-scheduler's rules (`volumebinding`, `volumezone`, `volumerestrictions`,
//! `nodevolumelimits`). Owns the objects of storage and what is assumed of claims; must not know
//! groups or queues.

mod assumed;
mod cycle;
mod drivers;
mod examine;
mod limits;
mod migrated;
mod objects;

use std::collections::{BTreeMap, BTreeSet};

use crate::slots::Id;
use crate::{Pod, PodName};

pub(crate) use assumed::Assumed;
pub use assumed::{BindClaim, BindVolume, ClaimWritten, ReleaseClaim};
pub use drivers::{CsiDriver, CsiNode, CsiStorageCapacity, StorageClass, VolumeAttachment};
pub(crate) use examine::{Choice, Question, bars, examine, matters};
pub(crate) use migrated::{Disk, InTree};
pub use objects::{Claim, Volume};

/// Namespace and name of a claim.
pub(crate) type ClaimKey = (String, String);

/// Everything that is known of storage.
#[derive(Debug, Clone, Default)]
pub(crate) struct Storage {
    claims: BTreeMap<ClaimKey, Claim>,
    volumes: BTreeMap<String, Volume>,
    /// Volumes that belong to no claim for good, by class.
    by_class: BTreeMap<String, BTreeSet<String>>,
    classes: BTreeMap<String, StorageClass>,
    nodes: BTreeMap<String, CsiNode>,
    /// How many of these have limits.
    limited: usize,
    drivers: BTreeMap<String, CsiDriver>,
    capacities: BTreeMap<(String, String), CsiStorageCapacity>,
    attachments: BTreeMap<String, VolumeAttachment>,
    /// Pods that mount a claim, wherever they are.
    users: BTreeMap<ClaimKey, BTreeSet<Id>>,
    /// What is assumed of claims that are not bound.
    assumed: Assumed,
}

/// A change of an object of storage.
#[derive(Debug, Clone)]
pub enum StorageDelta {
    /// A claim is there, new or changed.
    Claim(Claim),
    /// A claim is gone: namespace and name.
    ClaimGone(String, String),
    /// A volume is there, new or changed.
    Volume(Box<Volume>),
    /// A volume is gone.
    VolumeGone(String),
    /// A class of storage is there, new or changed.
    Class(StorageClass),
    /// A class of storage is gone.
    ClassGone(String),
    /// What drivers say of a node is there, new or changed.
    Node(CsiNode),
    /// Drivers say nothing of a node any more.
    NodeGone(String),
    /// A driver is there, new or changed.
    Driver(CsiDriver),
    /// A driver is gone.
    DriverGone(String),
    /// A statement of space is there, new or changed.
    Capacity(Box<CsiStorageCapacity>),
    /// A statement of space is gone: namespace and name.
    CapacityGone(String, String),
    /// A volume is being attached to a node, or is.
    Attachment(VolumeAttachment),
    /// An attachment is gone.
    AttachmentGone(String),
}

impl Storage {
    /// Takes note of a change. Returns claims that are not to be provisioned for their node after
    /// all: who waits for them is to be placed anew.
    pub(crate) fn apply(&mut self, delta: StorageDelta) -> Option<ClaimKey> {
        match delta {
            StorageDelta::Claim(claim) => return self.claim(claim),
            StorageDelta::ClaimGone(namespace, name) => {
                let key = (namespace, name);
                self.claims.remove(&key);
                self.assumed.forget(&key);
            }
            StorageDelta::Volume(volume) => return self.volume(*volume),
            StorageDelta::VolumeGone(name) => {
                if let Some(volume) = self.volumes.remove(&name) {
                    self.unlist(&volume);
                }
                return self.assumed.volume_is_gone(&name);
            }
            StorageDelta::Class(class) => drop(self.classes.insert(class.key().1, class)),
            StorageDelta::ClassGone(name) => drop(self.classes.remove(&name)),
            StorageDelta::Node(node) => self.node(&node.key().1, Some(node)),
            StorageDelta::NodeGone(name) => self.node(&name, None),
            StorageDelta::Driver(driver) => drop(self.drivers.insert(driver.key().1, driver)),
            StorageDelta::DriverGone(name) => drop(self.drivers.remove(&name)),
            StorageDelta::Capacity(space) => drop(self.capacities.insert(space.key(), *space)),
            StorageDelta::CapacityGone(namespace, name) => {
                self.capacities.remove(&(namespace, name));
            }
            StorageDelta::Attachment(one) => drop(self.attachments.insert(one.key().1, one)),
            StorageDelta::AttachmentGone(name) => drop(self.attachments.remove(&name)),
        }
        None
    }

    fn node(&mut self, name: &str, node: Option<CsiNode>) {
        let has_limits = |node: &CsiNode| node.has_limits();
        self.limited += usize::from(node.as_ref().is_some_and(has_limits));
        let before = match node {
            Some(node) => self.nodes.insert(name.to_owned(), node),
            None => self.nodes.remove(name),
        };
        self.limited -= usize::from(before.as_ref().is_some_and(has_limits));
    }

    fn claim(&mut self, claim: Claim) -> Option<ClaimKey> {
        let key = claim.key();
        let is_refused = self.assumed.claim_is_there(&key, &claim);
        self.claims.insert(key.clone(), claim);
        is_refused.then_some(key)
    }

    fn volume(&mut self, volume: Volume) -> Option<ClaimKey> {
        let refused = self.assumed.volume_is_there(&volume);
        if let Some(before) = self.volumes.remove(volume.name()) {
            self.unlist(&before);
        }
        let listed = self.by_class.entry(volume.class.clone()).or_default();
        listed.insert(volume.name().to_owned());
        self.volumes.insert(volume.name().to_owned(), volume);
        refused
    }

    fn unlist(&mut self, volume: &Volume) {
        if let Some(listed) = self.by_class.get_mut(&volume.class) {
            listed.remove(volume.name());
            if listed.is_empty() {
                self.by_class.remove(&volume.class);
            }
        }
    }

    /// Whether a change could make a decision come out differently.
    pub(crate) fn is_news(&self, delta: &StorageDelta) -> bool {
        match delta {
            // Heartbeats of drivers change nothing that is read here.
            StorageDelta::Node(node) => {
                let known = self.nodes.get(&node.key().1);
                known.is_none_or(|known| !known.says_the_same(node))
            }
            StorageDelta::Capacity(space) => {
                let known = self.capacities.get(&space.key());
                known.is_none_or(|known| !known.says_the_same(space))
            }
            _ => true,
        }
    }

    /// A pod that mounts claims is there, or gone.
    pub(crate) fn used_by(&mut self, pod: &Pod, id: Id, is_there: bool) {
        for name in &pod.claims {
            let key = (pod.key.namespace.clone(), name.clone());
            if is_there {
                self.users.entry(key).or_default().insert(id);
            } else if let Some(users) = self.users.get_mut(&key) {
                users.remove(&id);
                if users.is_empty() {
                    self.users.remove(&key);
                }
            }
        }
    }

    /// The pods that mount a claim.
    pub(crate) fn users(&self, key: &ClaimKey) -> impl Iterator<Item = Id> {
        self.users.get(key).into_iter().flatten().copied()
    }

    /// The claims of a pod that are there.
    pub(crate) fn claims_of<'s>(
        &'s self,
        pod: &'s Pod,
    ) -> impl Iterator<Item = (ClaimKey, &'s Claim)> {
        let keys = pod.claims.iter().map(|name| (pod.key.namespace.clone(), name.clone()));
        keys.filter_map(|key| {
            let claim = self.claims.get(&key)?;
            Some((key, claim))
        })
    }

    /// Whether a claim waits for the first pod that uses it.
    pub(crate) fn waits_for_consumer(&self, claim: &Claim) -> bool {
        let class = self.classes.get(&claim.class);
        claim.volume().is_empty() && class.is_some_and(StorageClass::waits_for_consumer)
    }

    /// Why a pod cannot be placed anywhere for one of its claims, in kube-scheduler's words.
    pub(crate) fn trouble(&self, pod: &Pod) -> Option<String> {
        let mut is_unbound = false;
        for name in &pod.claims {
            let is_own = pod.own_claims.contains(name);
            let key = (pod.key.namespace.clone(), name.clone());
            let Some(claim) = self.claims.get(&key) else {
                return Some(if is_own {
                    format!(
                        "waiting for ephemeral volume controller to create the \
                         persistentvolumeclaim {name:?}"
                    )
                } else {
                    format!("persistentvolumeclaim {name:?} not found")
                });
            };
            if claim.is_lost {
                let volume = claim.volume();
                return Some(format!(
                    "persistentvolumeclaim {name:?} bound to non-existent persistentvolume \
                     {volume:?}"
                ));
            }
            if claim.is_leaving {
                return Some(format!("persistentvolumeclaim {name:?} is being deleted"));
            }
            if is_own && claim.owner.as_deref() != Some(&pod.uid) {
                let PodName { namespace, name: own } = &pod.key;
                return Some(format!(
                    "PVC {namespace}/{name} was not created for pod {namespace}/{own} (pod is not \
                     owner)"
                ));
            }
            if self.assumed.is_overdue(&key) && !claim.is_bound() {
                return Some(format!(
                    "persistentvolumeclaim {name:?} was not bound within {} seconds: look at its \
                     events",
                    assumed::PATIENCE
                ));
            }
            is_unbound |= !claim.is_bound() && !self.waits_for_consumer(claim);
        }
        is_unbound.then(|| "pod has unbound immediate PersistentVolumeClaims".to_owned())
    }

    /// Claims of a pod that are not bound, by name.
    pub(crate) fn unbound<'s>(&'s self, pod: &'s Pod) -> impl Iterator<Item = &'s str> {
        pod.claims.iter().map(String::as_str).filter(|name| {
            let key = (pod.key.namespace.clone(), (*name).to_owned());
            self.claims.get(&key).is_some_and(|claim| !claim.is_bound())
        })
    }

    pub(crate) fn assumed(&self) -> &Assumed {
        &self.assumed
    }

    pub(crate) fn assumed_mut(&mut self) -> &mut Assumed {
        &mut self.assumed
    }

    pub(crate) fn volume_of(&self, name: &str) -> Option<&Volume> {
        self.volumes.get(name)
    }

    /// Brings what is assumed up to a time.
    pub(crate) fn pass(&mut self, now: i64) {
        let used = self.users.keys().filter(|key| {
            let claim = self.claims.get(key);
            claim.is_some_and(|claim| claim.selected.is_some() && claim.volume().is_empty())
        });
        self.assumed.pass(now, used.cloned().collect());
    }
}
