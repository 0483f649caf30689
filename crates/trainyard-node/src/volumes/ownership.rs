//! `fsGroup`: the files of a volume belong to a group, which may use them.
//!
//! A pod may be changing the volume meanwhile, so every file is held open, never named twice, and no
//! link is followed. Must not know pods.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Gid, Mode, OFlags, chmod, chownat, fstat, openat};
use rustix::io::Errno;

/// Folders below folders that are walked. Each level holds a descriptor open.
const DEEPEST: usize = 128;

const NO_LINK: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

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
    let top = openat(CWD, root, NO_LINK, Mode::empty())?;
    if grant.only_on_mismatch && fits(&top, grant)? {
        return Ok(());
    }
    if FileType::from_raw_mode(fstat(&top)?.st_mode).is_dir() {
        walk(&top, grant)?;
    }
    Ok(one(&top, grant)?)
}

fn walk(top: &OwnedFd, grant: Grant) -> io::Result<()> {
    let mut open = vec![listing(top)?];
    while let Some(folder) = open.last_mut() {
        let Some(entry) = folder.next().transpose()? else {
            open.pop();
            continue;
        };
        if matches!(entry.file_name().to_bytes(), b"." | b"..") {
            continue;
        }
        let found = match openat(folder.fd()?, entry.file_name(), NO_LINK, Mode::empty()) {
            Err(Errno::NOENT) => continue,
            other => other?,
        };
        one(&found, grant)?;
        if FileType::from_raw_mode(fstat(&found)?.st_mode).is_dir() {
            if open.len() >= DEEPEST {
                let text = format!("folders are nested more than {DEEPEST} deep");
                return Err(io::Error::other(text));
            }
            open.push(listing(&found)?);
        }
    }
    Ok(())
}

fn listing(folder: &OwnedFd) -> io::Result<Dir> {
    Ok(Dir::new(openat(folder, ".", FOLDER, Mode::empty())?)?)
}

fn one(file: &OwnedFd, grant: Grant) -> rustix::io::Result<()> {
    let seen = fstat(file)?;
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
    chmod(format!("/proc/self/fd/{}", file.as_raw_fd()), Mode::from_raw_mode(bits))
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
}
