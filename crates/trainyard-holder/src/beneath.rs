//! Opening and making paths inside a folder without ever leaving that folder.
//!
//! A pod may plant symbolic links in a volume it shares, and exchange them for folders at any time.
//! What is opened here is therefore a descriptor, which stays what it was when it was looked up; a
//! path that was checked and is opened again by its name is not. Must not know volumes or mounts.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    CWD, FileType, Mode, OFlags, ResolveFlags, fchmod, fstat, mkdirat, openat, openat2,
};
use rustix::io::Errno;

const PATH_ONLY: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
const REAL_FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const SET_GID: u32 = 0o2000;
/// Lookups that are begun again because something was renamed meanwhile. One who renames without
/// pause makes them fail, and gets nothing by it.
const MOST_LOOKUPS: usize = 128;

/// Opens an absolute path on which there is no link, as a place only. A path that was resolved before
/// leads to what it led to then, or nowhere: a link on it was put there since.
pub fn real(path: &Path) -> Result<OwnedFd, Errno> {
    let rules = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(CWD, path, PATH_ONLY, Mode::empty(), rules) {
        Err(Errno::NOSYS | Errno::PERM) => {
            let top = openat(CWD, "/", PATH_ONLY, Mode::empty())?;
            without_links(top.as_fd(), path.strip_prefix("/").map_err(|_| Errno::INVAL)?)
        }
        other => other,
    }
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

/// Opens a path below a folder likewise; what is missing of it becomes folders with the permissions of
/// the folder itself, less what the process's umask takes. No link to nothing is followed.
pub fn open_or_make(folder: impl AsFd, path: &Path) -> Result<OwnedFd, Errno> {
    let folder = folder.as_fd();
    for _ in 0..MOST_LOOKUPS {
        match open(folder, path) {
            Err(Errno::NOENT) => {}
            other => return other,
        }
        match make(folder, path) {
            // Somebody else made it meanwhile, or took away what it was to be made in.
            Err(Errno::EXIST | Errno::NOENT) => {}
            other => return other,
        }
    }
    Err(Errno::AGAIN)
}

/// Makes what is missing of a path, each folder in the one that was made before.
fn make(folder: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let bits = fstat(folder)?.st_mode & 0o7777;
    let mut reached = open(folder, Path::new(""))?;
    let mut parts = path.components().peekable();
    let mut there = PathBuf::new();
    while let Some(part) = parts.peek() {
        there.push(part);
        match open(folder, &there) {
            Ok(next) => reached = next,
            Err(Errno::NOENT) => break,
            Err(error) => return Err(error),
        }
        parts.next();
    }
    for part in parts {
        let Component::Normal(name) = part else { return Err(Errno::XDEV) };
        // With its permissions from the first: setting them later would set those of whatever had
        // been put in its place.
        mkdirat(&reached, name, Mode::from_raw_mode(bits & !SET_GID))?;
        reached = openat(&reached, name, REAL_FOLDER, Mode::empty())?;
        let made = fstat(&reached)?.st_mode & 0o7777;
        // Which the kernel gives it only from the folder that it is in.
        if bits & SET_GID != 0 && made & SET_GID == 0 {
            fchmod(&reached, Mode::from_raw_mode(made | SET_GID))?;
        }
    }
    open(&reached, Path::new(""))
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

/// Where what a descriptor stands for lies now.
pub fn path_of(place: impl AsFd) -> io::Result<PathBuf> {
    std::fs::read_link(by_descriptor(&place))
}

/// The path under `/proc` by which a descriptor can be named where a path is asked for.
#[must_use]
pub fn by_descriptor(place: &impl AsFd) -> PathBuf {
    use std::os::fd::AsRawFd as _;
    PathBuf::from(format!("/proc/self/fd/{}", place.as_fd().as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use super::{by_descriptor, open, open_or_make, path_of, real, without_links};
    use std::fs;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

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
        symlink("gone", root.join("volume/dangling")).unwrap();
        symlink("../outside/new", root.join("volume/dangling-out")).unwrap();
        dir
    }

    #[test]
    fn paths_that_lead_out_are_refused_with_the_kernels_help_and_without() {
        let place = place();
        let volume = real(&place.path().join("volume")).unwrap();
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
    fn a_resolved_path_is_found_by_its_links_no_more() {
        let place = place();
        let root = place.path().canonicalize().unwrap();
        for path in ["volume/v1", "volume/v1/file", "outside"] {
            let found = real(&root.join(path)).unwrap();
            assert_eq!(path_of(&found).unwrap(), root.join(path));
            assert!(fs::metadata(by_descriptor(&found)).is_ok());
        }
        for path in ["volume/current", "volume/current/file", "volume/up/secret", "volume/loop"] {
            assert!(real(&root.join(path)).is_err(), "{path}");
        }
    }

    #[test]
    fn what_is_not_there_is_made_like_the_volume() {
        let place = place();
        let root = place.path().join("volume");
        fs::set_permissions(&root, fs::Permissions::from_mode(0o2775)).unwrap();
        let volume = real(&root).unwrap();
        fs::create_dir(root.join("probe")).unwrap();
        let mode = |path: &str| fs::metadata(root.join(path)).unwrap().permissions().mode();
        let allowed = mode("probe") & 0o777 | 0o7000;
        for path in ["a/b/c", "current/logs", "a/b/c", "v1/file"] {
            open_or_make(&volume, Path::new(path)).unwrap();
        }
        for made in ["a", "a/b", "a/b/c", "v1/logs"] {
            assert_eq!(mode(made) & 0o7777, 0o2775 & allowed, "{made}");
        }
    }

    #[test]
    fn nothing_outside_is_reached_or_made() {
        let place = place();
        let volume = real(&place.path().join("volume")).unwrap();
        for path in [
            "..",
            "v1/../../outside",
            "/etc",
            "up",
            "up/new",
            "absolute/new",
            "dangling",
            "dangling/x",
            "dangling-out",
            "dangling-out/x",
            "loop",
            "magic/new",
            "v1/file/below",
        ] {
            assert!(open_or_make(&volume, Path::new(path)).is_err(), "{path}");
        }
        let outside = fs::read_dir(place.path().join("outside")).unwrap();
        let left: Vec<_> = outside.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["secret"]);
        assert!(!place.path().join("volume/gone").exists());
    }

    /// Exchanges two names without pause while `look` is called `times` times, and until it has found
    /// something; says how often it did.
    fn exchanged(a: &Path, b: &Path, times: usize, look: impl Fn() -> bool) -> usize {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).unwrap();
                }
            });
            let began = std::time::Instant::now();
            let (mut tried, mut found) = (0, 0);
            while tried < times || found == 0 && began.elapsed().as_secs() < 20 {
                tried += 1;
                found += usize::from(look());
            }
            stop.store(true, Ordering::Relaxed);
            found
        })
    }

    #[test]
    fn a_folder_that_is_exchanged_for_a_link_is_never_left() {
        let place = place();
        let root = place.path().canonicalize().unwrap();
        let (a, b) = (root.join("volume/v1"), root.join("volume/up"));
        let volume = real(&root.join("volume")).unwrap();
        let ways: [&dyn Fn() -> Result<_, rustix::io::Errno>; 4] = [
            &|| open(&volume, Path::new("v1")),
            &|| without_links(volume.as_fd(), Path::new("v1")),
            &|| open_or_make(&volume, Path::new("v1/new/er")),
            &|| real(&a),
        ];
        for (number, way) in ways.iter().enumerate() {
            let found = exchanged(&a, &b, 2000, || {
                let Ok(opened) = way() else { return false };
                let path = path_of(&opened).unwrap();
                assert!(path.starts_with(root.join("volume")), "{number} leads to {path:?}");
                true
            });
            assert!(found > 0, "nothing was opened by way {number}");
        }
        let outside = fs::read_dir(root.join("outside")).unwrap().count();
        assert_eq!(outside, 1, "something was made outside of the volume");
    }
}
