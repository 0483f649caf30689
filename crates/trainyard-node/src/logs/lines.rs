//! Complete lines of a file that may still grow, with bounded memory.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::file::as_u64;
use super::record::{HEADER, MAX_TEXT};

/// What is read at once.
const BLOCK: usize = 32 << 10;

/// No record is longer; what is, is skipped.
const MAX_LINE: usize = MAX_TEXT + HEADER + (1 << 10);

/// A place in a file, and what was read ahead of it.
#[derive(Debug)]
pub(super) struct Lines {
    file: File,
    data: Vec<u8>,
    /// Where the next line begins in `data`.
    start: usize,
    /// Where `data` has been searched for a line end already.
    searched: usize,
    /// Where the next line begins in the file.
    offset: u64,
    /// In the middle of a line that is too long.
    skipping: bool,
}

impl Lines {
    pub(super) fn at(mut file: File, offset: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self { file, data: Vec::new(), start: 0, searched: 0, offset, skipping: false })
    }

    /// Where the next line begins.
    pub(super) const fn offset(&self) -> u64 {
        self.offset
    }

    /// The next line, without its end, as a range for [`Self::get`]; none while the file holds no
    /// complete one.
    pub(super) fn next(&mut self) -> io::Result<Option<Range<usize>>> {
        loop {
            let ahead = self.data.get(self.searched..).unwrap_or_default();
            if let Some(found) = memchr::memchr(b'\n', ahead) {
                let line = self.start..self.searched + found;
                self.start = line.end + 1;
                self.searched = self.start;
                self.offset += as_u64(line.len() + 1);
                if std::mem::take(&mut self.skipping) {
                    continue;
                }
                return Ok(Some(line));
            }
            self.searched = self.data.len();
            if self.data.len() - self.start > MAX_LINE {
                self.offset += as_u64(self.data.len() - self.start);
                self.start = self.data.len();
                self.skipping = true;
            }
            if !self.read_on()? {
                return Ok(None);
            }
        }
    }

    pub(super) fn get(&self, line: Range<usize>) -> &[u8] {
        self.data.get(line).unwrap_or_default()
    }

    /// What follows the last complete line.
    pub(super) fn torn(&self) -> &[u8] {
        if self.skipping { &[] } else { self.data.get(self.start..).unwrap_or_default() }
    }

    fn read_on(&mut self) -> io::Result<bool> {
        self.data.drain(..self.start);
        self.searched -= self.start;
        self.start = 0;
        let known = self.data.len();
        self.data.resize(known + BLOCK, 0);
        let result = self.file.read(self.data.get_mut(known..).unwrap_or_default());
        self.data.truncate(known + result.as_ref().map_or(0, |count| *count));
        Ok(result? > 0)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn lines_come_when_they_are_complete() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"skip\none\ntw").unwrap();
        let mut lines = Lines::at(file.reopen().unwrap(), 5).unwrap();
        let line = lines.next().unwrap().unwrap();
        assert_eq!(lines.get(line), b"one");
        assert_eq!(lines.next().unwrap(), None);
        assert_eq!((lines.torn(), lines.offset()), (&b"tw"[..], 9));
        file.write_all(b"o\n\n").unwrap();
        let line = lines.next().unwrap().unwrap();
        assert_eq!(lines.get(line), b"two");
        let line = lines.next().unwrap().unwrap();
        assert_eq!(lines.get(line), b"");
        assert_eq!(lines.offset(), 14);
        assert_eq!(lines.next().unwrap(), None);
    }

    #[test]
    fn a_line_too_long_is_skipped_in_bounded_memory() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&vec![b'x'; 1 << 20]).unwrap();
        file.write_all(b"\nafter\n").unwrap();
        let mut lines = Lines::at(file.reopen().unwrap(), 0).unwrap();
        let line = lines.next().unwrap().unwrap();
        assert_eq!(lines.get(line), b"after");
        assert_eq!(lines.offset(), (1 << 20) + 7);
        assert!(lines.data.capacity() < 4 * (BLOCK + MAX_LINE), "{}", lines.data.capacity());
    }
}
