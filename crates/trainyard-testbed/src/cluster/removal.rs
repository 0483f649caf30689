//! Removing large trees. Some file systems take milliseconds for each file, but take many at the same time.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Removals at the same time.
const AT_ONCE: usize = 16;

/// Removes a folder with all that is in it, if it is there.
pub(super) fn remove_tree(root: &Path) -> io::Result<()> {
    if !root.is_dir() {
        return Ok(());
    }
    let (mut levels, mut files) = (vec![vec![root.to_owned()]], Vec::new());
    while let Some(folders) = levels.last().filter(|folders| !folders.is_empty()) {
        let mut below = Vec::new();
        for folder in folders {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let found = if entry.file_type()?.is_dir() { &mut below } else { &mut files };
                found.push(entry.path());
            }
        }
        levels.push(below);
    }
    remove_all(&files, |file| fs::remove_file(file))?;
    levels.iter().rev().try_for_each(|folders| remove_all(folders, |folder| fs::remove_dir(folder)))
}

/// All of them; the first error, when all have been tried.
fn remove_all(
    paths: &[PathBuf],
    remove: impl Fn(&Path) -> io::Result<()> + Sync,
) -> io::Result<()> {
    let (next, error) = (AtomicUsize::new(0), Mutex::new(None));
    let work = || {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            match remove(path) {
                Err(failed) if failed.kind() != io::ErrorKind::NotFound => {
                    error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failed);
                }
                _ => {}
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(paths.len()) {
            scope.spawn(work);
        }
    });
    error.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_goes_and_what_its_links_lead_to_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (tree, other) = (dir.path().join("tree"), dir.path().join("other"));
        fs::create_dir_all(tree.join("a/b/c")).unwrap();
        fs::create_dir_all(tree.join("d")).unwrap();
        fs::create_dir(&other).unwrap();
        for file in [tree.join("x"), tree.join("a/b/x"), other.join("x")] {
            fs::write(file, "x").unwrap();
        }
        std::os::unix::fs::symlink(&other, tree.join("d/link")).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists());
        assert!(other.join("x").exists());
        remove_tree(&tree).unwrap();
    }
}
