//! Where logs of pods that are gone are kept: in the folder of the yard that we talk to, if it is on
//! this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use trainyard_node::KeptRun;

use super::Logs;
use super::find::Found;
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

/// All runs that the folder holds of what was found.
pub(super) fn all(state: &Path, found: &Found) -> Result<Vec<KeptRun>, Failure> {
    trainyard_node::kept_runs(state, &found.namespace, &found.name)
        .map_err(|error| Failure::other("looking for kept logs", &error))
}

/// The last run of a replica that the folder holds.
pub(super) fn last(
    logs: &Logs,
    folder: Option<&Path>,
    found: &Found,
    replica: &str,
) -> Result<Option<KeptRun>, Failure> {
    let Some(state) = folder else { return Ok(None) };
    let runs = all(state, found)?;
    let wanted = logs.container.as_deref().unwrap_or(trainyard_api::names::CONTAINER);
    let own = |run: &&KeptRun| run.replica == replica;
    let of_container = runs.iter().filter(own).rfind(|run| run.container == wanted);
    Ok(of_container.or_else(|| runs.iter().rfind(own)).cloned())
}

/// The runs that the folder holds: all of them, or the one before the present one of each replica.
/// Where a replica has several, they are numbered.
pub(super) fn runs(
    logs: &Logs,
    state: &Path,
    found: &Found,
) -> Result<Vec<(String, KeptRun)>, Failure> {
    let runs = all(state, found)?;
    let mut by_replica: BTreeMap<(String, String), Vec<KeptRun>> = BTreeMap::new();
    for run in runs {
        let replica = if run.replica == "pod" { run.pod.clone() } else { run.replica.clone() };
        let container = logs.container.as_ref().is_none_or(|name| *name == run.container);
        if logs.wants(&replica) && container {
            by_replica.entry((replica, run.container.clone())).or_default().push(run);
        }
    }
    let mut chosen = Vec::new();
    for ((replica, _), mut runs) in by_replica {
        if logs.previous {
            let before = runs.len().checked_sub(2).map(|at| runs.swap_remove(at));
            chosen.extend(before.map(|run| (replica, run)));
            continue;
        }
        let several = runs.len() > 1;
        for (number, run) in runs.into_iter().enumerate() {
            let label = if several { format!("{replica}#{}", number + 1) } else { replica.clone() };
            chosen.push((label, run));
        }
    }
    Ok(chosen)
}
