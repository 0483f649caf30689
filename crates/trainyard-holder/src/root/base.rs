//! What roots begin with: composed once in memory for all containers that ask for the same, and laid
//! under each of their roots. Making some sixty folders, links and mount points on disk for every
//! container would take longer than all the rest of its start.
//!
//! Owns the copies and how long they are kept. Must not know containers beyond that they use one.

use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use rustix::fs::{CWD, Mode, OFlags};

use super::inside::Inside;
use super::{mount_point, place};
use crate::protocol::{Mount, Refusal, RefusalKind};
use crate::refuse::{OrRefuse, refusal};

/// So many that nobody uses are kept for whoever asks next.
const MOST_UNUSED: usize = 32;
/// Bytes that all of them may hold.
const MOST_BYTES: u64 = 64 << 20;

/// One copy; it stays while somebody holds it.
#[derive(Debug)]
pub(crate) struct Base {
    folder: PathBuf,
    parts: Vec<Mount>,
}

impl Base {
    /// Where it lies in the holder's view.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        // What stays is in memory, and goes with the holder.
        drop(crate::sweep::sweep(&self.folder));
    }
}

/// All copies.
#[derive(Debug)]
pub(crate) struct Bases {
    folder: PathBuf,
    /// Those asked for last stand last.
    known: Vec<Rc<Base>>,
    next: u64,
}

impl Bases {
    /// Makes room for them at a folder that is there.
    pub(crate) fn at(folder: &Path) -> io::Result<Self> {
        super::mount_memory(folder, Some(MOST_BYTES), 0o755)?;
        Ok(Self { folder: folder.to_owned(), known: Vec::new(), next: 0 })
    }

    /// A folder beside them, for whatever is to be mounted there.
    pub(crate) fn mount_point(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self.folder.join(name);
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// A copy of this, made if it is not there.
    pub(crate) fn with(&mut self, parts: &[Mount]) -> Result<Rc<Base>, Refusal> {
        let found = self.known.iter().position(|base| base.parts == parts);
        let base = match found {
            Some(index) => self.known.remove(index),
            None => Rc::new(self.make(parts)?),
        };
        self.known.push(Rc::clone(&base));
        self.forget();
        Ok(base)
    }

    fn make(&mut self, parts: &[Mount]) -> Result<Base, Refusal> {
        self.next += 1;
        let base =
            Base { folder: self.folder.join(self.next.to_string()), parts: parts.to_owned() };
        // Modes are meant as they are given.
        let umask = rustix::process::umask(Mode::empty());
        let composed = compose(&base);
        rustix::process::umask(umask);
        composed.map(|()| base)
    }

    /// Lets go of the longest unused, if there are too many.
    fn forget(&mut self) {
        let unused = |base: &Rc<Base>| Rc::strong_count(base) == 1;
        let mut surplus = self.known.iter().filter(|base| unused(base)).count();
        surplus = surplus.saturating_sub(MOST_UNUSED);
        self.known.retain(|base| {
            let goes = surplus > 0 && unused(base);
            surplus -= usize::from(goes);
            !goes
        });
    }

    /// Takes all of it away, but for the folder it was in.
    pub(crate) fn remove(self) -> PathBuf {
        // First of all: then there is nothing left to be removed one by one. What cannot be unmounted
        // vanishes with the holder's mount namespace.
        drop(super::unmount_memory(&self.folder));
        drop(self.known);
        self.folder
    }
}

fn compose(base: &Base) -> Result<(), Refusal> {
    let step = || format!("composing a root in {}", base.folder.display());
    let made = || -> io::Result<Inside> {
        rustix::fs::mkdirat(CWD, &base.folder, Mode::from_raw_mode(0o755))?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Inside::new(rustix::fs::openat(CWD, &base.folder, flags, Mode::empty())?))
    };
    let inside = made().or_refuse(RefusalKind::Machine, step)?;
    for part in &base.parts {
        match part {
            Mount::Bind { source, target, .. } => {
                let step = || format!("mounting {} at {}", source.display(), target.display());
                let is_folder =
                    std::fs::metadata(source).or_refuse(RefusalKind::Mount, step)?.is_dir();
                mount_point(&inside, target, is_folder)?;
            }
            Mount::Volume { target, .. } => {
                let step = format!("mounting a volume at {}", target.display());
                let reason = "a volume of a pod is no part of what roots begin with";
                return Err(refusal(RefusalKind::BadRequest, step, reason));
            }
            Mount::Overlay { target, .. } | Mount::Tmpfs { target, .. } => {
                mount_point(&inside, target, true)?;
            }
            _ => place(&inside, part)?,
        }
    }
    Ok(())
}
