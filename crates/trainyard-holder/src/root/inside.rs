//! Paths of a root that is being composed: looked up and made so that no symbolic link, wherever it
//! comes from, leads out of it.
//!
//! Must not know mounts.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, mkdirat, openat2};
use rustix::io::Errno;

/// The most symbolic links and folders that making one path may go through.
const MOST_STEPS: usize = 256;
/// Lookups that are begun again because something was renamed meanwhile: a pod that does so without pause
/// shall not keep a container from ever starting or failing.
const MOST_LOOKUPS: usize = 128;

/// A root, by the descriptor of its topmost folder.
#[derive(Debug)]
pub(crate) struct Inside {
    root: OwnedFd,
}

impl Inside {
    pub(crate) fn new(root: OwnedFd) -> Self {
        Self { root }
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    fn open_with(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        // Absolute paths start at the root itself; so does the empty one.
        let path = if path.as_os_str().is_empty() { Path::new("/") } else { path };
        let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..MOST_LOOKUPS {
            match openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
                // A folder was moved while the path was looked up.
                Err(Errno::AGAIN | Errno::INTR) => {}
                other => return other,
            }
        }
        Err(Errno::AGAIN)
    }

    /// The place of a path that is there.
    pub(crate) fn open(&self, path: &Path) -> io::Result<OwnedFd> {
        Ok(self.open_with(path, OFlags::PATH)?)
    }

    /// The folder of this path, made with all above it where it is not there; says whether it was
    /// made.
    pub(crate) fn folder(&self, path: &Path, mode: Mode) -> io::Result<(OwnedFd, bool)> {
        let path = checked(path)?;
        let mut is_new = false;
        for _ in 0..MOST_STEPS {
            match self.open_with(&path, OFlags::PATH | OFlags::DIRECTORY) {
                Ok(folder) => return Ok((folder, is_new)),
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            // The deepest folder above that is there gets the next one.
            let mut missing = path.as_path();
            let above = loop {
                let Some(parent) = missing.parent() else { return Err(Errno::NOENT.into()) };
                match self.open_with(parent, OFlags::PATH | OFlags::DIRECTORY) {
                    Ok(above) => break above,
                    Err(Errno::NOENT) => missing = parent,
                    Err(error) => return Err(error.into()),
                }
            };
            let name = missing.file_name().ok_or(Errno::NOENT)?;
            let last = missing == path;
            let mode = if last { mode } else { Mode::from_raw_mode(0o755) };
            // One that is there and cannot be entered is a link to nowhere.
            mkdirat(&above, name, mode)?;
            is_new = last;
        }
        Err(Errno::LOOP.into())
    }

    /// The folder that a path lies in, made where it is not there, and the path's last name.
    pub(crate) fn parent<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let name = path.file_name().ok_or(Errno::INVAL)?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        Ok((self.folder(parent, Mode::from_raw_mode(0o755))?.0, name))
    }

    /// The file of this path, made empty where it is not there.
    pub(crate) fn file(&self, path: &Path) -> io::Result<OwnedFd> {
        let path = checked(path)?;
        match self.open_with(&path, OFlags::PATH) {
            Err(Errno::NOENT) => {}
            other => return Ok(other?),
        }
        let (parent, name) = self.parent(&path)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&parent, name, flags, Mode::from_raw_mode(0o644))?;
        self.open(&path)
    }
}

/// Absolute, and without `..`: what would go up is a mistake of the caller's.
fn checked(path: &Path) -> io::Result<PathBuf> {
    let bad = path.components().any(|part| matches!(part, Component::ParentDir));
    if bad || !path.is_absolute() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path is not absolute, or goes up by `..`",
        ));
    }
    Ok(path.components().collect())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::CWD;

    use super::*;

    fn inside() -> (tempfile::TempDir, Inside) {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("root")).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let root = rustix::fs::openat(CWD, base.path().join("root"), flags, Mode::empty()).unwrap();
        (base, Inside::new(root))
    }

    const MODE: Mode = Mode::from_raw_mode(0o755);

    #[test]
    fn folders_and_files_are_made_with_all_above_them() {
        let (base, inside) = inside();
        assert!(inside.folder(Path::new("/a/b/c"), MODE).unwrap().1);
        assert!(!inside.folder(Path::new("/a/b"), MODE).unwrap().1);
        assert!(!inside.folder(Path::new("/"), MODE).unwrap().1);
        inside.file(Path::new("/x/y")).unwrap();
        assert!(base.path().join("root/a/b/c").is_dir());
        assert!(base.path().join("root/x/y").is_file());
    }

    #[test]
    fn links_stay_inside() {
        let (base, inside) = inside();
        let root = base.path().join("root");
        symlink("/", root.join("top")).unwrap();
        symlink("../../../..", root.join("up")).unwrap();
        symlink(base.path(), root.join("out")).unwrap();
        fs::create_dir(root.join("run")).unwrap();
        symlink("/run", root.join("var")).unwrap();
        inside.folder(Path::new("/top/one"), MODE).unwrap();
        inside.folder(Path::new("/up/two"), MODE).unwrap();
        inside.folder(Path::new("/var/three"), MODE).unwrap();
        assert!(root.join("one").is_dir() && root.join("two").is_dir());
        assert!(root.join("run/three").is_dir());
        // The link's target is not there inside, so nothing can be made through it.
        inside.folder(Path::new("/out/four"), MODE).unwrap_err();
        inside.file(Path::new("/out")).unwrap_err();
        assert!(!base.path().join("four").exists());
    }

    #[test]
    fn going_up_and_relative_paths_are_refused() {
        let (_base, inside) = inside();
        for path in ["../a", "a", "/a/../../b", ""] {
            assert!(inside.folder(Path::new(path), MODE).is_err(), "{path}");
            assert!(inside.file(Path::new(path)).is_err(), "{path}");
        }
    }
}
