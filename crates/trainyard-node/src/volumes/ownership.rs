//! `fsGroup`: the files of a volume belong to a group, which may use them.
//!
//! A pod may be changing the volume meanwhile. Must not know pods, nor how a volume is walked.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Gid, Mode, Stat, chmod, chownat, fstat};
use trainyard_holder::beneath;

use crate::volumes::walk;

/// How a volume is given to a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    pub(crate) group: u32,
    /// The group may only read.
    pub(crate) read_only: bool,
    /// Nothing is done when the volume's own folder is as it should be.
    pub(crate) only_on_mismatch: bool,
}

/// Gives everything in the volume to the group; the volume's folder last, so that a walk which was
/// cut short is seen as such.
pub(crate) fn give(root: &Path, grant: Grant) -> io::Result<()> {
    let top = beneath::real(root)?;
    if grant.only_on_mismatch && fits(&top, grant)? {
        return Ok(());
    }
    if FileType::from_raw_mode(fstat(&top)?.st_mode).is_dir() {
        walk::below(&top, |file, seen| Ok(one(file, seen, grant)?), |error| Err(error.into()))?;
    }
    Ok(one(&top, &fstat(&top)?, grant)?)
}

fn one(file: &OwnedFd, seen: &Stat, grant: Grant) -> rustix::io::Result<()> {
    chownat(file, "", None, Some(Gid::from_raw(grant.group)), AtFlags::EMPTY_PATH)?;
    let kind = FileType::from_raw_mode(seen.st_mode);
    if kind.is_symlink() {
        return Ok(());
    }
    let mut bits = seen.st_mode & 0o7777 | wanted_bits(grant);
    if kind.is_dir() {
        bits |= 0o2110;
    }
    // A descriptor that only names a file can be changed by its name under /proc alone.
    chmod(beneath::by_descriptor(file), Mode::from_raw_mode(bits))
}

fn wanted_bits(grant: Grant) -> u32 {
    if grant.read_only { 0o440 } else { 0o660 }
}

fn fits(top: &OwnedFd, grant: Grant) -> io::Result<bool> {
    let seen = fstat(top)?;
    let bits = wanted_bits(grant) | 0o2110;
    let is_folder = FileType::from_raw_mode(seen.st_mode).is_dir();
    Ok(is_folder && seen.st_gid == grant.group && seen.st_mode & bits == bits)
}

#[cfg(test)]
mod tests {
    use super::{Grant, give};
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
    use std::path::Path;

    fn seen(path: &Path) -> (u32, u32) {
        let seen = fs::symlink_metadata(path).unwrap();
        (seen.gid(), seen.permissions().mode() & 0o7777)
    }

    #[test]
    fn everything_inside_is_given_and_nothing_outside() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let volume = place.path().join("v");
        fs::create_dir_all(volume.join("a/b")).unwrap();
        fs::write(volume.join("a/b/f"), "").unwrap();
        fs::write(place.path().join("outside"), "").unwrap();
        symlink(place.path().join("outside"), volume.join("link")).unwrap();
        for (path, mode) in [("v", 0o755), ("v/a", 0o700), ("v/a/b/f", 0o600), ("outside", 0o600)] {
            fs::set_permissions(place.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        let before = seen(&place.path().join("outside"));
        let grant = Grant { group: 4321, read_only: false, only_on_mismatch: false };
        give(&volume, grant).unwrap();
        assert_eq!(seen(&volume), (4321, 0o2775));
        assert_eq!(seen(&volume.join("a")), (4321, 0o2770));
        assert_eq!(seen(&volume.join("a/b/f")), (4321, 0o660));
        assert_eq!(seen(&volume.join("link")).0, 4321);
        assert_eq!(seen(&place.path().join("outside")), before);

        fs::write(volume.join("late"), "").unwrap();
        std::os::unix::fs::chown(volume.join("late"), None, Some(0)).unwrap();
        give(&volume, Grant { only_on_mismatch: true, ..grant }).unwrap();
        assert_eq!(seen(&volume.join("late")).0, 0);
        give(&volume, Grant { group: 99, read_only: true, only_on_mismatch: true }).unwrap();
        assert_eq!(seen(&volume.join("late")).0, 99);
    }

    #[test]
    fn reading_only_gives_no_right_to_write() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let token = place.path().join("token");
        fs::write(&token, "").unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        let grant = Grant { group: 7, read_only: true, only_on_mismatch: false };
        give(place.path(), grant).unwrap();
        assert_eq!(seen(&token), (7, 0o640));
    }

    #[test]
    fn endless_nesting_ends_with_an_error() {
        let place = tempfile::tempdir().unwrap();
        let mut deep = place.path().to_owned();
        for _ in 0..200 {
            deep.push("d");
            fs::create_dir(&deep).unwrap();
        }
        let group = rustix::process::getegid().as_raw();
        let grant = Grant { group, read_only: false, only_on_mismatch: false };
        let error = give(place.path(), grant).unwrap_err();
        assert!(error.to_string().contains("nested"), "{error}");
    }

    #[test]
    fn a_folder_that_is_exchanged_for_a_link_is_never_left() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::sync::atomic::{AtomicBool, Ordering};

        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("v/a")).unwrap();
        fs::create_dir(root.join("outside")).unwrap();
        fs::write(root.join("outside/file"), "").unwrap();
        symlink("../outside", root.join("v/b")).unwrap();
        let before = seen(&root.join("outside/file"));
        let (a, b) = (root.join("v/a"), root.join("v/b"));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                }
            });
            for _ in 0..1000 {
                let grant = Grant { group: 4321, read_only: false, only_on_mismatch: false };
                give(&root.join("v"), grant).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(seen(&root.join("outside/file")), before);
        assert_ne!(seen(&root.join("outside")).0, 4321);
    }
}
