//! The log that is written: one frame for all writes that are made at once, synced before it counts.
//!
//! Owns the room ahead: frames are written over zeros that are on disk already, so that a sync has
//! nothing but them to write, and a full disk is met before anything of a frame is there. Must not
//! know what a frame carries.

use super::error::WriteError;
use super::files::{DataFile, Folder};
use super::frame::{FileHead, Sort, UNIT};
use super::{FORMAT, NEW};

/// How much room is made at once.
pub(super) const AHEAD: u64 = 4 << 20;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The segment at the end of the log.
#[derive(Debug)]
pub(super) struct Log {
    file: Box<dyn DataFile>,
    /// Behind the last frame.
    end: u64,
    /// From the end to here there are zeros.
    room: u64,
    /// How much room is made at once.
    ahead: u64,
}

/// The name of the segment that begins with a revision.
pub(super) fn name(first: u64) -> String {
    format!("log-{first:020}")
}

/// A segment that is whole and on disk, but not yet under its name.
pub(super) struct Aside {
    log: Log,
    first: u64,
}

impl Aside {
    /// Makes a segment. When it fails, nothing has happened.
    pub(super) fn make(folder: &dyn Folder, first: u64, ahead: u64) -> std::io::Result<Self> {
        let aside = name(first) + NEW;
        let file = folder.create(&aside)?;
        let mut log = Log { file, end: UNIT as u64, room: UNIT as u64, ahead };
        let head = FileHead { format: FORMAT, revision: first };
        let made = log.file.write(0, &head.bytes(Sort::Log)).and_then(|()| log.make_room(1));
        match made.and_then(|()| log.file.sync()) {
            Ok(()) => Ok(Self { log, first }),
            Err(error) => {
                // Another try begins with taking it away anyhow.
                let _ = folder.remove(&aside);
                Err(error)
            }
        }
    }

    /// Gives it its name. When that fails, nobody knows whether it has it.
    pub(super) fn name(self, folder: &dyn Folder) -> std::io::Result<Log> {
        let named = name(self.first);
        folder.rename(&(named.clone() + NEW), &named)?;
        folder.sync()?;
        Ok(self.log)
    }
}

impl Log {
    /// A fresh log.
    pub(super) fn begin(folder: &dyn Folder, first: u64, ahead: u64) -> std::io::Result<Self> {
        Aside::make(folder, first, ahead)?.name(folder)
    }

    /// Goes on behind the last frame of a file that has only zeros after it.
    pub(super) fn go_on(file: Box<dyn DataFile>, end: u64, ahead: u64) -> std::io::Result<Self> {
        let room = file.len()?.max(end);
        Ok(Self { file, end, room, ahead })
    }

    pub(super) const fn ahead(&self) -> u64 {
        self.ahead
    }

    /// How many bytes are in it.
    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    /// Writes a frame; when it returns, it is on disk.
    pub(super) fn append(&mut self, frame: &[u8]) -> Result<(), WriteError> {
        let len = frame.len() as u64;
        self.make_room(len).map_err(|error| WriteError::of(&error))?;
        if let Err(error) = self.file.write(self.end, frame) {
            return Err(self.take_back(len, WriteError::of(&error)));
        }
        // After a failed sync nobody knows what is on disk, whatever the cause.
        let failed = |error| WriteError::Broken(format!("sync failed: {error}"));
        self.file.sync().map_err(failed)?;
        self.end += len;
        Ok(())
    }

    /// Makes a frame that was not written whole disappear, if the log is to be used on.
    fn take_back(&self, len: u64, error: WriteError) -> WriteError {
        if matches!(error, WriteError::Broken(_)) {
            return error;
        }
        let cleared = self.zeros(self.end, self.end + len).and_then(|()| self.file.sync());
        match cleared {
            Ok(()) => error,
            Err(other) => WriteError::Broken(format!("{error}, and then: {other}")),
        }
    }

    /// Sees to it that there are so many bytes of zeros behind the end. They need no sync of their
    /// own: where they are not on disk, there is nothing, which is the same.
    fn make_room(&mut self, len: u64) -> std::io::Result<()> {
        let needed = self.end + len;
        if needed <= self.room {
            return Ok(());
        }
        // With little left on the disk, so much as is needed.
        let mut made = Ok(());
        for target in [needed + self.ahead, needed] {
            made = self.zeros(self.room, target);
            if made.is_ok() {
                self.room = target;
                return made;
            }
            // What was made of it is given back; if not, it is zeros all the same.
            let _ = self.file.cut(self.room);
        }
        made
    }

    fn zeros(&self, from: u64, to: u64) -> std::io::Result<()> {
        let mut at = from;
        while at < to {
            let len = usize::try_from(to - at).unwrap_or(usize::MAX).min(ZEROS.len());
            self.file.write(at, ZEROS.get(..len).unwrap_or_default())?;
            at += len as u64;
        }
        Ok(())
    }
}

/// The first revision of a segment, by its name.
pub(super) fn first_of(name: &str) -> Option<u64> {
    super::number_of(name, "log-")
}
