//! Folders of this machine that pods were given to write to, and where a path leads that goes through
//! them.
//!
//! A path that a manifest names may have links on it, as everywhere on this machine. Those in a folder
//! that pods write to may be a pod's, made so that another pod is given what neither may have: they lead
//! nowhere but to what is in that folder. Must not know volumes.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat, readlinkat};
use rustix::io::Errno;
use trainyard_holder::beneath;

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;
const PLACE: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folders, by their real paths, as far as this agent has given them.
#[derive(Debug, Default)]
pub(crate) struct Written(Mutex<BTreeSet<PathBuf>>);

/// Where a path leads.
#[derive(Debug)]
pub(crate) enum Found {
    /// What is there, and its real path.
    There(OwnedFd, PathBuf),
    /// Nothing: the last folder that is there, and what is missing below it.
    Missing(OwnedFd, PathBuf),
}

/// The way along a path, with every link on it looked at.
struct Way<'a> {
    written: &'a BTreeSet<PathBuf>,
    here: OwnedFd,
    left: VecDeque<OsString>,
    /// How many of those that are left stand in links.
    of_links: usize,
    links: usize,
    /// Folders that pods write to and that were come through.
    through: BTreeSet<&'a Path>,
}

impl Written {
    /// Pods write to this folder from now on.
    pub(crate) fn add(&self, folder: &Path) {
        let mut folders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        folders.insert(folder.to_owned());
    }

    /// Follows an absolute path.
    pub(crate) fn find(&self, path: &Path) -> io::Result<Found> {
        let written = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut way = Way {
            written: &written,
            here: openat(CWD, "/", PLACE, Mode::empty())?,
            left: VecDeque::new(),
            of_links: 0,
            links: 0,
            through: BTreeSet::new(),
        };
        way.put_first(path);
        way.of_links = 0;
        way.follow()
    }
}

impl Way<'_> {
    fn follow(mut self) -> io::Result<Found> {
        while let Some(name) = self.left.pop_front() {
            let next = match openat(&self.here, &name, PLACE, Mode::empty()) {
                Err(Errno::NOENT) if self.of_links == 0 => {
                    self.stays_inside()?;
                    let missing = std::iter::once(name).chain(self.left).collect();
                    return Ok(Found::Missing(self.here, missing));
                }
                other => other?,
            };
            self.of_links = self.of_links.saturating_sub(1);
            if FileType::from_raw_mode(fstat(&next)?.st_mode).is_symlink() {
                let target = readlinkat(&next, "", Vec::new())?.into_bytes();
                self.put_first(Path::new(&OsString::from_vec(target)));
                self.links += 1;
                if self.links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
            } else {
                self.here = next;
            }
            let path = beneath::path_of(&self.here)?;
            let come_to = self.written.iter().filter(|folder| path.starts_with(folder));
            self.through.extend(come_to.map(PathBuf::as_path));
        }
        let path = self.stays_inside()?;
        Ok(Found::There(self.here, path))
    }

    /// Has the parts of a path come before what is left.
    fn put_first(&mut self, path: &Path) {
        for part in path.components().rev() {
            if part != Component::CurDir {
                self.left.push_front(part.as_os_str().to_owned());
                self.of_links += 1;
            }
        }
    }

    /// The real path of where it is now, if that is in all the folders that it came through.
    fn stays_inside(&self) -> io::Result<PathBuf> {
        let path = beneath::path_of(&self.here)?;
        match self.through.iter().find(|folder| !path.starts_with(folder)) {
            None => Ok(path),
            Some(folder) => Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!("it leads out of {}, which pods write to", folder.display()),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["shared/team/in", "private", "own"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for (target, link) in [
            ("../private", "shared/out"),
            ("team/in", "shared/short"),
            ("../../private", "shared/team/up"),
            ("gone", "shared/dangling"),
            ("loop", "shared/loop"),
            ("../shared/team/up", "own/through"),
            ("../shared", "own/plain"),
        ] {
            symlink(target, root.join(link)).unwrap();
        }
        symlink(root.join("shared/team"), root.join("shared/absolute")).unwrap();
        (dir, root)
    }

    fn there(written: &Written, path: &Path) -> Result<PathBuf, String> {
        match written.find(path) {
            Ok(Found::There(_, path)) => Ok(path),
            Ok(Found::Missing(above, rest)) => {
                Err(format!("{} + {}", beneath::path_of(above).unwrap().display(), rest.display()))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn links_of_the_machine_are_followed() {
        let (_dir, root) = place();
        let written = Written::default();
        for path in ["shared/out", "own/through", "shared/team/../../private"] {
            assert_eq!(there(&written, &root.join(path)).unwrap(), root.join("private"), "{path}");
        }
        assert_eq!(there(&written, Path::new("/")).unwrap(), Path::new("/"));
    }

    #[test]
    fn a_link_in_a_folder_that_pods_write_to_leads_out_of_it_for_nobody() {
        let (_dir, root) = place();
        let written = Written::default();
        written.add(&root.join("shared"));
        for path in ["shared/out", "shared/out/x", "own/through", "own/plain/out", "shared/team/up"]
        {
            let error = there(&written, &root.join(path)).unwrap_err();
            assert!(error.ends_with("shared, which pods write to"), "{path}: {error}");
        }
        for (path, real) in [
            ("shared", "shared"),
            ("own/plain/team", "shared/team"),
            ("shared/short", "shared/team/in"),
            ("shared/absolute/in", "shared/team/in"),
            ("private", "private"),
        ] {
            assert_eq!(there(&written, &root.join(path)).unwrap(), root.join(real), "{path}");
        }
        // What is another's inside it is left by no link of that other one.
        written.add(&root.join("shared/team"));
        symlink("../../shared", root.join("shared/team/side")).unwrap();
        let error = there(&written, &root.join("shared/team/side")).unwrap_err();
        assert!(error.ends_with("team, which pods write to"), "{error}");
    }

    #[test]
    fn what_is_missing_is_told_and_never_what_a_link_names() {
        let (_dir, root) = place();
        let written = Written::default();
        let missing = there(&written, &root.join("own/plain/new/er")).unwrap_err();
        assert_eq!(missing, format!("{} + new/er", root.join("shared").display()));
        for path in ["shared/dangling", "shared/dangling/x", "shared/loop"] {
            let error = there(&written, &root.join(path)).unwrap_err();
            assert!(error.contains("os error"), "{path}: {error}");
        }
    }
}
