//! `subPath`: a file or folder inside a volume, found or made without ever leaving the volume.
//!
//! A pod may have planted symbolic links in a volume it shares. So nothing here follows a link out of
//! the volume: the kernel resolves beneath the volume's folder, and folders are made one by one under
//! open descriptors. That something is there is all that is known afterwards: the holder looks it up
//! again, in the same way, when it mounts it. Must not know containers.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fchmod, fstat, mkdirat, openat};
use rustix::io::Errno;
use trainyard_holder::beneath;

const REAL_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Sees to it that `sub_path` is in the folder `volume`: what is missing of it becomes folders with
/// the volume's own permissions. Returns it without what means nothing in it.
pub(crate) fn ensure(volume: &Path, sub_path: &str) -> io::Result<PathBuf> {
    let parts: Vec<&str> = sub_path.split('/').filter(|p| !matches!(*p, "" | ".")).collect();
    if sub_path.starts_with('/') || parts.contains(&"..") {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    find_or_make(&beneath::folder(volume)?, &parts)?;
    Ok(parts.iter().collect())
}

fn find_or_make(base: &OwnedFd, parts: &[&str]) -> io::Result<()> {
    let mut reached = base.try_clone()?;
    for count in 1..=parts.len() {
        match beneath::open(base, &parts[..count].iter().collect::<PathBuf>()) {
            Ok(next) => reached = next,
            Err(Errno::NOENT) => {
                let bits = Mode::from_raw_mode(fstat(base)?.st_mode & 0o7777);
                return make(reached, &parts[count - 1..], bits);
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Makes the folders one below the other. A link that points to nothing is not followed: it exists.
fn make(mut parent: OwnedFd, parts: &[&str], bits: Mode) -> io::Result<()> {
    for part in parts {
        mkdirat(&parent, *part, Mode::RWXU)?;
        let child = openat(&parent, *part, REAL_FOLDER, Mode::empty())?;
        fchmod(&child, bits)?;
        parent = child;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::ensure;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::{Path, PathBuf};

    struct Place {
        _dir: tempfile::TempDir,
        volume: PathBuf,
        outside: PathBuf,
    }

    fn place() -> Place {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (volume, outside) = (root.join("volume"), root.join("outside"));
        fs::create_dir(&volume).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "x").unwrap();
        fs::create_dir(volume.join("v1")).unwrap();
        fs::write(volume.join("v1/file"), "y").unwrap();
        symlink("v1", volume.join("current")).unwrap();
        symlink("../outside", volume.join("up")).unwrap();
        symlink(&outside, volume.join("absolute")).unwrap();
        symlink("/", volume.join("root")).unwrap();
        symlink("gone", volume.join("dangling")).unwrap();
        symlink("../outside/new", volume.join("dangling-out")).unwrap();
        symlink("loop", volume.join("loop")).unwrap();
        symlink("/proc/self/cwd", volume.join("magic")).unwrap();
        Place { _dir: dir, volume, outside }
    }

    #[test]
    fn what_is_there_is_found() {
        let place = place();
        for (sub_path, found) in [
            ("v1", "v1"),
            ("v1/file", "v1/file"),
            ("./v1//file", "v1/file"),
            ("current", "current"),
            ("current/file", "current/file"),
            ("", ""),
            (".", ""),
        ] {
            assert_eq!(ensure(&place.volume, sub_path).unwrap(), Path::new(found), "{sub_path}");
        }
    }

    #[test]
    fn what_is_not_there_is_made_like_the_volume() {
        let place = place();
        fs::set_permissions(&place.volume, fs::Permissions::from_mode(0o2775)).unwrap();
        assert_eq!(ensure(&place.volume, "a/b/c").unwrap(), Path::new("a/b/c"));
        assert_eq!(ensure(&place.volume, "current/logs").unwrap(), Path::new("current/logs"));
        for made in ["a", "a/b", "a/b/c", "v1/logs"] {
            let mode = fs::metadata(place.volume.join(made)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o2775, "{made}");
        }
        assert_eq!(ensure(&place.volume, "a/b/c").unwrap(), Path::new("a/b/c"));
    }

    #[test]
    fn nothing_outside_is_reached_or_made() {
        let place = place();
        for sub_path in [
            "..",
            "../outside",
            "v1/../../outside",
            "/etc",
            "up",
            "up/secret",
            "up/new",
            "absolute",
            "absolute/secret",
            "root",
            "root/etc",
            "dangling",
            "dangling/x",
            "dangling-out",
            "dangling-out/x",
            "loop",
            "magic",
            "v1/file/below",
            "a\0b",
        ] {
            assert!(ensure(&place.volume, sub_path).is_err(), "{sub_path:?}");
        }
        let left: Vec<_> =
            fs::read_dir(&place.outside).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["secret"]);
    }
}
