//! What this machine has of a cluster. A cluster that has been stopped leaves nothing.

use std::fs;
use std::path::Path;

use anyhow::Result;

/// The cluster's folder, mounts of it, control groups whose names begin like this, processes in them or with the
/// folder in their words: what ends with a node's namespaces and what does not.
pub(super) fn leftovers(folder: &Path, group: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if folder.exists() {
        found.push(folder.display().to_string());
    }
    let of_folder = folder.display().to_string();
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    found.extend(mounts.lines().filter(|line| line.contains(&of_folder)).map(str::to_owned));
    // One hierarchy, or several.
    for hierarchy in fs::read_dir("/sys/fs/cgroup")?.flatten() {
        let below = fs::read_dir(hierarchy.path()).into_iter().flatten().flatten();
        let places = std::iter::once(hierarchy.path()).chain(below.map(|entry| entry.path()));
        let of_cluster = |path: &Path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(group))
        };
        found.extend(places.filter(|path| of_cluster(path)).map(|path| path.display().to_string()));
    }
    let own = std::process::id().to_string();
    for process in fs::read_dir("/proc")?.flatten().filter(|process| *process.file_name() != *own) {
        let read = |file: &str| fs::read(process.path().join(file)).unwrap_or_default();
        let words = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
        if String::from_utf8_lossy(&read("cgroup")).contains(group) || words.contains(&of_folder) {
            found.push(format!("process {} ({words})", process.file_name().display()));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_and_a_process_that_works_with_it_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("cluster-of-a-test");
        let found = || leftovers(&folder, "no-such-group-").unwrap();
        assert_eq!(found(), Vec::<String>::new());
        fs::create_dir(&folder).unwrap();
        let fifo = folder.join("never");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        let mut reader = std::process::Command::new("cat").arg(&fifo).spawn().unwrap();
        // It has no words of its own before it has become that program.
        let is_there = || found().iter().any(|line| line.contains("(cat "));
        let seen = (0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            is_there()
        });
        reader.kill().unwrap();
        reader.wait().unwrap();
        assert!(seen, "{:?}", found());
        assert_eq!(found(), [folder.display().to_string()]);
    }
}
