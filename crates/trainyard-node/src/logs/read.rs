//! Reads a log as a query wants it, a piece at a time, over rotated files, with bounded memory.
//!
//! Plain files and no waiting: who follows calls again when there is more.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tokio::sync::watch;

use super::LogError;
use super::file::{LiveLog, Mark, as_u64};
use super::lines::Lines;
use super::query::LogQuery;
use super::record::{self, Stamp, Stream, Tag};
use super::segments::{self, Segments};
use super::tail::{self, Place, Tail};

/// A piece is given out once it holds this much.
const PIECE: usize = 32 << 10;

/// Whether there is more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// More can be read now.
    More,
    /// More may be written later.
    CaughtUp,
    /// That was all.
    Done,
}

/// A reader with its place in the log.
#[derive(Debug)]
pub(super) struct Reader {
    path: PathBuf,
    live: Option<LiveLog>,
    growth: Option<watch::Receiver<Mark>>,
    lines: Lines,
    segment: u64,
    /// Where to stop, for those who do not follow.
    end: Option<Place>,
    render: Render,
}

impl Reader {
    pub(super) fn open(
        path: &Path,
        live: Option<LiveLog>,
        query: &LogQuery,
    ) -> Result<Self, LogError> {
        Self::open_near_end(path, live, query, u64::MAX)
    }

    /// Like [`Self::open`]; with a number of lines from the end, begins no further back than what makes
    /// `text` bytes, be it inside a line.
    pub(super) fn open_near_end(
        path: &Path,
        live: Option<LiveLog>,
        query: &LogQuery,
        text: u64,
    ) -> Result<Self, LogError> {
        let error = |source| LogError::io("reading the log", path, source);
        let growth = live.as_ref().filter(|_| query.follow).map(LiveLog::watch);
        let held = live.as_ref().map(LiveLog::hold);
        let segments = Segments::of(path).map_err(error)?;
        let current = File::open(path).map_err(error)?;
        let end = match &live {
            Some(live) => Place { segment: live.mark().segment, offset: live.mark().size },
            None => Place {
                segment: segments.current(),
                offset: current.metadata().map_err(error)?.len(),
            },
        };
        drop(held);
        let begin = match query.tail_lines {
            Some(lines) => {
                let tail = Tail { lines, text, streams: query.streams };
                tail::start(path, &current, segments.oldest(), end, tail).map_err(error)?
            }
            None => Place { segment: segments.oldest(), offset: 0 },
        };
        let (file, begin) = first(path, current, begin, end).map_err(error)?;
        Ok(Self {
            lines: Lines::at(file, begin.offset).map_err(error)?,
            segment: begin.segment,
            path: path.to_owned(),
            end: growth.is_none().then_some(end),
            live,
            growth,
            render: Render::new(query),
        })
    }

    /// Adds the next piece to `out`.
    pub(super) fn fill(&mut self, out: &mut Vec<u8>) -> Result<Progress, LogError> {
        while out.len() < PIECE {
            if self.render.full() || self.at_end() {
                return Ok(Progress::Done);
            }
            // Looked at before the file: what was written by then is found below.
            let mark = self.growth.as_mut().map(|growth| *growth.borrow_and_update());
            let next = self.lines.next().map_err(|error| self.error(error))?;
            if let Some(line) = next {
                self.render.line(self.lines.get(line), true, out);
                continue;
            }
            match (mark, self.end) {
                (Some(mark), _) if mark.segment > self.segment => self.advance(mark.segment)?,
                (Some(mark), _) if mark.ended => return Ok(Progress::Done),
                (Some(_), _) => return Ok(Progress::CaughtUp),
                (None, Some(end)) if end.segment > self.segment => self.advance(end.segment)?,
                (None, _) => {
                    // The last record of a writer that was killed.
                    if self.live.is_none() {
                        self.render.line(self.lines.torn(), false, out);
                    }
                    return Ok(Progress::Done);
                }
            }
        }
        Ok(Progress::More)
    }

    /// Waits until there may be more.
    pub(super) async fn grown(&mut self) {
        if let Some(growth) = &mut self.growth {
            // An error means that the writer is gone, which the mark says too.
            let _gone = growth.changed().await;
        }
    }

    fn at_end(&self) -> bool {
        self.end.is_some_and(|end| {
            self.live.is_some() && self.segment >= end.segment && self.lines.offset() >= end.offset
        })
    }

    /// Goes to the next file, or the first after it that is still there.
    fn advance(&mut self, last: u64) -> Result<(), LogError> {
        let held = self.live.as_ref().map(LiveLog::hold);
        let current = match &self.live {
            Some(live) => live.mark().segment,
            None => last,
        };
        let mut segment = self.segment + 1;
        let file = loop {
            let path = if segment < current {
                segments::rotated(&self.path, segment)
            } else {
                self.path.clone()
            };
            match File::open(&path) {
                Ok(file) => break file,
                Err(error) if error.kind() == io::ErrorKind::NotFound && segment < current => {
                    segment += 1;
                }
                Err(error) => return Err(LogError::io("reading the log", &path, error)),
            }
        };
        drop(held);
        self.lines = Lines::at(file, 0).map_err(|error| self.error(error))?;
        self.segment = segment;
        Ok(())
    }

    fn error(&self, source: io::Error) -> LogError {
        LogError::io("reading the log", &self.path, source)
    }
}

/// The file that `begin` lies in; if it was removed meanwhile, the first after it.
fn first(path: &Path, current: File, begin: Place, end: Place) -> io::Result<(File, Place)> {
    let mut begin = begin;
    while begin.segment < end.segment {
        match File::open(segments::rotated(path, begin.segment)) {
            Ok(file) => return Ok((file, begin)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                begin = Place { segment: begin.segment + 1, offset: 0 };
            }
            Err(error) => return Err(error),
        }
    }
    Ok((current, begin))
}

/// Turns records into what the reader sees.
#[derive(Debug)]
struct Render {
    query: LogQuery,
    since: Option<Stamp>,
    left: u64,
    /// Whether a stream is in the middle of a line.
    inside: [bool; 2],
}

impl Render {
    fn new(query: &LogQuery) -> Self {
        Self {
            since: query.since.map(Stamp::of),
            left: query.limit_bytes.unwrap_or(u64::MAX),
            inside: [false; 2],
            query: query.clone(),
        }
    }

    const fn full(&self) -> bool {
        self.left == 0
    }

    fn line(&mut self, line: &[u8], complete: bool, out: &mut Vec<u8>) {
        let Some(record) = record::parse(line) else { return };
        if !self.query.streams.take(record.stream) || self.since.is_some_and(|at| record.stamp < at)
        {
            return;
        }
        let [stdout, stderr] = &mut self.inside;
        let inside = match record.stream {
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        let stamped = self.query.timestamps && !*inside;
        *inside = record.tag == Tag::Partial;
        if stamped {
            self.put(record.stamp.as_bytes(), out);
            self.put(b" ", out);
        }
        self.put(record.text, out);
        if record.tag == Tag::Full && complete {
            self.put(b"\n", out);
        }
    }

    fn put(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let count = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
        out.extend_from_slice(bytes.get(..count).unwrap_or_default());
        self.left -= as_u64(count);
    }
}
