//! A pod's volumes: folders of this machine, made before its containers start.
//!
//! Owns what each kind of volume means here and who may read it. Must not know sandboxes: it hands out
//! paths and mounts, others make them appear.

mod claims;
mod empty_dir;
mod error;
mod host_path;
mod kinds;
mod mounts;
mod ownership;
mod payload;
mod prepare;
mod projected;
mod reclaim;
mod tokens;
mod walk;
mod write;
mod written;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use trainyard_api::quantity::Quantity;
use trainyard_holder::protocol::MemoryVolume;

use crate::objects::Objects;
use crate::volumes::payload::File;
use crate::volumes::tokens::TokenFile;

pub(crate) use empty_dir::used;
pub(crate) use error::VolumeError;
pub(crate) use prepare::prepare;
pub(crate) use reclaim::sweep;
pub(crate) use tokens::Renewal;
pub(crate) use written::{Found, Written};

/// Where volumes are kept.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    /// The pod's own, which ends with it.
    pub(crate) ephemeral: PathBuf,
    /// That of all claims, which stays.
    pub(crate) claims: PathBuf,
    /// The cluster whose claims they are, where that is known.
    pub(crate) cluster: Option<String>,
    /// Those of the machine that pods write to.
    pub(crate) written: Arc<Written>,
}

/// A pod's volumes, made.
#[derive(Debug, Default)]
pub(crate) struct Volumes {
    entries: BTreeMap<String, Entry>,
    notices: Vec<String>,
    tokens: Mutex<Vec<TokenInVolume>>,
}

/// One volume.
#[derive(Debug, Clone, Default)]
struct Entry {
    path: PathBuf,
    /// Whatever a container asks, it cannot write.
    read_only: bool,
    in_memory: bool,
    /// What a memory-backed one may hold.
    memory_size: Option<u64>,
    /// What one on disk may hold before the pod is evicted.
    limit: Option<Quantity>,
    /// What is written to it counts for the pod.
    counted: bool,
}

/// A token with what is needed to write it again.
#[derive(Debug, Clone)]
struct TokenInVolume {
    volume: String,
    token: TokenFile,
    mode: u32,
    owner: Option<u32>,
    group: Option<u32>,
}

impl Volumes {
    /// What the user should know: where something else stands in for what was asked.
    pub(crate) fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Volumes that the holder mounts.
    pub(crate) fn memory(&self) -> Vec<MemoryVolume> {
        let in_memory = self.entries.values().filter(|e| e.in_memory);
        in_memory.map(|e| MemoryVolume { path: e.path.clone(), size: e.memory_size }).collect()
    }

    /// Says which volume holds more than it may, if one does. Reads the disk.
    pub(crate) fn over_limit(&self) -> Option<String> {
        let limited = self.entries.iter().filter_map(|(name, e)| Some((name, e, e.limit?)));
        limited
            .filter(|(_, entry, limit)| {
                let used = i64::try_from(used(&entry.path)).unwrap_or(i64::MAX);
                Quantity::from_bytes(used) > *limit
            })
            .map(|(name, _, limit)| {
                // Ends with a space, as every kubelet writes it.
                format!("Usage of EmptyDir volume {name:?} exceeds the limit \"{limit}\". ")
            })
            .next()
    }

    /// Bytes in the pod's own volumes on the disk. Reads it.
    pub(crate) fn written(&self) -> u64 {
        let counted = self.entries.values().filter(|entry| entry.counted);
        counted.map(|entry| used(&entry.path)).fold(0, u64::saturating_add)
    }

    /// When the next token is to be renewed.
    pub(crate) fn next_renewal(&self) -> Option<Timestamp> {
        self.tokens().iter().map(|t| t.token.renew_at).min()
    }

    /// Renews the tokens that are due and says when to come again.
    pub(crate) async fn renew_tokens<O: Objects>(
        &self,
        pod: &Pod,
        objects: &O,
        now: Timestamp,
    ) -> Renewal {
        let due: Vec<TokenInVolume> =
            self.tokens().iter().filter(|t| t.token.renew_at <= now).cloned().collect();
        let mut problems = Vec::new();
        let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
        for mut old in due {
            let again = now.checked_add(tokens::AGAIN).unwrap_or(Timestamp::MAX);
            old.token.renew_at = match renewed(namespace, &old, objects).await {
                // Not sooner: a server whose tokens have ended already must not be asked in a loop.
                Ok(next) => next.max(again),
                Err(problem) => {
                    let volume = &old.volume;
                    problems.push(format!("renewing the token in volume {volume:?}: {problem}"));
                    again
                }
            };
            for token in self.tokens().iter_mut().filter(|t| t.token.path == old.token.path) {
                token.token.renew_at = old.token.renew_at;
            }
        }
        Renewal { next: self.next_renewal(), problems }
    }

    fn tokens(&self) -> std::sync::MutexGuard<'_, Vec<TokenInVolume>> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn renewed<O: Objects>(
    namespace: &str,
    old: &TokenInVolume,
    objects: &O,
) -> Result<Timestamp, String> {
    let token = &old.token;
    let given =
        objects.token(namespace, &token.account, &token.ask).await.map_err(|e| e.to_string())?;
    let data = given.bearer.clone().into_bytes();
    let file = File { data, mode: old.mode, owner: old.owner, group: old.group };
    write::replace(&token.path, &file).map_err(|e| e.to_string())?;
    Ok(tokens::renew_at(&given))
}
