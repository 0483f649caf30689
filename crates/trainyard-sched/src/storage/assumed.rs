//! What is assumed of claims that wait for their first pod: the node that they are provisioned for
//! or the volume that they get, from the decision until the claim is bound.
//!
//! Owns time: how long is waited, and which nodes are left alone after a provisioner has given up.

use std::collections::{BTreeMap, BTreeSet};

use super::{Claim, ClaimKey, Volume};

/// After so many seconds without a volume nothing is kept for who waits for one, as kube-scheduler
/// has it by default.
pub(super) const PATIENCE: i64 = 600;
/// How long a node is left alone for a claim after its provisioner has given up there, in seconds;
/// twice as long after each further time.
const FIRST: i64 = 5;
/// The longest such pause.
const LONGEST: i64 = 300;
/// A claim is taken from a node where its pod finds no room after so many seconds: its provisioner
/// may be about to make the volume.
const SETTLED: i64 = 30;

/// A claim is to get its volume: it is provisioned for a node, or a volume is kept for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindClaim {
    /// Namespace of the claim.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its version as it was decided about; 0 when versions cannot be compared.
    pub version: u64,
    /// The node of the first pod that uses it.
    pub node: String,
    /// The volume that it gets; without one a volume is provisioned.
    pub volume: Option<BindVolume>,
}

/// A volume that is to be kept for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindVolume {
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its version as it was decided about; 0 when versions cannot be compared.
    pub version: u64,
    /// Whether somebody has kept it for the claim before.
    pub is_prebound: bool,
}

/// A claim is not to be provisioned for the node that it names any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseClaim {
    /// Namespace of the claim.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// Its version as it was decided about; 0 when versions cannot be compared.
    pub version: u64,
}

/// What became of a [`BindClaim`] or a [`ReleaseClaim`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimWritten {
    /// Namespace of the claim.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its identity.
    pub uid: String,
    /// The version of the claim or of its volume that has it; nothing if it could not be written.
    pub version: Option<u64>,
}

/// What is assumed of one claim.
#[derive(Debug, Clone)]
struct Binding {
    uid: String,
    node: String,
    volume: Option<String>,
    /// The version of the claim or of its volume that says so.
    written: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct Refusal {
    /// Whether it is newer than the last decision, whose time is the only one known here.
    is_new: bool,
    until: i64,
    pause: i64,
}

/// What is assumed of claims.
#[derive(Debug, Clone, Default)]
pub(crate) struct Assumed {
    bindings: BTreeMap<ClaimKey, Binding>,
    /// The volumes among these, and whose they are to be.
    volumes: BTreeMap<String, ClaimKey>,
    /// Claims that are being released.
    released: BTreeMap<ClaimKey, String>,
    /// Since when claims have a node, or a volume, and are not bound.
    since: BTreeMap<ClaimKey, i64>,
    /// Nodes for which claims could not be provisioned.
    refusals: BTreeMap<(ClaimKey, String), Refusal>,
    now: i64,
}

impl Assumed {
    pub(crate) fn bind(&mut self, bind: &BindClaim) {
        let key = (bind.namespace.clone(), bind.name.clone());
        let binding = Binding {
            uid: bind.uid.clone(),
            node: bind.node.clone(),
            volume: bind.volume.as_ref().map(|volume| volume.name.clone()),
            written: None,
        };
        self.unbind(&key);
        if let Some(volume) = &binding.volume {
            self.volumes.insert(volume.clone(), key.clone());
        }
        self.bindings.insert(key, binding);
    }

    fn unbind(&mut self, key: &ClaimKey) -> Option<Binding> {
        let binding = self.bindings.remove(key)?;
        if let Some(volume) = &binding.volume {
            self.volumes.remove(volume);
        }
        Some(binding)
    }

    pub(crate) fn release(&mut self, release: &ReleaseClaim) {
        let key = (release.namespace.clone(), release.name.clone());
        self.unbind(&key);
        self.released.insert(key, release.uid.clone());
    }

    /// Something was written, or could not be.
    pub(crate) fn written(&mut self, written: &ClaimWritten) {
        let key = (written.namespace.clone(), written.name.clone());
        if written.version.is_none() {
            self.released.remove(&key);
        }
        let Some(binding) = self.bindings.get_mut(&key).filter(|one| one.uid == written.uid) else {
            return;
        };
        match written.version {
            Some(version) => binding.written = Some(version),
            None => drop(self.unbind(&key)),
        }
    }

    pub(super) fn forget(&mut self, key: &ClaimKey) {
        self.unbind(key);
        self.released.remove(key);
        self.since.remove(key);
        self.refusals.retain(|(claim, _), _| claim != key);
    }

    /// A claim is there; whether it turns out not to be provisioned for its node.
    pub(super) fn claim_is_there(&mut self, key: &ClaimKey, claim: &Claim) -> bool {
        if claim.is_bound() {
            self.forget(key);
            return false;
        }
        if claim.selected.is_none() {
            self.released.remove(key);
        }
        let Some(binding) = self.bindings.get(key) else { return false };
        if binding.uid != claim.uid() {
            self.forget(key);
            return true;
        }
        let was_seen = binding.written.is_some_and(|at| claim.version() >= at && at > 0);
        let is_undone = binding.volume.is_none()
            && was_seen
            && claim.selected.as_deref() != Some(&binding.node)
            && claim.volume().is_empty();
        if is_undone {
            self.refuse(key);
        }
        is_undone
    }

    /// A volume is there; the claim that turns out not to get it.
    pub(super) fn volume_is_there(&mut self, volume: &Volume) -> Option<ClaimKey> {
        let key = self.volumes.get(volume.name())?.clone();
        let binding = self.bindings.get(&key)?;
        let was_seen = binding.written.is_some_and(|at| volume.version() >= at && at > 0);
        let is_kept = volume.claim.as_ref().is_some_and(|to| to.uid == binding.uid);
        if !was_seen || is_kept {
            return None;
        }
        self.refuse(&key);
        Some(key)
    }

    /// A volume is gone; the claim that does not get it.
    pub(super) fn volume_is_gone(&mut self, name: &str) -> Option<ClaimKey> {
        let key = self.volumes.get(name)?.clone();
        self.unbind(&key);
        self.since.remove(&key);
        Some(key)
    }

    fn refuse(&mut self, key: &ClaimKey) {
        self.since.remove(key);
        let Some(binding) = self.unbind(key) else { return };
        self.refusals.entry((key.clone(), binding.node)).or_default().is_new = true;
    }

    /// The node for which a claim is being provisioned, and the volume that it gets if one is there.
    pub(super) fn binding(&self, key: &ClaimKey) -> Option<(&str, Option<&str>)> {
        let binding = self.bindings.get(key)?;
        Some((binding.node.as_str(), binding.volume.as_deref()))
    }

    pub(crate) fn is_assumed(&self, key: &ClaimKey) -> bool {
        self.bindings.contains_key(key)
    }

    /// Whether a volume is promised to a claim.
    pub(super) fn has_volume(&self, name: &str) -> bool {
        self.volumes.contains_key(name)
    }

    /// Whether a claim cannot be provisioned for a node at present.
    pub(super) fn is_refused(&self, key: &ClaimKey, node: &str) -> bool {
        if self.refusals.is_empty() {
            return false;
        }
        let refusal = self.refusals.get(&(key.clone(), node.to_owned()));
        refusal.is_some_and(|refusal| refusal.is_new || self.now < refusal.until)
    }

    /// Whether a claim that names a node may be taken from it.
    pub(crate) fn may_be_released(&self, key: &ClaimKey) -> bool {
        let is_settled = self.since.get(key).is_some_and(|since| self.now - since >= SETTLED);
        is_settled && !self.released.contains_key(key)
    }

    /// Whether a claim has waited too long for its volume.
    pub(super) fn is_overdue(&self, key: &ClaimKey) -> bool {
        self.since.get(key).is_some_and(|since| self.now - since >= PATIENCE)
    }

    /// Brings everything up to a time. `named`: claims that name a node, have no volume and are
    /// used by pods.
    pub(super) fn pass(&mut self, now: i64, named: BTreeSet<ClaimKey>) {
        self.now = now;
        for refusal in self.refusals.values_mut() {
            if std::mem::take(&mut refusal.is_new) {
                refusal.pause = (refusal.pause * 2).clamp(FIRST, LONGEST);
                refusal.until = now + refusal.pause;
            }
        }
        self.refusals.retain(|_, refusal| now < refusal.until + LONGEST);
        let mut open = named;
        open.extend(self.bindings.keys().cloned());
        self.since.retain(|key, _| open.contains(key));
        for key in open {
            self.since.entry(key).or_insert(now);
        }
    }

    /// When something is to be decided without a change.
    pub(crate) fn ends(&self) -> impl Iterator<Item = i64> {
        let overdue = self.since.values().flat_map(|since| [since + SETTLED, since + PATIENCE]);
        overdue.chain(self.refusals.values().map(|refusal| refusal.until))
    }
}
