//! `subPath`: a file or folder inside a volume, found or made without ever leaving the volume.
//!
//! A pod may have planted symbolic links in a volume it shares. So nothing here follows a link out of
//! the volume: the kernel resolves beneath the volume's folder, and folders are made one by one under
//! open descriptors. Must not know containers.

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, fchmod, fstat, mkdirat, openat, openat2};
use rustix::io::Errno;

const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const REAL_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Finds `sub_path` in the folder `volume`, or makes folders for it with the volume's own
/// permissions, and tells its place relative to the volume with all links resolved.
pub(crate) fn inside(volume: &Path, sub_path: &str) -> io::Result<PathBuf> {
    let parts: Vec<&str> = sub_path.split('/').filter(|p| !matches!(*p, "" | ".")).collect();
    if sub_path.starts_with('/') || parts.contains(&"..") {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let base = openat(CWD, volume, PATH_ONLY | OFlags::DIRECTORY, Mode::empty())?;
    let found = found_or_made(&base, &parts)?;
    let (base, found) = (place_of(&base)?, place_of(&found)?);
    let inside = found.strip_prefix(&base).map_err(|_| io::Error::from(Errno::XDEV))?;
    Ok(inside.to_owned())
}

fn found_or_made(base: &OwnedFd, parts: &[&str]) -> io::Result<OwnedFd> {
    let mut reached = base.try_clone()?;
    for count in 1..=parts.len() {
        let prefix = parts[..count].join("/");
        match beneath(base.as_fd(), &prefix) {
            Ok(next) => reached = next,
            Err(Errno::NOENT) => {
                let bits = Mode::from_raw_mode(fstat(base)?.st_mode & 0o7777);
                return made(reached, &parts[count - 1..], bits);
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(reached)
}

/// Makes the folders one below the other. A link that points to nothing is not followed: it exists.
fn made(mut parent: OwnedFd, parts: &[&str], bits: Mode) -> io::Result<OwnedFd> {
    for part in parts {
        mkdirat(&parent, *part, Mode::RWXU)?;
        let child = openat(&parent, *part, REAL_FOLDER, Mode::empty())?;
        fchmod(&child, bits)?;
        parent = child;
    }
    Ok(parent)
}

/// Opens a path below a folder; links are followed as long as they stay below.
fn beneath(base: BorrowedFd<'_>, path: &str) -> rustix::io::Result<OwnedFd> {
    let rules = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    // The kernel says "again" when something was renamed meanwhile and it cannot be sure.
    for _ in 0..16 {
        match openat2(base, path, PATH_ONLY, Mode::empty(), rules) {
            Err(Errno::AGAIN) => {}
            // Old kernels and some sandboxes do not have the call.
            Err(Errno::NOSYS | Errno::PERM) => return without_links(base, path),
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// The same, but no link is followed at all.
fn without_links(base: BorrowedFd<'_>, path: &str) -> rustix::io::Result<OwnedFd> {
    let mut reached = openat(base, ".", PATH_ONLY | OFlags::DIRECTORY, Mode::empty())?;
    for part in path.split('/') {
        reached = openat(&reached, part, PATH_ONLY | OFlags::NOFOLLOW, Mode::empty())?;
        if rustix::fs::FileType::from_raw_mode(fstat(&reached)?.st_mode).is_symlink() {
            return Err(Errno::LOOP);
        }
    }
    Ok(reached)
}

fn place_of(fd: &OwnedFd) -> io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::{inside, without_links};
    use std::fs;
    use std::os::fd::AsFd as _;
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
            ("current", "v1"),
            ("current/file", "v1/file"),
            ("", ""),
            (".", ""),
        ] {
            assert_eq!(inside(&place.volume, sub_path).unwrap(), Path::new(found), "{sub_path}");
        }
    }

    #[test]
    fn what_is_not_there_is_made_like_the_volume() {
        let place = place();
        fs::set_permissions(&place.volume, fs::Permissions::from_mode(0o2775)).unwrap();
        assert_eq!(inside(&place.volume, "a/b/c").unwrap(), Path::new("a/b/c"));
        assert_eq!(inside(&place.volume, "current/logs").unwrap(), Path::new("v1/logs"));
        for made in ["a", "a/b", "a/b/c", "v1/logs"] {
            let mode = fs::metadata(place.volume.join(made)).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, 0o2775, "{made}");
        }
        assert_eq!(inside(&place.volume, "a/b/c").unwrap(), Path::new("a/b/c"));
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
            assert!(inside(&place.volume, sub_path).is_err(), "{sub_path:?}");
        }
        let left: Vec<_> =
            fs::read_dir(&place.outside).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["secret"]);
    }

    #[test]
    fn the_way_without_the_kernels_help_follows_no_link() {
        let place = place();
        let base = fs::File::open(&place.volume).unwrap();
        assert!(without_links(base.as_fd(), "v1/file").is_ok());
        for sub_path in ["current", "current/file", "up/secret", "absolute", "loop"] {
            assert!(without_links(base.as_fd(), sub_path).is_err(), "{sub_path}");
        }
    }
}
