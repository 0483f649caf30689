//! Removing a folder whatever was written in it: any depth, any modes, any number of entries.
//!
//! Somebody may still be moving things about in it. So no symbolic link is followed, and nobody goes up
//! into a folder other than the one they came down from. Must not know whose folder it is.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmod, fstat, openat, unlinkat};
use rustix::io::Errno;

use crate::beneath;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const PLACE: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// So often something may have been moved or added meanwhile before the rest is left.
const MOST_DISTURBANCES: usize = 1000;

/// Removes `folder` and all in it. One that is not there is no error. Its name must be one that nobody
/// but the caller can have put something else under.
pub fn sweep(folder: &Path) -> io::Result<()> {
    let Some(name) = folder.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a folder that has a name"));
    };
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let parent = match openat(CWD, parent.unwrap_or(Path::new(".")), flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        other => other?,
    };
    let name = CString::new(name.as_encoded_bytes())?;
    match unlinkat(&parent, &name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(_) => {}
    }
    let top = enter(&parent, &name)?;
    let mut disturbances = 0;
    loop {
        empty(&top, &mut disturbances)?;
        match unlinkat(&parent, &name, AtFlags::REMOVEDIR) {
            Err(error) => disturbed(error, &mut disturbances)?,
            Ok(()) => return Ok(()),
        }
    }
}

/// Opens a folder, making it ours to read and change when its mode forbids it.
fn enter(parent: impl AsFd, name: &CString) -> Result<OwnedFd, Errno> {
    let opened = match openat(&parent, name, FOLDER, Mode::empty()) {
        Err(Errno::ACCESS) => {
            // By the descriptor: a link may stand under that name by now.
            let place = openat(&parent, name, PLACE, Mode::empty())?;
            chmod(beneath::by_descriptor(&place), Mode::RWXU)?;
            openat(&place, ".", FOLDER, Mode::empty())?
        }
        other => other?,
    };
    // One that can be read but not written or searched would fail only later, entry by entry.
    let _ = rustix::fs::fchmod(&opened, Mode::RWXU);
    Ok(opened)
}

/// A folder that was gone down into.
struct Level {
    name: CString,
    /// What it was found in.
    above: (u64, u64),
}

fn identity(folder: &OwnedFd) -> Result<(u64, u64), Errno> {
    fstat(folder).map(|status| (status.st_dev, status.st_ino))
}

/// Empties a folder, going down into one folder at a time and up again by `..`, so that the depth
/// costs neither descriptors nor stack.
fn empty(top: &OwnedFd, disturbances: &mut usize) -> io::Result<()> {
    let again = || openat(top, ".", FOLDER, Mode::empty());
    let mut here = again()?;
    let mut levels: Vec<Level> = Vec::new();
    loop {
        if let Some(name) = unlink_until_folder(&here, disturbances)? {
            match enter(&here, &name) {
                Ok(below) => {
                    levels.push(Level { name, above: identity(&here)? });
                    here = below;
                }
                Err(error) => disturbed(error, disturbances)?,
            }
            continue;
        }
        let Some(level) = levels.pop() else { return Ok(()) };
        let above = openat(&here, "..", FOLDER, Mode::empty())?;
        if identity(&above)? != level.above {
            // It was moved: what is above it now may be anything that whoever moved it can reach.
            disturbed(Errno::NOENT, disturbances)?;
            levels.clear();
            here = again()?;
            continue;
        }
        here = above;
        if let Err(error) = unlinkat(&here, &level.name, AtFlags::REMOVEDIR) {
            disturbed(error, disturbances)?;
        }
    }
}

/// Whether an error says only that something is no longer what it was when it was looked at: then it is
/// looked at again.
fn disturbed(error: Errno, disturbances: &mut usize) -> Result<(), Errno> {
    let is_one = matches!(
        error,
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::NOTEMPTY | Errno::EXIST | Errno::ISDIR
    );
    *disturbances += 1;
    if is_one && *disturbances < MOST_DISTURBANCES { Ok(()) } else { Err(error) }
}

/// Removes entries until one is a folder that is not empty, and names that.
fn unlink_until_folder(folder: &OwnedFd, disturbances: &mut usize) -> io::Result<Option<CString>> {
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let folder_like = match entry.file_type() {
            FileType::Directory => true,
            FileType::Unknown => {
                let status = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
                FileType::from_raw_mode(status.st_mode).is_dir()
            }
            _ => false,
        };
        let removed = if folder_like {
            match unlinkat(folder, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOENT | Errno::NOTDIR) => Err(Errno::NOENT),
                Err(_) => return Ok(Some(name.to_owned())),
                Ok(()) => Ok(()),
            }
        } else {
            unlinkat(folder, name, AtFlags::empty())
        };
        if let Err(error) = removed {
            disturbed(error, disturbances)?;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn odd_contents_go_and_what_links_point_to_stays() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("kept"), "x").unwrap();
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("pod");
        fs::create_dir_all(folder.join("a/b/c")).unwrap();
        fs::write(folder.join("a/b/file"), "x").unwrap();
        symlink(outside.path(), folder.join("a/link")).unwrap();
        symlink("nowhere", folder.join("dangling")).unwrap();
        fs::set_permissions(folder.join("a/b/file"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(folder.join("a/b"), Permissions::from_mode(0o000)).unwrap();
        fs::set_permissions(folder.join("a"), Permissions::from_mode(0o500)).unwrap();
        sweep(&folder).unwrap();
        assert!(!folder.exists());
        assert!(outside.path().join("kept").exists());
        sweep(&folder).unwrap();
        sweep(&base.path().join("not/there")).unwrap();
    }

    #[test]
    fn depth_costs_nothing() {
        let base = tempfile::tempdir().unwrap();
        let mut here = openat(CWD, base.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&here, "a-folder-with-a-long-name", Mode::RWXU).unwrap();
            here =
                openat(&here, "a-folder-with-a-long-name", OFlags::RDONLY, Mode::empty()).unwrap();
        }
        let folder = base.path().join("a-folder-with-a-long-name");
        sweep(&folder).unwrap();
        assert!(!folder.exists());
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_removed_alone() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("real")).unwrap();
        symlink(base.path().join("real"), base.path().join("link")).unwrap();
        sweep(&base.path().join("link")).unwrap();
        assert!(base.path().join("real").exists() && !base.path().join("link").exists());
    }

    /// Renames by `change` for as long as `sweep` runs, and gives what that returned.
    fn swept_while(folder: &Path, mut change: impl FnMut() + Send) -> io::Result<()> {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    change();
                }
            });
            let swept = sweep(folder);
            done.store(true, Ordering::Relaxed);
            swept
        })
    }

    // With `..` taken for the folder that was come from, the neighbour's files were removed too.
    #[test]
    fn a_folder_that_is_moved_up_while_it_is_emptied_leads_nowhere_else() {
        const FILES: usize = 3000;
        let base = tempfile::tempdir().unwrap();
        let volume = base.path().join("volume");
        let deep = volume.join("a/b/c");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir_all(base.path().join("neighbour")).unwrap();
        fs::write(base.path().join("neighbour/kept"), "x").unwrap();
        // Named so that who goes up too far could go on.
        fs::create_dir(base.path().join("b")).unwrap();
        for number in 0..FILES {
            fs::write(deep.join(number.to_string()), "").unwrap();
        }
        let mut moved = false;
        swept_while(&volume, || {
            let left = fs::read_dir(&deep).map_or(FILES, Iterator::count);
            if !moved && left < FILES {
                moved = fs::rename(&deep, volume.join("c")).is_ok();
            }
        })
        .unwrap();
        assert!(moved, "the attack came too late");
        assert!(!volume.exists());
        assert!(base.path().join("neighbour/kept").exists() && base.path().join("b").exists());
    }

    // Where a folder that may not be entered was opened up by its name, the folder that a link in its
    // place led to was. Root is let in everywhere: another user does it here.
    #[test]
    fn a_closed_folder_that_is_exchanged_for_a_link_opens_nothing_else() {
        use rustix::fs::{RenameFlags, renameat_with};

        let base = tempfile::tempdir().unwrap();
        fs::set_permissions(base.path(), Permissions::from_mode(0o777)).unwrap();
        let attempt = || {
            if rustix::process::geteuid().is_root() {
                let nobody = rustix::process::Uid::from_raw(65534);
                // Of this thread alone.
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            let outside = base.path().join("outside");
            fs::create_dir(&outside).unwrap();
            fs::set_permissions(&outside, Permissions::from_mode(0o705)).unwrap();
            for round in 0..500 {
                let folder = base.path().join(format!("volume-{round}"));
                fs::create_dir_all(folder.join("closed/in")).unwrap();
                symlink(&outside, folder.join("link")).unwrap();
                fs::set_permissions(folder.join("closed"), Permissions::from_mode(0o0)).unwrap();
                let (closed, link) = (folder.join("closed"), folder.join("link"));
                let swept = swept_while(&folder, || {
                    for _ in 0..20 {
                        let _ = renameat_with(CWD, &closed, CWD, &link, RenameFlags::EXCHANGE);
                    }
                    let _ = (symlink(&outside, &link), symlink(&outside, &closed));
                });
                // One who goes on for ever may have an error for it.
                assert!(swept.is_err() || !folder.exists());
                sweep(&folder).unwrap();
                let mode = fs::metadata(&outside).unwrap().permissions().mode();
                assert_eq!(mode & 0o777, 0o705, "round {round}");
            }
        };
        std::thread::scope(|scope| scope.spawn(attempt).join().unwrap());
    }

    #[test]
    fn one_who_writes_without_pause_ends_it_with_an_error_or_not_at_all() {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("pod");
        fs::create_dir_all(folder.join("a")).unwrap();
        let mut number = 0_u64;
        let swept = swept_while(&folder, || {
            number += 1;
            let _ = fs::create_dir_all(folder.join(format!("a/{}/x", number % 3)));
        });
        match swept {
            Err(error) => assert!(error.raw_os_error().is_some(), "{error}"),
            Ok(()) => sweep(&folder).unwrap(),
        }
        sweep(&folder).unwrap();
        assert!(!folder.exists());
    }
}
