//! Reading a file frame by frame, and judging what is no frame.
//!
//! Owns the difference between a frame that was never finished and one that was damaged. Must not
//! know what a frame carries, nor change anything.

use std::io;

use super::files::DataFile;
use super::frame::{FrameHead, UNIT};

const CHUNK: usize = 64 << 10;
/// What a disk writes whole or not at all.
const SECTOR: u64 = 512;

/// Reads the frames of a file in order.
pub(super) struct Scan<'a> {
    file: &'a dyn DataFile,
    len: u64,
    offset: u64,
    body: Vec<u8>,
}

/// What comes next in a file.
pub(super) enum Next<'a> {
    /// A whole frame.
    Frame(FrameHead, &'a [u8]),
    /// Nothing but zeros, if that.
    End,
    /// Something else.
    Bad(&'static str),
}

impl<'a> Scan<'a> {
    /// Begins behind the head of the file.
    pub(super) fn new(file: &'a dyn DataFile) -> io::Result<Self> {
        Ok(Self { file, len: file.len()?, offset: UNIT as u64, body: Vec::new() })
    }

    /// Behind the last whole frame.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn next(&mut self) -> io::Result<Next<'_>> {
        let Some(first) = self.head_at(self.offset)? else {
            let ended = is_zero(self.file, self.offset, self.len)?;
            return Ok(if ended { Next::End } else { Next::Bad("a frame that breaks off") });
        };
        let Some(head) = FrameHead::read(&first) else {
            let ended = first == [0; UNIT] && is_zero(self.file, self.offset, self.len)?;
            return Ok(if ended { Next::End } else { Next::Bad("this is no frame") });
        };
        let from = self.offset + UNIT as u64;
        let end = from + u64::from(head.len);
        if end > self.len {
            return Ok(Next::Bad("a frame that breaks off"));
        }
        self.body.resize(head.len as usize, 0);
        self.file.read(from, &mut self.body)?;
        if !head.fits(&self.body) {
            return Ok(Next::Bad("the checksum of a frame is wrong"));
        }
        self.offset = end;
        Ok(Next::Frame(head, &self.body))
    }

    /// The 32 bytes at a place, if there are so many.
    fn head_at(&self, offset: u64) -> io::Result<Option<[u8; UNIT]>> {
        if offset + UNIT as u64 > self.len {
            return Ok(None);
        }
        let mut bytes = [0; UNIT];
        self.file.read(offset, &mut bytes)?;
        Ok(Some(bytes))
    }

    /// Whether what is bad here can be a frame that was being written when the power went. Frames
    /// are written over zeros, and none before the one in front of it is on disk: so a part of it is
    /// zeros still, and nothing follows it.
    pub(super) fn is_unfinished(&self) -> io::Result<bool> {
        if self.has_frame_behind()? {
            return Ok(false);
        }
        let Some(first) = self.head_at(self.offset)? else { return Ok(true) };
        let Some(head) = FrameHead::read(&first) else {
            return Ok(first[UNIT - 1] == 0);
        };
        let end = self.offset + UNIT as u64 + u64::from(head.len);
        if end > self.len || is_zero(self.file, end - 1, end)? {
            return Ok(true);
        }
        // A sector in the midst of it.
        let mut at = self.offset.next_multiple_of(SECTOR);
        while at < end {
            if is_zero(self.file, at, (at + SECTOR).min(end))? {
                return Ok(true);
            }
            at += SECTOR;
        }
        Ok(false)
    }

    fn has_frame_behind(&self) -> io::Result<bool> {
        let mut at = self.offset + UNIT as u64;
        let mut chunk = vec![0; CHUNK];
        while at + UNIT as u64 <= self.len {
            let len = usize::try_from(self.len - at).unwrap_or(usize::MAX).min(CHUNK);
            let part = chunk.get_mut(..len).unwrap_or_default();
            self.file.read(at, part)?;
            if part.as_chunks::<UNIT>().0.iter().any(|head| FrameHead::read(head).is_some()) {
                return Ok(true);
            }
            at += len as u64;
        }
        Ok(false)
    }
}

fn is_zero(file: &dyn DataFile, from: u64, to: u64) -> io::Result<bool> {
    let mut chunk = vec![0; CHUNK.min(usize::try_from(to - from).unwrap_or(CHUNK))];
    let mut at = from;
    while at < to {
        let len = usize::try_from(to - at).unwrap_or(usize::MAX).min(chunk.len());
        let part = chunk.get_mut(..len).unwrap_or_default();
        file.read(at, part)?;
        if part.iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at += len as u64;
    }
    Ok(true)
}
