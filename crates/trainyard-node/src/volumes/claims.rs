//! Where the data of a claim lies on this machine.
//!
//! A static volume of kind hostPath or local lies where it says. Every other kind is kept in a folder
//! of this machine that outlives pods and restarts. Must not know containers.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};

use crate::objects::Objects;
use crate::volumes::reclaim::{self, Note};
use crate::volumes::written::{Found, Written};
use crate::volumes::{VolumeError, host_path, kinds, write};

const PROTECTED: &str = "kubernetes.io/pvc-protection";

/// A claim found.
#[derive(Debug)]
pub(crate) struct Backing {
    /// Its folder.
    pub(crate) path: PathBuf,
    /// The volume may not be written to.
    pub(crate) read_only: bool,
    /// Ownership is for the agent to set: not for a path that belongs to the machine.
    pub(crate) owned: bool,
    /// What the user should know.
    pub(crate) notice: Option<String>,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) claim: &'a str,
    /// The claim was made for this pod alone and ends with it.
    pub(crate) only_for: Option<&'a Pod>,
    /// The folder that takes the data where the volume itself names none.
    pub(crate) folder: &'a Path,
    /// The cluster whose claim it is, where that is known.
    pub(crate) cluster: Option<&'a str>,
    /// Folders of the machine that pods write to.
    pub(crate) written: &'a Written,
}

/// Where a volume's data is.
enum Lying {
    /// The volume says where.
    There(Backing),
    /// Nowhere on this machine: a folder stands in.
    Elsewhere {
        /// The volume's kind.
        kind: String,
        read_only: bool,
    },
}

/// Finds a claim's data, making its folder when it is the first time.
pub(crate) async fn backing<O: Objects>(
    wanted: Wanted<'_>,
    objects: &O,
) -> Result<Backing, VolumeError> {
    found(wanted, objects).await.map_err(|problem| VolumeError::Claim {
        namespace: wanted.namespace.to_owned(),
        claim: wanted.claim.to_owned(),
        problem,
    })
}

async fn found<O: Objects>(wanted: Wanted<'_>, objects: &O) -> Result<Backing, String> {
    let claim = objects
        .claim(wanted.namespace, wanted.claim)
        .await
        .map_err(|e| format!("failed to fetch PVC from API server: {e}"))?
        .ok_or_else(|| {
            let name = wanted.claim;
            format!(
                "failed to fetch PVC from API server: persistentvolumeclaims {name:?} not found"
            )
        })?;
    let name = bound_to(&claim)?;
    if let Some(pod) = wanted.only_for {
        owned_by(&claim, pod)?;
    }
    let volume = objects
        .volume(name)
        .await
        .map_err(|e| format!("failed to fetch PV {name} from API server: {e}"))?
        .ok_or_else(|| {
            format!(
                "failed to fetch PV {name} from API server: persistentvolumes {name:?} not found"
            )
        })?;
    let (kind, read_only) = match lying(&claim, &volume, name, wanted.written)? {
        Lying::There(backing) => return Ok(backing),
        Lying::Elsewhere { kind, read_only } => (kind, read_only),
    };
    if wanted.only_for.is_none() {
        let note = wanted.cluster.map(|cluster| Note {
            cluster: cluster.to_owned(),
            claim: claim.metadata.uid.clone().unwrap_or_default(),
            volume: name.to_owned(),
            policy: reclaim::policy_of(&volume).to_owned(),
        });
        let whose = (wanted.namespace, wanted.claim);
        // It seldom asks anybody: pods need not carry what that takes.
        Box::pin(reclaim::settle(wanted.folder, whose, note, objects)).await?;
    }
    let path = kept(wanted.folder)?;
    let notice = format!(
        "claim {:?} is bound to a volume of kind {kind}, which this node cannot mount: the local folder {} stands in for it",
        wanted.claim,
        path.display()
    );
    Ok(Backing { path, read_only, owned: true, notice: Some(notice) })
}

/// The volume a claim is bound to, with the kubelet's words where it is not.
fn bound_to(claim: &PersistentVolumeClaim) -> Result<&str, String> {
    let finalizers = claim.metadata.finalizers.as_deref().unwrap_or_default();
    if claim.metadata.deletion_timestamp.is_some() && !finalizers.iter().any(|f| f == PROTECTED) {
        return Err("PVC is being deleted".to_owned());
    }
    let phase = claim.status.as_ref().and_then(|s| s.phase.as_deref());
    if phase != Some("Bound") {
        return Err("PVC is not bound".to_owned());
    }
    let name = claim.spec.as_ref().and_then(|s| s.volume_name.as_deref()).unwrap_or_default();
    if name.is_empty() {
        return Err("PVC has empty pvc.Spec.VolumeName".to_owned());
    }
    Ok(name)
}

fn owned_by(claim: &PersistentVolumeClaim, pod: &Pod) -> Result<(), String> {
    let owners = claim.metadata.owner_references.iter().flatten();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    if owners.into_iter().any(|o| o.controller == Some(true) && o.uid == uid) {
        return Ok(());
    }
    let place = |m: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
        let part = |p: &Option<String>| p.clone().unwrap_or_default();
        format!("{}/{}", part(&m.namespace), part(&m.name))
    };
    let (claim, pod) = (place(&claim.metadata), place(&pod.metadata));
    Err(format!("PVC {claim} was not created for pod {pod} (pod is not owner)"))
}

fn lying(
    claim: &PersistentVolumeClaim,
    volume: &PersistentVolume,
    name: &str,
    written: &Written,
) -> Result<Lying, String> {
    let spec = volume.spec.clone().unwrap_or_default();
    let Some(reference) = &spec.claim_ref else {
        return Err(format!(
            "found PV object {name} but it has a nil pv.Spec.ClaimRef indicating it is not yet bound to the claim"
        ));
    };
    let (theirs, ours) = (reference.uid.as_deref(), claim.metadata.uid.as_deref());
    if theirs != ours {
        let (theirs, ours) = (theirs.unwrap_or_default(), ours.unwrap_or_default());
        return Err(format!(
            "found PV object {name} but its pv.Spec.ClaimRef.UID {theirs} does not point to claim.UID {ours}"
        ));
    }
    if let Some(mode) = spec.volume_mode.as_deref().filter(|m| *m != "Filesystem") {
        return Err(format!(
            "volume {name} has volumeMode {mode}, but is specified in volumeMounts: this node has no block volumes, use volumeMode Filesystem"
        ));
    }
    if let Some(source) = &spec.host_path {
        let kind = source.type_.as_deref().unwrap_or_default();
        let path = host_path::checked(&source.path, kind, written)?;
        let backing = Backing { path, read_only: false, owned: false, notice: None };
        return Ok(Lying::There(backing));
    }
    if let Some(source) = &spec.local {
        let unusable =
            |e: std::io::Error| format!("path {:?} of PV {name} cannot be used: {e}", source.path);
        let path = match written.find(Path::new(&source.path)).map_err(unusable)? {
            Found::There(_, path) => path,
            Found::Missing(..) => return Err(unusable(std::io::ErrorKind::NotFound.into())),
        };
        return Ok(Lying::There(Backing { path, read_only: false, owned: true, notice: None }));
    }
    let (kind, read_only) = kinds::of_persistent(&spec);
    Ok(Lying::Elsewhere { kind, read_only })
}

/// The folder that stands in, made when it is not there. What an earlier pod did to its permissions
/// stays.
fn kept(folder: &Path) -> Result<PathBuf, String> {
    let told = |e: std::io::Error| format!("making {}: {e}", folder.display());
    if !folder.is_dir() {
        if let Some(parent) = folder.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(told)?;
        }
        write::folder(folder, 0o777).map_err(told)?;
    }
    fs::canonicalize(folder).map_err(told)
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
