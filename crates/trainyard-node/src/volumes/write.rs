//! Files of a volume on the disk.
//!
//! Writes into folders that no container can write to; must not know what the files mean.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Gid, Uid, chownat};

use crate::volumes::payload::{File, Payload};

/// A folder with exactly these permissions, whatever the umask; one that is there is taken.
pub(crate) fn folder(path: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        other => other?,
    }
    fs::set_permissions(path, Permissions::from_mode(mode))
}

/// Makes the folder anew with these files in it.
pub(crate) fn payload(folder_path: &Path, payload: &Payload) -> Result<(), String> {
    // What an earlier attempt left would show through.
    match fs::remove_dir_all(folder_path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            return Err(format!("clearing {}: {e}", folder_path.display()));
        }
        _ => {}
    }
    folder(folder_path, 0o755).map_err(|e| format!("making {}: {e}", folder_path.display()))?;
    for (path, file) in payload {
        one(folder_path, path, file).map_err(|e| format!("writing {path:?}: {e}"))?;
    }
    Ok(())
}

fn one(root: &Path, path: &str, file: &File) -> io::Result<()> {
    let mut folders: PathBuf = root.to_owned();
    if let Some((parents, _)) = path.rsplit_once('/') {
        for part in parents.split('/') {
            folders.push(part);
            folder(&folders, 0o755)?;
        }
    }
    replace(&root.join(path), file)
}

/// Writes a file in one step: readers see the old content or the new, never a part.
pub(crate) fn replace(path: &Path, file: &File) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    // Two dots first: names that programs which list such folders skip.
    let mut hidden = std::ffi::OsString::from("..");
    hidden.push(name);
    let fresh = path.with_file_name(hidden);
    let written = write_fresh(&fresh, file).and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        // The first failure is the one to tell.
        let _ = fs::remove_file(&fresh);
    }
    written
}

fn write_fresh(fresh: &Path, file: &File) -> io::Result<()> {
    match fs::remove_file(fresh) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let mut handle = OpenOptions::new().write(true).create_new(true).mode(0o600).open(fresh)?;
    handle.write_all(&file.data)?;
    handle.set_permissions(Permissions::from_mode(file.mode))?;
    let (owner, group) = (file.owner.map(Uid::from_raw), file.group.map(Gid::from_raw));
    if (owner.is_some() || group.is_some()) && rustix::process::geteuid().is_root() {
        chownat(CWD, fresh, owner, group, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{payload, replace};
    use crate::volumes::payload::{File, Payload, add};
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    #[test]
    fn files_have_their_content_and_mode_and_nothing_else_is_there() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("v");
        fs::create_dir(&root).unwrap();
        fs::write(root.join("stale"), "old").unwrap();
        let mut files = Payload::new();
        add(&mut files, "a/b/c.txt", b"deep".to_vec(), 0o640, None).unwrap();
        add(&mut files, "run.sh", b"#!".to_vec(), 0o755, None).unwrap();
        add(&mut files, "none", Vec::new(), 0, None).unwrap();
        payload(&root, &files).unwrap();
        let mode = |p: &str| fs::metadata(root.join(p)).unwrap().permissions().mode() & 0o7777;
        assert_eq!(fs::read(root.join("a/b/c.txt")).unwrap(), b"deep");
        assert_eq!(mode("a/b/c.txt"), 0o640);
        assert_eq!((mode("run.sh"), mode("none"), mode("a/b")), (0o755, 0, 0o755));
        let mut names: Vec<_> =
            fs::read_dir(&root).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["a", "none", "run.sh"]);
    }

    #[test]
    fn a_path_through_a_file_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        let mut files = Payload::new();
        add(&mut files, "a", Vec::new(), 0o644, None).unwrap();
        add(&mut files, "a/b", Vec::new(), 0o644, None).unwrap();
        let error = payload(&place.path().join("v"), &files).unwrap_err();
        assert!(error.starts_with("writing \"a/b\": "), "{error}");
    }

    #[test]
    fn replacing_leaves_the_old_file_to_those_who_have_it_open() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("token");
        let file =
            |data: &[u8]| File { data: data.to_vec(), mode: 0o600, owner: None, group: None };
        replace(&path, &file(b"one")).unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        replace(&path, &file(b"two")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_ne!(fs::metadata(&path).unwrap().ino(), before);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_belongs_to_whom_it_shall() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("token");
        let file = File { data: Vec::new(), mode: 0o600, owner: Some(1234), group: Some(55) };
        replace(&path, &file).unwrap();
        let seen = fs::metadata(&path).unwrap();
        assert_eq!((seen.uid(), seen.gid()), (1234, 55));
    }
}
