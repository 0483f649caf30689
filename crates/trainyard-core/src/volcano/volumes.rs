//! Volumes that all pods of a job share: their claims, and how pods mount them.
//!
//! The name of a claim that is made follows from the job's UID, so that it needs no place in the
//! specification. A claim that the specification names has to be there before the PodGroup is made.
//! Must not know whether a claim is bound.

use serde_json::{Map, Value, json};
use trainyard_api::{
    Meta,
    volcano::{JobSpec, VolumeSpec},
};

use super::{Observed, objects};
use crate::{
    child::Child,
    container::{containers, list, mount},
    plan::{Create, Write},
};

/// A claim of the job.
struct Claim<'s> {
    name: String,
    volume: String,
    path: &'s str,
    /// What it is made from, unless it is somebody else's.
    made_from: Option<&'s Value>,
}

fn claims<'s>(meta: &Meta, spec: &'s JobSpec) -> Vec<Claim<'s>> {
    let mut claims: Vec<Claim<'s>> = Vec::new();
    for (at, volume) in spec.volumes.iter().enumerate() {
        let VolumeSpec { mount_path, volume_claim_name, volume_claim } = volume;
        let word = word(&meta.uid, at);
        let (name, made_from) = if volume_claim_name.is_empty() {
            (format!("{}-pvc-{word}", meta.name), volume_claim.as_ref())
        } else {
            (volume_claim_name.clone(), None)
        };
        if !claims.iter().any(|other| other.name == name) {
            let volume = format!("{}-{word}", meta.name);
            claims.push(Claim { name, volume, path: mount_path, made_from });
        }
    }
    claims
}

/// Claims that are to be made.
#[must_use]
pub(super) fn missing(seen: &Observed<'_>, spec: &JobSpec) -> Vec<Write> {
    let meta = &seen.job.metadata;
    // Somebody else's of that name is met when it is made.
    let is_there = |name: &str| {
        let is_own = |owner: &str| *owner == *meta.uid;
        let mut all = seen.claims.iter();
        all.any(|claim| *claim.name == *name && claim.owner.as_deref().is_some_and(is_own))
    };
    let made = claims(meta, spec).into_iter().filter(|claim| !is_there(&claim.name));
    made.filter_map(|claim| {
        let body = json!({
            "apiVersion": Child::Claim.api_version(),
            "kind": Child::Claim.kind(),
            "metadata": objects::metadata(meta, &claim.name),
            "spec": claim.made_from?,
        });
        let create = Create { name: claim.name, group: "".into(), index: 0, body };
        Some(Write::Create(Child::Claim, create))
    })
    .collect()
}

/// Why the job cannot begin: a claim that it names does not exist.
#[must_use]
pub(super) fn problem(seen: &Observed<'_>, spec: &JobSpec) -> Option<String> {
    let is_there = |name: &str| seen.claims.iter().any(|claim| *claim.name == *name);
    let named = spec.volumes.iter().map(|volume| volume.volume_claim_name.as_str());
    let absent = named.filter(|name| !name.is_empty()).find(|name| !is_there(name))?;
    Some(format!(
        "pvc {absent} is not found, the job will be in the Pending state until the PVC is created"
    ))
}

/// Names of all claims, as the status lists them.
#[must_use]
pub(super) fn names(meta: &Meta, spec: &JobSpec) -> Vec<String> {
    claims(meta, spec).into_iter().map(|claim| claim.name).collect()
}

/// Mounts the volumes in a pod's ordinary containers.
pub(super) fn mount_in(pod_spec: &mut Value, meta: &Meta, spec: &JobSpec) {
    for claim in claims(meta, spec) {
        let source = json!({"persistentVolumeClaim": {"claimName": claim.name}});
        add(pod_spec, &claim.volume, &source);
        for container in containers(pod_spec, false) {
            mount(container, &claim.volume, claim.path);
        }
    }
}

/// Adds a volume to a pod.
pub(super) fn add(pod_spec: &mut Value, name: &str, source: &Value) {
    let mut volume = Map::from_iter([("name".to_owned(), Value::from(name))]);
    volume.extend(source.as_object().cloned().unwrap_or_default());
    if let Some(volumes) = pod_spec.as_object_mut().and_then(|spec| list(spec, "volumes"))
        && !volumes.iter().any(|other| other["name"] == name)
    {
        volumes.push(Value::Object(volume));
    }
}

/// Twelve letters and digits that follow from the job's UID and the volume's place.
fn word(uid: &str, at: usize) -> String {
    const LETTERS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for byte in uid.bytes().chain(at.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let mut word = String::new();
    for _ in 0..12 {
        let at = usize::try_from(hash % 36).unwrap_or(0);
        word.push(LETTERS.get(at).copied().map_or('0', char::from));
        hash /= 36;
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_long_enough_and_differ() {
        let words: Vec<String> = (0..3).map(|at| word("uid", at)).collect();
        assert!(words.iter().all(|word| word.len() == 12));
        assert_ne!(words[0], words[1]);
        assert_eq!(words[0], word("uid", 0));
        assert_ne!(words[0], word("other", 0));
    }
}
