//! Where logs of pods that are gone are kept: in the folder of the yard that we talk to, if it is on
//! this machine.

use std::path::{Path, PathBuf};

use crate::cluster::Cluster;
use crate::commands::up::notice::Notice;
use crate::failure::Failure;
use crate::yard::folder::Folder;

/// The state folder of the yard's node; none when the server is no yard of ours.
pub(super) fn folder(cluster: &Cluster, given: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
    if let Some(given) = given {
        let folder = Folder::existing(given).ok_or_else(|| {
            Failure::usage(format!("there is no folder {}", given.display()))
                .hint("--data-dir names the folder that `trainyard up` was given")
        })?;
        return Ok(Some(folder.node()));
    }
    let candidates = [cluster.folder.clone(), Folder::usual().ok()];
    let yard = candidates
        .into_iter()
        .flatten()
        .filter_map(|path| Folder::existing(&path))
        .find(|folder| Notice::read(folder).is_some_and(|notice| notice.url == cluster.server));
    Ok(yard.map(|folder| folder.node()))
}
