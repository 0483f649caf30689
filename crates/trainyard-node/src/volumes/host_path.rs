//! Paths of this machine that a pod asks for by name, with the kubelet's checks and words.
//!
//! What is checked is what was found, held open, not whatever its name leads to a moment later. Must not
//! know pods.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;
use trainyard_holder::beneath;

use crate::volumes::written::{Found, Written};

const REAL_FOLDER: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW_FILE: OFlags = OFlags::WRONLY
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// Checks that the path is what its type says, makes it where that says so, and tells where it
/// really is.
pub(crate) fn checked(path: &str, kind: &str, written: &Written) -> Result<PathBuf, String> {
    let place = Path::new(path);
    if !place.is_absolute() {
        return Err(format!("invalid HostPath `{path}`: must be an absolute path"));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(format!("invalid HostPath `{path}`: must not contain '..'"));
    }
    let wanted = match kind {
        "" => None,
        "DirectoryOrCreate" | "Directory" => Some((FileType::Directory, "a directory")),
        "FileOrCreate" | "File" => Some((FileType::RegularFile, "a file")),
        "Socket" => Some((FileType::Socket, "a socket file")),
        "CharDevice" => Some((FileType::CharacterDevice, "a character device")),
        "BlockDevice" => Some((FileType::BlockDevice, "a block device")),
        other => return Err(format!("{other} is an invalid volume type")),
    };
    let failed = |error: &io::Error| match (kind, wanted) {
        // A container runtime makes what is not there.
        ("" | "DirectoryOrCreate", _) => format!("mkdir {path}: {error}"),
        ("FileOrCreate", _) => format!("open {path}: {error}"),
        (_, Some((_, what))) if error.kind() != io::ErrorKind::PermissionDenied => {
            format!("hostPath type check failed: {path} is not {what}")
        }
        _ => format!("{path}: {error}"),
    };
    let (found, real) = match (written.find(place).map_err(|error| failed(&error))?, kind) {
        (Found::There(found, real), _) => (found, real),
        (Found::Missing(above, rest), "" | "DirectoryOrCreate") => {
            folders(above, &rest).and_then(located).map_err(|error| failed(&error))?
        }
        (Found::Missing(above, rest), "FileOrCreate") => {
            file(&above, &rest).and_then(located).map_err(|error| failed(&error))?
        }
        (Found::Missing(..), _) => return Err(failed(&Errno::NOENT.into())),
    };
    let status = fstat(&found).map_err(|error| failed(&error.into()))?;
    match wanted {
        Some((wanted, what)) if FileType::from_raw_mode(status.st_mode) != wanted => {
            Err(format!("hostPath type check failed: {path} is not {what}"))
        }
        _ => Ok(real),
    }
}

fn located(place: OwnedFd) -> io::Result<(OwnedFd, PathBuf)> {
    let path = beneath::path_of(&place)?;
    Ok((place, path))
}

/// Makes folders one below the other. Whatever somebody else puts in their place is not followed.
fn folders(mut above: OwnedFd, rest: &Path) -> io::Result<OwnedFd> {
    for part in rest.components() {
        let Component::Normal(name) = part else { return Err(Errno::INVAL.into()) };
        match mkdirat(&above, name, Mode::from_raw_mode(0o755)) {
            Err(Errno::EXIST) => {}
            made => made?,
        }
        above = openat(&above, name, REAL_FOLDER, Mode::empty())?;
    }
    Ok(above)
}

fn file(above: &OwnedFd, rest: &Path) -> io::Result<OwnedFd> {
    if rest.components().count() != 1 {
        return Err(Errno::NOENT.into());
    }
    Ok(openat(above, rest, NEW_FILE, Mode::from_raw_mode(0o644))?)
}

#[cfg(test)]
mod tests {
    use super::{Written, checked as checked_with};
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;

    fn checked(path: &str, kind: &str) -> Result<PathBuf, String> {
        checked_with(path, kind, &Written::default())
    }

    #[test]
    fn each_type_takes_what_it_names_and_refuses_the_rest() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        fs::create_dir(root.join("dir")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        symlink(root.join("dir"), root.join("link")).unwrap();
        symlink(root.join("gone"), root.join("dangling")).unwrap();
        let _socket = UnixListener::bind(root.join("socket")).unwrap();
        for (name, kind, failure) in [
            ("dir", "", ""),
            ("file", "", ""),
            ("dir", "Directory", ""),
            ("link", "Directory", ""),
            ("file", "Directory", "is not a directory"),
            ("none", "Directory", "is not a directory"),
            ("dangling", "Directory", "is not a directory"),
            ("dir", "DirectoryOrCreate", ""),
            ("file", "DirectoryOrCreate", "is not a directory"),
            ("file", "File", ""),
            ("dir", "File", "is not a file"),
            ("none", "File", "is not a file"),
            ("dir", "FileOrCreate", "is not a file"),
            ("socket", "Socket", ""),
            ("file", "Socket", "is not a socket file"),
            ("file", "CharDevice", "is not a character device"),
            ("file", "BlockDevice", "is not a block device"),
        ] {
            let path = root.join(name);
            let path = path.to_str().unwrap();
            match checked(path, kind) {
                Ok(real) => assert!(failure.is_empty() && real.starts_with(&root), "{name} {kind}"),
                Err(text) => {
                    let expected = format!("hostPath type check failed: {path} {failure}");
                    assert_eq!(text, expected, "{name} {kind}");
                }
            }
        }
        assert!(checked("/dev/null", "CharDevice").is_ok());
        let link = root.join("link");
        assert_eq!(checked(link.to_str().unwrap(), "").unwrap(), root.join("dir"));
    }

    #[test]
    fn what_may_be_made_is_made() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
        assert!(checked(&path("a/b"), "DirectoryOrCreate").unwrap().is_dir());
        assert!(checked(&path("c/d"), "").unwrap().is_dir());
        assert!(checked(&path("file"), "FileOrCreate").unwrap().is_file());
        let error = checked(&path("no/file"), "FileOrCreate").unwrap_err();
        assert!(error.starts_with("open "), "{error}");
        let error = checked(&path("file/below"), "DirectoryOrCreate").unwrap_err();
        assert!(error.starts_with("mkdir "), "{error}");
    }

    #[test]
    fn bad_paths_and_types_are_named() {
        let error = checked("/a/../etc", "").unwrap_err();
        assert_eq!(error, "invalid HostPath `/a/../etc`: must not contain '..'");
        let error = checked("a", "").unwrap_err();
        assert_eq!(error, "invalid HostPath `a`: must be an absolute path");
        assert_eq!(checked("/", "Odd").unwrap_err(), "Odd is an invalid volume type");
        assert!(checked("/a\0b", "").is_err());
    }
}
