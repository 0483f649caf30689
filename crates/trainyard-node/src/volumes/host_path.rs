//! Paths of this machine that a pod asks for by name, with the kubelet's checks and words.
//!
//! Must not know pods.

use std::fs::{self, DirBuilder, FileType, OpenOptions};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// Checks that the path is what its type says, makes it where that says so, and tells where it
/// really is.
pub(crate) fn checked(path: &str, kind: &str) -> Result<PathBuf, String> {
    let place = Path::new(path);
    if !place.is_absolute() {
        return Err(format!("invalid HostPath `{path}`: must be an absolute path"));
    }
    if path.split('/').any(|part| part == "..") {
        return Err(format!("invalid HostPath `{path}`: must not contain '..'"));
    }
    let found = fs::metadata(place).ok().map(|m| m.file_type());
    let is = |test: fn(&FileType) -> bool, what: &str| match &found {
        Some(kind) if test(kind) => Ok(()),
        _ => Err(format!("hostPath type check failed: {path} is not {what}")),
    };
    match kind {
        // A container runtime makes what is not there.
        "" | "DirectoryOrCreate" if found.is_none() => make_folder(place)?,
        "" => {}
        "DirectoryOrCreate" | "Directory" => is(FileType::is_dir, "a directory")?,
        "FileOrCreate" if found.is_none() => make_file(place)?,
        "FileOrCreate" | "File" => is(FileType::is_file, "a file")?,
        "Socket" => is(FileType::is_socket, "a socket file")?,
        "CharDevice" => is(FileType::is_char_device, "a character device")?,
        "BlockDevice" => is(FileType::is_block_device, "a block device")?,
        other => return Err(format!("{other} is an invalid volume type")),
    }
    fs::canonicalize(place).map_err(|e| format!("{path}: {e}"))
}

fn make_folder(path: &Path) -> Result<(), String> {
    let made = DirBuilder::new().recursive(true).mode(0o755).create(path);
    made.map_err(|e| format!("mkdir {}: {e}", path.display()))
}

fn make_file(path: &Path) -> Result<(), String> {
    let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o644).open(path);
    made.map(drop).map_err(|e| format!("open {}: {e}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::checked;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

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
