//! Removing a folder whatever was written in it: any depth, any modes, any number of entries.
//!
//! Follows no symbolic link. Must not know whose folder it is.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, chmodat, openat, unlinkat};
use rustix::io::Errno;

/// Removes `folder` and all in it. One that is not there is no error.
pub(crate) fn sweep(folder: &Path) -> io::Result<()> {
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
    let first = enter(&parent, &name)?;
    empty(first)?;
    Ok(unlinkat(&parent, &name, AtFlags::REMOVEDIR)?)
}

/// Opens a folder, making it ours to read and change when its mode forbids it.
fn enter(parent: impl AsFd, name: &CString) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(&parent, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            chmodat(&parent, name, Mode::RWXU, AtFlags::empty())?;
            openat(&parent, name, flags, Mode::empty())?
        }
        other => other?,
    };
    // One that can be read but not written or searched would fail only later, entry by entry.
    let _ = rustix::fs::fchmod(&opened, Mode::RWXU);
    Ok(opened)
}

/// Empties a folder, going down into one folder at a time and up again by `..`, so that the depth
/// costs neither descriptors nor stack.
fn empty(first: OwnedFd) -> io::Result<()> {
    let mut here = first;
    let mut names: Vec<CString> = Vec::new();
    loop {
        if let Some(name) = unlink_until_folder(&here)? {
            here = enter(&here, &name)?;
            names.push(name);
            continue;
        }
        let Some(name) = names.pop() else { return Ok(()) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        here = openat(&here, "..", flags, Mode::empty())?;
        unlinkat(&here, &name, AtFlags::REMOVEDIR)?;
    }
}

/// Removes entries until one is a folder that is not empty, and names that.
fn unlink_until_folder(folder: &OwnedFd) -> io::Result<Option<CString>> {
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
        if !folder_like {
            unlinkat(folder, name, AtFlags::empty())?;
        } else if unlinkat(folder, name, AtFlags::REMOVEDIR).is_err() {
            return Ok(Some(name.to_owned()));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

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
}
