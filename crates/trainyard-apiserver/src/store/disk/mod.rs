//! The objects on disk: a log of the writes, and now and then a snapshot in place of its beginning.
//!
//! Owns the format and what happens when the disk is full. A folder holds segments of the log
//! (`log-<first revision>`) and at most one snapshot that counts (`snapshot-<revision>`); opening
//! reads the snapshot, then the log behind it. History is not kept: who watched before begins anew.
//! Must not know how writes are decided or who waits for them.

mod error;
mod files;
mod frame;
mod lock;
mod log;
mod record;
mod replay;
mod scan;
mod snapshot;

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
pub(super) mod platter;
#[cfg(test)]
mod snapshot_tests;
#[cfg(test)]
mod testing;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::change::{Deed, Write};
use crate::object::Stored;
pub use error::OpenError;
pub(super) use error::WriteError;
pub(crate) use files::Folder;
use files::RealFolder;
use frame::Frame;
use lock::FolderLock;
use log::{Aside, Log};
pub(super) use snapshot::Everything;

/// The number of the format. Every change of what is written counts it up.
const FORMAT: u32 = 1;
/// A snapshot is due when the log has so many bytes, and so many times those of the objects.
const LOG_FLOOR: u64 = 32 << 20;
const LOG_FACTOR: u64 = 2;
/// Behind the name of a file that is being made.
const NEW: &str = ".new";
/// What was in a folder before there was a first release.
const FORMER: &str = "objects.redb";

/// The disk side of a store. Dropping it ends what runs and lets go of the folder.
#[derive(Debug)]
pub(super) struct Disk {
    folder: Arc<dyn Folder>,
    path: PathBuf,
    log: Log,
    frame: Frame,
    /// The bytes of the segments before, which are needed until there is a snapshot.
    older: u64,
    making: Option<Making>,
    /// The log is not looked at before it has so many bytes.
    floor: u64,
    next: u64,
    broken: Option<String>,
    /// After all else, so that it is let go last.
    _lock: FolderLock,
}

/// A snapshot in the making.
#[derive(Debug)]
struct Making {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<()>>,
}

/// What was on disk.
pub(super) struct Loaded {
    pub(super) revision: u64,
    /// Storage, path and object, in order.
    pub(super) objects: Vec<(Arc<str>, Arc<str>, Stored)>,
}

impl Drop for Disk {
    fn drop(&mut self) {
        // The folder is let go only when nobody works in it.
        if let Some(making) = self.making.take() {
            making.stop.store(true, Ordering::Relaxed);
            self.made(making);
        }
    }
}

impl Disk {
    /// Opens a folder as a store, a fresh one if it is empty.
    pub(super) fn open(folder: &Path) -> Result<(Self, Loaded), OpenError> {
        let lock = FolderLock::take(folder)?;
        Self::read(folder, Arc::new(RealFolder(folder.to_owned())), lock, log::AHEAD)
    }

    /// Opens a folder that stands in for the one that is locked.
    #[cfg(test)]
    pub(super) fn open_in(
        locked: &Path,
        folder: Arc<dyn Folder>,
        floor: u64,
    ) -> Result<(Self, Loaded), OpenError> {
        const AHEAD: u64 = 8 << 10;
        let (mut disk, loaded) = Self::read(locked, folder, FolderLock::take(locked)?, AHEAD)?;
        (disk.floor, disk.next) = (floor, floor);
        Ok((disk, loaded))
    }

    fn read(
        path: &Path,
        folder: Arc<dyn Folder>,
        lock: FolderLock,
        ahead: u64,
    ) -> Result<(Self, Loaded), OpenError> {
        let found = replay::read(&*folder, path)?;
        let failed = |error| OpenError::of_io(path, error);
        let log = match found.last {
            None => Log::begin(&*folder, found.loaded.revision + 1, ahead).map_err(failed)?,
            Some(last) => {
                let path = path.join(&last.name);
                let failed = |error| OpenError::of_io(&path, error);
                if last.unfinished {
                    last.file.cut(last.end).map_err(failed)?;
                }
                // What a killed process had written but not synced counts from now on.
                last.file.sync().and_then(|()| folder.sync()).map_err(failed)?;
                Log::go_on(last.file, last.end, ahead).map_err(failed)?
            }
        };
        for name in &found.idle {
            match folder.remove(name) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(OpenError::of_io(&path.join(name), error));
                }
                _ => {}
            }
        }
        let disk = Self {
            folder,
            path: path.to_owned(),
            log,
            frame: Frame::new(),
            older: found.older,
            making: None,
            floor: LOG_FLOOR,
            next: LOG_FLOOR,
            broken: None,
            _lock: lock,
        };
        Ok((disk, found.loaded))
    }

    /// Writes all or nothing; when it returns, all is on disk.
    pub(super) fn write(&mut self, writes: &[Write]) -> Result<(), WriteError> {
        if let Some(why) = &self.broken {
            return Err(WriteError::Broken(why.clone()));
        }
        let Some(first) = writes.first().map(Write::revision) else { return Ok(()) };
        self.frame.clear();
        for write in writes {
            let (bytes, storage) = (self.frame.entry(), &write.storage);
            match &write.deed {
                Deed::Event(event) if event.deleted => record::delete(bytes, storage, &event.path),
                Deed::Event(event) => record::put(bytes, storage, &event.path, &event.object),
                Deed::Drop(_) => record::drop_storage(bytes, storage),
            }
        }
        let too_large = || WriteError::Full("too much for one write".to_owned());
        let frame = self.frame.finish(first).ok_or_else(too_large)?;
        let written = self.log.append(frame);
        if let Err(WriteError::Broken(why)) = &written {
            self.broken = Some(why.clone());
        }
        written
    }

    /// Whether a snapshot should be made now, so many bytes being those of all objects.
    pub(super) fn is_outgrown(&mut self, live: u64) -> bool {
        if let Some(making) = self.making.take_if(|making| making.thread.is_finished()) {
            self.made(making);
        }
        let held = self.older + self.log.end();
        let due = held >= self.next && held >= LOG_FACTOR * live;
        due && self.making.is_none() && self.broken.is_none()
    }

    /// Lets the log go on in a new segment and begins to make a snapshot of all before it. That it
    /// cannot be done now is no harm: the log grows, and it is tried again.
    pub(super) fn condense(&mut self, all: Everything) {
        if let Err(error) = self.begin_snapshot(all) {
            self.put_off(&error);
        }
    }

    fn begin_snapshot(&mut self, all: Everything) -> std::io::Result<()> {
        let aside = Aside::make(&*self.folder, all.revision + 1, self.log.ahead())?;
        let log = aside.name(&*self.folder).inspect_err(|error| {
            // If it has its name after all, what went on in the old segment would be in two.
            self.broken = Some(format!("the log cannot go on: {error}"));
        })?;
        self.older += std::mem::replace(&mut self.log, log).end();
        let (folder, stop) = (Arc::clone(&self.folder), Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name("store-snapshot".to_owned())
            .spawn(move || snapshot::make(&*folder, &all, &told))?;
        self.making = Some(Making { stop, thread });
        Ok(())
    }

    /// Takes note of how a snapshot ended.
    fn made(&mut self, making: Making) {
        let stopped = making.stop.load(Ordering::Relaxed);
        match making.thread.join() {
            Ok(Ok(())) if stopped => {}
            Ok(Ok(())) => (self.older, self.next) = (0, self.floor),
            Ok(Err(error)) => self.put_off(&error),
            Err(_) => self.put_off(&std::io::Error::other("its thread ended")),
        }
    }

    fn put_off(&mut self, error: &std::io::Error) {
        let folder = self.path.display();
        tracing::warn!(%error, %folder, "no snapshot could be made; the log goes on growing");
        self.next = (self.older + self.log.end()).saturating_add(self.floor);
    }
}

/// The number in the name of a file, if it is one of ours.
fn number_of(name: &str, prefix: &str) -> Option<u64> {
    let digits = name.strip_prefix(prefix)?;
    let is_number = digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit());
    is_number.then(|| digits.parse().ok()).flatten()
}
