//! The control groups of nodes: the one thing of a node that no namespace ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

const MOUNT: &str = "/sys/fs/cgroup";
/// The hierarchy of version 2 beside those of version 1, where both are.
const UNIFIED: &str = "unified";
/// Ended processes leave their groups a moment later.
const PATIENCE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(100);

/// The group of a node, as seen from the root of a hierarchy.
pub(super) fn root(cluster: &str, index: usize) -> String {
    format!("/trainyard-{cluster}-node{index}")
}

/// Makes a node's group in every hierarchy.
pub(super) fn create(cluster: &str, index: usize) -> Result<()> {
    let root = root(cluster, index);
    for hierarchy in hierarchies(Path::new(MOUNT))? {
        if hierarchy.ends_with(UNIFIED) {
            continue;
        }
        delegate(&hierarchy)?;
        let group = within(&hierarchy, &root);
        fs::create_dir_all(&group).with_context(|| format!("cannot make {}", group.display()))?;
        // A new group of version 1 has no cpus until it is told which.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            let own = group.join(file);
            if !hierarchy.join("cgroup.controllers").exists() && own.exists() {
                let all = fs::read_to_string(hierarchy.join(file))?;
                fs::write(&own, all).with_context(|| format!("cannot set {}", own.display()))?;
            }
        }
    }
    Ok(())
}

/// Removes a node's groups, whose processes have been ended.
pub(super) async fn remove(cluster: &str, index: usize) -> Result<()> {
    let root = root(cluster, index);
    let started = Instant::now();
    loop {
        let mut left = None;
        for hierarchy in hierarchies(Path::new(MOUNT))? {
            let group = within(&hierarchy, &root);
            remove_tree(&group);
            if group.exists() {
                left = Some(group);
            }
        }
        match left {
            None => return Ok(()),
            Some(group) if started.elapsed() > PATIENCE => {
                bail!("cannot remove the control group {}", group.display())
            }
            Some(_) => tokio::time::sleep(POLL).await,
        }
    }
}

/// In version 2, children have the controllers that their parent gives them.
fn delegate(hierarchy: &Path) -> Result<()> {
    let Ok(controllers) = fs::read_to_string(hierarchy.join("cgroup.controllers")) else {
        return Ok(());
    };
    let file = hierarchy.join("cgroup.subtree_control");
    let words: Vec<_> = controllers.split_whitespace().map(|word| format!("+{word}")).collect();
    fs::write(&file, words.join(" "))
        .with_context(|| format!("cannot give controllers in {}", file.display()))
}

/// The roots of all hierarchies: one of version 2, or several of version 1.
fn hierarchies(mount: &Path) -> Result<Vec<PathBuf>> {
    if mount.join("cgroup.controllers").exists() {
        return Ok(vec![mount.to_owned()]);
    }
    let entries = fs::read_dir(mount)
        .with_context(|| format!("there are no control groups at {}", mount.display()))?;
    let mut found = Vec::new();
    for entry in entries.flatten() {
        // Some are links to others.
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(entry.path());
        }
    }
    found.sort_unstable();
    Ok(found)
}

fn within(hierarchy: &Path, root: &str) -> PathBuf {
    hierarchy.join(root.trim_start_matches('/'))
}

/// From the leaves: a group with children cannot be removed. The files in them are the kernel's.
fn remove_tree(group: &Path) {
    let Ok(entries) = fs::read_dir(group) else { return };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_of_either_version_are_found() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["memory", "cpu", UNIFIED] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink("cpu", dir.path().join("cpuacct")).unwrap();
        let found = hierarchies(dir.path()).unwrap();
        assert_eq!(found, ["cpu", "memory", UNIFIED].map(|name| dir.path().join(name)));
        fs::write(dir.path().join("cgroup.controllers"), "cpu memory\n").unwrap();
        assert_eq!(hierarchies(dir.path()).unwrap(), [dir.path()]);
    }

    #[test]
    fn groups_go_from_the_leaves() {
        let dir = tempfile::tempdir().unwrap();
        let group = dir.path().join("a");
        fs::create_dir_all(group.join("b/c")).unwrap();
        fs::create_dir_all(group.join("d")).unwrap();
        remove_tree(&group);
        assert!(!group.exists());
    }
}
