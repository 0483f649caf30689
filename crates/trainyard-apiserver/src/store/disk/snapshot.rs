//! A snapshot: all objects at one revision, so that the log before it can go.
//!
//! It is made aside and gets its name when it is on disk whole; only then older files are removed.
//! At whatever step it ends, the folder is as good as before. Must not know when one is due.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::files::{DataFile, Folder};
use super::frame::{FileHead, Frame, Sort, UNIT};
use super::{FORMAT, NEW, log, number_of, record};
use crate::object::Object;

/// A frame is closed when it has so many bytes.
const FRAME_BYTES: usize = 1 << 20;
/// So often what was written is handed to the disk, so that the log's syncs never wait for much.
const SYNC_FRAMES: u64 = 4;

/// All objects of a store at a revision: storage, path and object.
#[derive(Debug)]
pub(in crate::store) struct Everything {
    pub(in crate::store) revision: u64,
    pub(in crate::store) objects: Vec<(Arc<str>, Arc<str>, Object)>,
}

/// The name of the snapshot of a revision.
pub(super) fn name(revision: u64) -> String {
    format!("snapshot-{revision:020}")
}

/// The revision of a snapshot, by its name.
pub(super) fn of(name: &str) -> Option<u64> {
    number_of(name, "snapshot-")
}

/// Makes a snapshot and removes what it makes idle. The log must go on in a segment that begins
/// after it. Returns early, with nothing done, when told to stop.
pub(super) fn make(folder: &dyn Folder, all: &Everything, stop: &AtomicBool) -> io::Result<()> {
    let named = name(all.revision);
    let aside = named.clone() + NEW;
    let whole = folder.create(&aside).and_then(|file| fill(&*file, all, stop));
    if !matches!(whole, Ok(true)) {
        // One that is left behind is taken away at the next opening.
        let _ = folder.remove(&aside);
        return whole.map(drop);
    }
    folder.rename(&aside, &named)?;
    folder.sync()?;
    for name in folder.names()? {
        let idle = of(&name).is_some_and(|revision| revision < all.revision)
            || log::first_of(&name).is_some_and(|first| first <= all.revision);
        if idle {
            folder.remove(&name)?;
        }
    }
    Ok(())
}

/// Whether all was written.
fn fill(file: &dyn DataFile, all: &Everything, stop: &AtomicBool) -> io::Result<bool> {
    let head = FileHead { format: FORMAT, revision: all.revision };
    file.write(0, &head.bytes(Sort::Snapshot))?;
    let mut pen = Pen { file, frame: Frame::new(), offset: UNIT as u64, number: 0 };
    for (storage, path, object) in &all.objects {
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        record::put(pen.frame.entry(), storage, path, object);
        if pen.frame.len() >= FRAME_BYTES {
            pen.write()?;
        }
    }
    if pen.frame.len() > UNIT {
        pen.write()?;
    }
    record::total(pen.frame.entry(), all.objects.len() as u64);
    pen.write()?;
    file.sync()?;
    Ok(true)
}

struct Pen<'a> {
    file: &'a dyn DataFile,
    frame: Frame,
    offset: u64,
    number: u64,
}

impl Pen<'_> {
    fn write(&mut self) -> io::Result<()> {
        let frame = self.frame.finish(self.number);
        let frame = frame.ok_or_else(|| io::Error::other("a frame is too large"))?;
        self.file.write(self.offset, frame)?;
        self.offset += frame.len() as u64;
        self.number += 1;
        self.frame.clear();
        if self.number.is_multiple_of(SYNC_FRAMES) {
            self.file.sync()?;
        }
        Ok(())
    }
}
