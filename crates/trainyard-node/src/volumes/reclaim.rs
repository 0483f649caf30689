//! When the folder that stands in for a claim's volume is removed: when the claim is gone and its volume
//! was to be deleted with it.
//!
//! Owns the notes beside those folders. What has no note was not made here, and stays; so does what was
//! kept for another cluster, and what a volume that is to be retained ever held. Must not know pods.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::PersistentVolume;
use serde::{Deserialize, Serialize};
use trainyard_holder::sweep::sweep as remove;

use crate::objects::{Objects, ObjectsError};

/// The policy by which data goes with its claim.
const DELETE: &str = "Delete";
/// Beside the folders of namespaces, whose names do not begin with a dot: what is to be removed.
const GONE: &str = ".gone";

/// What is noted of a folder when it is made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The cluster it is kept for.
    pub(super) cluster: String,
    /// The claim's UID.
    pub(super) claim: String,
    /// The volume's name.
    pub(super) volume: String,
    /// The volume's reclaim policy, as last seen.
    pub(super) policy: String,
}

impl Note {
    fn read(folder: &Path) -> Option<Self> {
        serde_json::from_slice(&fs::read(place(folder)).ok()?).ok()
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        // Several pods may take the same claim at once.
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let place = place(folder);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let fresh = place.with_extension(format!("{number}.new"));
        fs::write(&fresh, serde_json::to_vec(self).map_err(io::Error::other)?)?;
        fs::rename(fresh, place)
    }

    fn forget(folder: &Path) -> io::Result<()> {
        match fs::remove_file(place(folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Where a folder's note is: a claim's name does not begin with a dot.
fn place(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!(".{name}.json"))
}

/// The policy of a volume; what the API server takes for one that says none.
pub(super) fn policy_of(volume: &PersistentVolume) -> &str {
    let spec = volume.spec.as_ref();
    spec.and_then(|spec| spec.persistent_volume_reclaim_policy.as_deref()).unwrap_or("Retain")
}

/// What is to become of a folder.
#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Stays,
    /// The same, and its volume's policy is this now.
    StaysUnder(String),
    Goes,
}

fn fate(note: &Note, claimed: bool, volume: Option<&PersistentVolume>) -> Fate {
    let mut policy = note.policy.as_str();
    if let Some(volume) = volume {
        let claim = volume.spec.as_ref().and_then(|spec| spec.claim_ref.as_ref());
        if claim.and_then(|claim| claim.uid.as_deref()) != Some(&note.claim) {
            // It was freed for others, which is only done with data that is to be kept.
            return Fate::Stays;
        }
        policy = policy_of(volume);
    }
    match (claimed, policy) {
        (true, policy) if policy != note.policy => Fate::StaysUnder(policy.to_owned()),
        (false, DELETE) => Fate::Goes,
        _ => Fate::Stays,
    }
}

async fn learnt<O: Objects>(
    note: &Note,
    namespace: &str,
    claim: &str,
    objects: &O,
) -> Result<Fate, ObjectsError> {
    let there = objects.claim(namespace, claim).await?;
    let claimed = there.is_some_and(|claim| claim.metadata.uid.as_ref() == Some(&note.claim));
    let volume = objects.volume(&note.volume).await?;
    Ok(fate(note, claimed, volume.as_ref()))
}

/// Makes sure that a claim does not find what an earlier one of its name was to take with it, and notes
/// whose folder it is, if it is to be made. Without a cluster to tell from others nothing is noted.
pub(super) async fn settle<O: Objects>(
    folder: &Path,
    claim: (&str, &str),
    note: Option<Note>,
    objects: &O,
) -> Result<(), String> {
    let told = |e: io::Error| format!("noting whose {} is: {e}", folder.display());
    // In this order: a note is written before its folder is made.
    let there = folder.exists();
    let old = Note::read(folder);
    match (old.filter(|_| there), note) {
        (Some(old), Some(new)) if (&old.cluster, &old.claim) == (&new.cluster, &new.claim) => {
            if old == new { Ok(()) } else { new.write(folder) }
        }
        (Some(old), Some(new)) if old.cluster == new.cluster => {
            let fate = learnt(&old, claim.0, claim.1, objects).await.map_err(|e| e.to_string())?;
            if fate == Fate::Goes {
                set_aside(folder).and_then(|()| new.write(folder))
            } else {
                Note::forget(folder)
            }
        }
        (None, Some(new)) if !there => {
            let mut private = DirBuilder::new();
            let private = private.recursive(true).mode(0o700);
            let made = folder.parent().map_or(Ok(()), |parent| private.create(parent));
            made.and_then(|()| new.write(folder))
        }
        // Made by somebody else, kept for another cluster, or nobody knows for which.
        _ => Note::forget(folder),
    }
    .map_err(told)
}

/// Removes the folders whose claims are gone with their data, unless they are in use; says whose they
/// were, as `namespace/claim`.
pub(crate) async fn sweep<O: Objects>(
    claims: &Path,
    cluster: &str,
    objects: &O,
    in_use: impl Fn(&str, &str) -> bool,
) -> Vec<String> {
    let mut removed = Vec::new();
    for (namespace, claim, folder) in folders(claims) {
        let Some(note) = Note::read(&folder).filter(|note| note.cluster == cluster) else {
            continue;
        };
        let done = match learnt(&note, &namespace, &claim, objects).await {
            Ok(Fate::Stays) => Ok(()),
            Ok(Fate::StaysUnder(policy)) => Note { policy, ..note }.write(&folder),
            Ok(Fate::Goes) if in_use(&namespace, &claim) => Ok(()),
            Ok(Fate::Goes) => set_aside(&folder).and_then(|()| {
                removed.push(format!("{namespace}/{claim}"));
                Note::forget(&folder)
            }),
            Err(error) => {
                tracing::debug!(namespace, claim, %error, "whether a claim is there is not known");
                Ok(())
            }
        };
        if let Err(error) = done {
            tracing::warn!(namespace, claim, %error, "the data of a claim that is gone stays");
        }
        // A namespace without claims; others refuse.
        let _ = folder.parent().map(fs::remove_dir);
    }
    let gone = claims.join(GONE);
    // A panic in there has been reported where it happened.
    let _ = tokio::task::spawn_blocking(move || clear(&gone)).await;
    removed
}

/// Namespace, claim and folder of all that is kept.
fn folders(claims: &Path) -> Vec<(String, String, PathBuf)> {
    let below = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let named = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            (!name.starts_with('.')).then_some((name, entry.path()))
        });
        named.collect::<Vec<_>>()
    };
    let namespaces = below(claims).into_iter();
    namespaces
        .flat_map(|(namespace, folder)| {
            let claims = below(&folder).into_iter();
            claims.map(move |(claim, folder)| (namespace.clone(), claim, folder))
        })
        .collect()
}

/// Takes a folder out of its place at once; its files are removed later.
fn set_aside(folder: &Path) -> io::Result<()> {
    let claims = folder.ancestors().nth(2).unwrap_or(folder);
    let gone = claims.join(GONE);
    fs::create_dir_all(&gone)?;
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut free = (0_u32..).map(|number| gone.join(format!("{name}-{number}")));
    let place = free.find(|place| !place.exists()).unwrap_or(gone);
    fs::rename(folder, place)
}

fn clear(gone: &Path) {
    for entry in fs::read_dir(gone).into_iter().flatten().flatten() {
        let path = entry.path();
        if let Err(error) = remove(&path) {
            tracing::warn!(path = %path.display(), %error, "data of a claim that is gone is left");
        }
    }
    // Others refuse.
    let _ = fs::remove_dir(gone);
}

#[cfg(test)]
#[path = "reclaim_tests.rs"]
mod tests;
