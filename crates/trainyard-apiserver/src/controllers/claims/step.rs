//! The next step for a claim, and for a volume. Pure.
//!
//! What is found wrong in a cache may be right on the server: whoever carries out a loss or a release
//! looks there first.

use std::collections::BTreeMap;

use super::PROVISIONER;
use super::choose::{choose, mismatch};
use super::view::{BOUND_BY_CONTROLLER, Claim, Class, PROVISIONED_BY, Volume};
use crate::controllers::events::Weight;

/// A class of this provisioner has only the volumes that somebody makes by hand.
const NO_PROVISIONER: &str = "kubernetes.io/no-provisioner";

/// Words for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) weight: Weight,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

fn words(weight: Weight, reason: &'static str, message: impl Into<String>) -> Words {
    Words { weight, reason, message: message.into() }
}

/// The next step for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ClaimStep {
    /// Nothing can be done until something changes.
    Wait(Option<Words>),
    /// It takes the class that is the default.
    TakeClass(String),
    /// It is bound to this volume; also when that is half done.
    Bind(String),
    /// A directory is made for it.
    Provision(Plan),
    /// Its volume is gone, or somebody else's.
    Lost(Words),
}

/// How a volume is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) class: String,
    pub(super) reclaim: String,
    /// Whether the class is one that this machine lacks.
    pub(super) stands_in: bool,
    /// Whether nothing but the claim knows of the class.
    pub(super) class_unknown: bool,
}

/// What a claim's step depends on.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub(super) volumes: &'a BTreeMap<String, Volume>,
    pub(super) classes: &'a BTreeMap<String, Class>,
    /// Whether a pod wants the claim.
    pub(super) wanted: bool,
}

/// The next step for a claim.
pub(super) fn of_claim(claim: &Claim, around: &Around<'_>) -> ClaimStep {
    if claim.is_bound() {
        return bound(claim, around);
    }
    if !claim.spec.volume_name.is_empty() {
        return named(claim, around);
    }
    let class = claim.class().and_then(|name| around.classes.get(name));
    let delayed = class.is_some_and(Class::waits) && !around.wanted;
    let found = choose(claim, around.volumes.values());
    match found.filter(|volume| !delayed || volume.is_for(&claim.metadata)) {
        Some(volume) => ClaimStep::Bind(volume.metadata.name.clone()),
        None => without_volume(claim, around, delayed),
    }
}

fn bound(claim: &Claim, around: &Around<'_>) -> ClaimStep {
    let lost = |message| ClaimStep::Lost(words(Weight::Warning, "ClaimLost", message));
    if claim.spec.volume_name.is_empty() {
        return lost(
            "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!",
        );
    }
    let Some(volume) = around.volumes.get(&claim.spec.volume_name) else {
        return lost("Bound claim has lost its PersistentVolume. Data on the volume is lost!");
    };
    match &volume.spec.claim_ref {
        Some(to) if to.uid != claim.metadata.uid => ClaimStep::Lost(words(
            Weight::Warning,
            "ClaimMisbound",
            "Two claims are bound to the same volume, this one is bound incorrectly",
        )),
        _ => ClaimStep::Bind(volume.metadata.name.clone()),
    }
}

fn named(claim: &Claim, around: &Around<'_>) -> ClaimStep {
    let name = &claim.spec.volume_name;
    let Some(volume) = around.volumes.get(name) else { return ClaimStep::Wait(None) };
    if volume.is_for(&claim.metadata) {
        return ClaimStep::Bind(name.clone());
    }
    if volume.spec.claim_ref.is_some() {
        let message = format!("volume {name:?} already bound to a different claim.");
        return ClaimStep::Wait(Some(words(Weight::Warning, "FailedBinding", message)));
    }
    match mismatch(claim, volume) {
        None => ClaimStep::Bind(name.clone()),
        Some(why) => {
            let message = format!("Cannot bind to requested volume {name:?}: {why}");
            ClaimStep::Wait(Some(words(Weight::Warning, "VolumeMismatch", message)))
        }
    }
}

fn without_volume(claim: &Claim, around: &Around<'_>, delayed: bool) -> ClaimStep {
    let Some(name) = claim.class() else {
        let default = around.classes.values().find(|class| class.is_default());
        return default.map_or_else(nothing_available, |class| {
            ClaimStep::TakeClass(class.metadata.name.clone())
        });
    };
    if delayed {
        let message = "waiting for first consumer to be created before binding";
        return ClaimStep::Wait(Some(words(Weight::Normal, "WaitForFirstConsumer", message)));
    }
    if name.is_empty() {
        return nothing_available();
    }
    let class = around.classes.get(name);
    let failed = |why: &str| {
        let message = format!("Failed to provision volume with StorageClass {name:?}: {why}");
        ClaimStep::Wait(Some(words(Weight::Warning, "ProvisioningFailed", message)))
    };
    if class.is_some_and(|class| class.provisioner == NO_PROVISIONER) {
        return failed("the class has no provisioner: create a PersistentVolume of this class");
    }
    if claim.mode() != "Filesystem" {
        return failed("block devices cannot be provisioned here: use volumeMode Filesystem");
    }
    if claim
        .spec
        .selector
        .as_ref()
        .is_some_and(|selector| selector.as_object().is_some_and(|selector| !selector.is_empty()))
    {
        return failed("claim Selector is not supported");
    }
    ClaimStep::Provision(Plan {
        class: name.to_owned(),
        reclaim: class
            .and_then(|class| class.reclaim_policy.clone())
            .unwrap_or("Delete".to_owned()),
        stands_in: class.is_none_or(|class| class.provisioner != PROVISIONER),
        class_unknown: class.is_none(),
    })
}

fn nothing_available() -> ClaimStep {
    let message = "no persistent volumes available for this claim and no storage class is set";
    ClaimStep::Wait(Some(words(Weight::Normal, "FailedBinding", message)))
}

/// The next step for a volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VolumeStep {
    /// Its claim is seen to instead.
    LeaveToClaim,
    /// It waits for a claim.
    Available,
    /// It is bound.
    Bound,
    /// Its claim is gone.
    Release,
    /// Its claim has taken another volume.
    Unbind,
}

/// The next step for a volume whose claim reference names this claim.
pub(super) fn of_volume(volume: &Volume, claim: Option<&Claim>) -> VolumeStep {
    let Some(to) = &volume.spec.claim_ref else { return VolumeStep::Available };
    if to.uid.is_empty() {
        return VolumeStep::Available;
    }
    let Some(claim) = claim.filter(|claim| claim.metadata.uid == to.uid) else {
        return VolumeStep::Release;
    };
    if claim.spec.volume_name.is_empty() {
        return VolumeStep::LeaveToClaim;
    }
    if claim.spec.volume_name == volume.metadata.name {
        return VolumeStep::Bound;
    }
    let made_for_it = volume.metadata.annotations.contains_key(PROVISIONED_BY);
    if made_for_it && volume.spec.reclaim == "Delete" {
        VolumeStep::Release
    } else {
        VolumeStep::Unbind
    }
}

/// Whether a controller, not a person, has bound a volume.
pub(super) fn is_bound_by_us(volume: &Volume) -> bool {
    volume.metadata.annotations.contains_key(BOUND_BY_CONTROLLER)
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
