//! Opening a path inside a folder without ever leaving that folder.
//!
//! A pod may plant symbolic links in a volume it shares, and exchange them for folders at any time.
//! What is opened here is therefore a descriptor, which stays what it was when it was looked up; a
//! path that was checked and is opened again by its name is not. Must not know volumes or mounts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat, openat2};
use rustix::io::Errno;

const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
/// Lookups that are begun again because something was renamed meanwhile. One who renames without
/// pause makes them fail, and gets nothing by it.
const MOST_LOOKUPS: usize = 128;

/// Opens a folder that nobody but its owner can have put something else in the place of.
pub fn folder(path: &Path) -> io::Result<OwnedFd> {
    Ok(openat(CWD, path, PATH_ONLY | OFlags::DIRECTORY, Mode::empty())?)
}

/// Opens a path below a folder, as a place only: for what is below it, and for mounting. Links are
/// followed as long as they stay below. The empty path is the folder itself.
pub fn open(folder: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let folder = folder.as_fd();
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..MOST_LOOKUPS {
        match openat2(folder, path, PATH_ONLY, Mode::empty(), rules) {
            Err(Errno::AGAIN | Errno::INTR) => {}
            // Old kernels and some sandboxes do not have the call.
            Err(Errno::NOSYS | Errno::PERM) => return without_links(folder, path),
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// Opens a path below a folder and follows no link at all.
fn without_links(folder: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let mut reached = openat(folder, ".", PATH_ONLY | OFlags::DIRECTORY, Mode::empty())?;
    for part in path.components() {
        let name = match part {
            Component::CurDir => continue,
            Component::Normal(name) => name,
            _ => return Err(Errno::XDEV),
        };
        reached = openat(&reached, name, PATH_ONLY | OFlags::NOFOLLOW, Mode::empty())?;
        if FileType::from_raw_mode(fstat(&reached)?.st_mode).is_symlink() {
            return Err(Errno::LOOP);
        }
    }
    Ok(reached)
}

#[cfg(test)]
mod tests {
    use super::{folder, open, without_links};
    use std::fs;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn place() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("volume/v1")).unwrap();
        fs::create_dir(root.join("outside")).unwrap();
        fs::write(root.join("outside/secret"), "x").unwrap();
        fs::write(root.join("volume/v1/file"), "y").unwrap();
        symlink("v1", root.join("volume/current")).unwrap();
        symlink("../outside", root.join("volume/up")).unwrap();
        symlink(root.join("outside"), root.join("volume/absolute")).unwrap();
        symlink("loop", root.join("volume/loop")).unwrap();
        symlink("/proc/self/cwd", root.join("volume/magic")).unwrap();
        dir
    }

    #[test]
    fn paths_that_lead_out_are_refused_with_the_kernels_help_and_without() {
        let place = place();
        let volume = folder(&place.path().join("volume")).unwrap();
        for path in ["", ".", "v1", "./v1/file"] {
            assert!(open(&volume, Path::new(path)).is_ok(), "{path}");
            assert!(without_links(volume.as_fd(), Path::new(path)).is_ok(), "{path}");
        }
        assert!(open(&volume, Path::new("current/file")).is_ok());
        assert!(without_links(volume.as_fd(), Path::new("current/file")).is_err());
        for path in
            ["..", "../outside", "/etc", "up", "up/secret", "absolute/secret", "loop", "magic"]
        {
            assert!(open(&volume, Path::new(path)).is_err(), "{path}");
            assert!(without_links(volume.as_fd(), Path::new(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn a_folder_that_is_exchanged_for_a_link_is_never_left() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use std::sync::atomic::{AtomicBool, Ordering};

        let place = place();
        let root = place.path().to_owned();
        let (a, b) = (root.join("volume/v1"), root.join("volume/up"));
        let volume = folder(&root.join("volume")).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    renameat_with(CWD, &a, CWD, &b, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let mut found = 0;
            for _ in 0..2000 {
                let Ok(opened) = open(&volume, Path::new("v1")) else { continue };
                found += 1;
                let names = rustix::fs::openat(
                    &opened,
                    "secret",
                    rustix::fs::OFlags::RDONLY,
                    rustix::fs::Mode::empty(),
                );
                assert!(names.is_err(), "a descriptor leads out of the volume");
            }
            stop.store(true, Ordering::Relaxed);
            assert!(found > 0, "nothing was opened in 2000 lookups");
        });
    }
}
