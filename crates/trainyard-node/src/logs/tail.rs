//! Where the last lines of a log begin, found from its end backwards, over rotated files too.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::file::as_u64;
use super::query::Streams;
use super::record::{self, HEADER, MAX_TEXT, Tag};
use super::segments;

/// What is read at once: holds more than one record.
const BLOCK: usize = 2 * (MAX_TEXT + HEADER);

/// A place in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Number of the file.
    pub(super) segment: u64,
    /// Offset in it.
    pub(super) offset: u64,
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tail {
    /// How many lines. A last one that has no end yet counts.
    pub(super) lines: u64,
    /// No need to go back further than this many bytes of text.
    pub(super) text: u64,
    /// Whose lines count.
    pub(super) streams: Streams,
}

/// Finds the place where the tail of everything before `end` begins. `current` is the open current file,
/// which `end` lies in; `oldest` is the first file there is.
pub(super) fn start(
    path: &Path,
    current: &File,
    oldest: u64,
    end: Place,
    tail: Tail,
) -> io::Result<Place> {
    let mut search = Search { tail, lines: 0, text: 0, fresh: true };
    if tail.lines == 0 {
        return Ok(end);
    }
    if let Some(offset) = search.backwards(current, end.offset)? {
        return Ok(Place { segment: end.segment, offset });
    }
    let mut first = Place { segment: end.segment, offset: 0 };
    for segment in (oldest..end.segment).rev() {
        let file = match File::open(segments::rotated(path, segment)) {
            Ok(file) => file,
            // Removed meanwhile, as the oldest are.
            Err(error) if error.kind() == io::ErrorKind::NotFound => break,
            Err(error) => return Err(error),
        };
        first = Place { segment, offset: 0 };
        if let Some(offset) = search.backwards(&file, file.metadata()?.len())? {
            return Ok(Place { segment, offset });
        }
    }
    Ok(first)
}

struct Search {
    tail: Tail,
    lines: u64,
    text: u64,
    /// No record was seen yet: the first one met is the last of the log.
    fresh: bool,
}

impl Search {
    /// Goes back through one file from `end`; the offset where the tail begins, if it begins here.
    fn backwards(&mut self, file: &File, mut end: u64) -> io::Result<Option<u64>> {
        let mut block = vec![0; BLOCK];
        while end > 0 {
            let length = end.min(as_u64(BLOCK));
            let left = end - length;
            let Some(block) = block.get_mut(..usize::try_from(length).unwrap_or(BLOCK)) else {
                break;
            };
            file.read_exact_at(block, left)?;
            // The first line of the block is whole only at the beginning of the file.
            let whole = if left == 0 {
                0
            } else {
                memchr::memchr(b'\n', block).map_or(block.len(), |found| found + 1)
            };
            if let Some(found) = self.block(block.get(whole..).unwrap_or_default()) {
                return Ok(Some(left + as_u64(whole + found)));
            }
            // A line longer than a block is no record: jumped over.
            end = if whole == block.len() { left } else { left + as_u64(whole) };
        }
        Ok(None)
    }

    /// Goes back through whole lines; where the tail begins among them, if it does.
    fn block(&mut self, block: &[u8]) -> Option<usize> {
        let mut end = block.len();
        while end > 0 {
            let body = end - usize::from(block.get(end - 1) == Some(&b'\n'));
            let start = memchr::memrchr(b'\n', block.get(..body).unwrap_or_default())
                .map_or(0, |at| at + 1);
            if let Some(record) = record::parse(block.get(start..body).unwrap_or_default())
                && self.tail.streams.take(record.stream)
            {
                if record.tag == Tag::Full || self.fresh {
                    if self.lines == self.tail.lines || self.text >= self.tail.text {
                        return Some(end);
                    }
                    self.lines += 1;
                }
                self.fresh = false;
                self.text = self.text.saturating_add(as_u64(record.text.len() + 1));
                if record.tag == Tag::Partial && self.text >= self.tail.text {
                    return Some(start);
                }
            }
            end = start;
        }
        None
    }
}
