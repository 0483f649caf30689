//! Files with secrets in them: keys, kubeconfigs. Written under a fresh name that nobody can have put
//! anything at, readable by their owner only, and renamed when they are whole.
//!
//! Must not know what the secrets are.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom as _, SystemRandom};

/// How often a name may be taken already; nobody guesses one.
const ATTEMPTS: u32 = 4;

/// Writes a file that only its owner may read, whole or not at all. In a folder that others may write too
/// nothing of theirs is followed or reused: the name is new, and a file or link there is an error.
pub fn write_secret(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (fresh, mut file) = fresh(path)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&fresh, path));
    if written.is_err() {
        // The first failure is the one to tell.
        let _ = fs::remove_file(&fresh);
    }
    written
}

/// A new file beside another.
fn fresh(path: &Path) -> io::Result<(PathBuf, fs::File)> {
    let mut options = OpenOptions::new();
    // Creating anew (`O_EXCL`) follows no link.
    options.write(true).create_new(true).mode(0o600);
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..ATTEMPTS {
        let fresh = path.with_file_name(name(path)?);
        match options.open(&fresh) {
            Ok(file) => return Ok((fresh, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// `.NAME.` and what nobody can know before.
fn name(path: &Path) -> io::Result<OsString> {
    let own = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut random = [0; 8];
    SystemRandom::new().fill(&mut random).map_err(|_| io::Error::other("no random numbers"))?;
    let mut name = OsString::from(".");
    name.push(own);
    name.push(format!(".{:016x}", u64::from_ne_bytes(random)));
    Ok(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn only_the_owner_may_read_it_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        write_secret(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// Before, the name beside it was the number of the process or `.new`, and a link there was followed.
    #[test]
    fn a_link_in_its_place_is_replaced_and_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, theirs) = (folder.path().join("key"), folder.path().join("theirs"));
        fs::write(&theirs, "").unwrap();
        for planted in ["key", "key.new", &format!("key.{}", std::process::id())] {
            let _ = fs::remove_file(folder.path().join(planted));
            symlink(&theirs, folder.path().join(planted)).unwrap();
        }
        write_secret(&path, b"secret").unwrap();
        assert_eq!(fs::read(&theirs).unwrap(), b"");
        assert!(path.symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn names_cannot_be_guessed() {
        let path = Path::new("/tmp/key");
        assert_ne!(name(path).unwrap(), name(path).unwrap());
        assert!(write_secret(Path::new("/"), b"").is_err());
    }

    #[test]
    fn what_could_not_be_written_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        fs::create_dir(&path).unwrap();
        assert!(write_secret(&path, b"x").is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
