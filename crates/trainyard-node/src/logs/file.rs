//! Writes one container's log: records into the current file, rotated before it is too big, the oldest
//! removed. Wakes whoever follows it.
//!
//! A disk that takes no more never stops a container: what cannot be written is counted and dropped, and
//! the log says so where it goes on.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;

use super::record::{self, HEADER, Stamp, Stream, Tag};
use super::segments::{self, Segments};
use super::split::Splitter;
use super::{Bounds, LogError};

/// Records are gathered up to this size before they are written.
const BATCH: usize = 64 << 10;

/// How far a log has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    /// Number of the current file.
    pub(super) segment: u64,
    /// Complete bytes in it.
    pub(super) size: u64,
    /// Nothing more will come.
    pub(super) ended: bool,
}

/// Output that could not be kept.
#[derive(Debug, Default)]
pub(crate) struct Lost {
    /// Bytes of text.
    pub(crate) bytes: u64,
    /// Why, the last time.
    pub(crate) reason: Option<String>,
}

/// A log that is being written, for those who read it meanwhile. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct LiveLog(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// Held while files are renamed, and by readers while they look for the file they need.
    rotation: Mutex<()>,
    mark: watch::Sender<Mark>,
}

impl LiveLog {
    /// Nothing more will be written.
    #[cfg(test)]
    pub(crate) fn ended(&self) -> bool {
        self.0.mark.borrow().ended
    }

    pub(super) fn watch(&self) -> watch::Receiver<Mark> {
        self.0.mark.subscribe()
    }

    /// How many readers follow it now.
    #[cfg(test)]
    pub(crate) fn followers(&self) -> usize {
        self.0.mark.receiver_count()
    }

    /// Keeps files from being renamed. For a short look only, outside of async code.
    pub(super) fn hold(&self) -> MutexGuard<'_, ()> {
        self.0.rotation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn mark(&self) -> Mark {
        *self.0.mark.borrow()
    }
}

/// The writer of one container's log. Dropping it ends the log.
#[derive(Debug)]
pub(crate) struct LogFile {
    stdout: Splitter,
    stderr: Splitter,
    sink: Sink,
}

impl LogFile {
    /// Opens the log at `path`, with the folders above it; an existing one is gone on with.
    pub(crate) fn open(path: &Path, bounds: Bounds) -> Result<Self, LogError> {
        let sink = Sink::open(path, bounds)?;
        Ok(Self { stdout: Splitter::default(), stderr: Splitter::default(), sink })
    }

    /// For those who want to read while it grows.
    pub(crate) fn live(&self) -> LiveLog {
        self.sink.live.clone()
    }

    /// Adds what was printed, and hands all complete lines to the file system.
    pub(crate) fn append(&mut self, stream: Stream, bytes: &[u8], now: Timestamp) {
        let stamp = Stamp::of(now);
        let sink = &mut self.sink;
        let splitter = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        splitter.feed(bytes, |tag, text| sink.put(stamp, stream, tag, text));
        sink.flush(stamp);
    }

    /// The container has ended: writes lines without an end, tells followers, and says what was lost.
    pub(crate) fn finish(mut self, now: Timestamp) -> Lost {
        let stamp = Stamp::of(now);
        let sink = &mut self.sink;
        self.stdout.finish(|tag, text| sink.put(stamp, Stream::Stdout, tag, text));
        self.stderr.finish(|tag, text| sink.put(stamp, Stream::Stderr, tag, text));
        sink.flush(stamp);
        std::mem::take(&mut self.sink.lost)
    }
}

#[derive(Debug)]
struct Sink {
    path: PathBuf,
    bounds: Bounds,
    /// None after trouble: opened again by the next write.
    file: Option<File>,
    segment: u64,
    size: u64,
    batch: Vec<u8>,
    /// Bytes of text in `batch`.
    batch_text: u64,
    lost: Lost,
    /// Bytes lost that the log does not mention yet.
    unmentioned: u64,
    live: LiveLog,
}

impl Sink {
    fn open(path: &Path, bounds: Bounds) -> Result<Self, LogError> {
        let error = |source| LogError::Io { doing: "opening the log", path: path.into(), source };
        let (file, size) = open_current(path).map_err(error)?;
        let segment = Segments::of(path).map_err(error)?.current();
        let mark = watch::Sender::new(Mark { segment, size, ended: false });
        let live = LiveLog(Arc::new(Shared { rotation: Mutex::new(()), mark }));
        Ok(Self {
            path: path.to_owned(),
            bounds: Bounds { file_bytes: bounds.file_bytes.max(1), files: bounds.files.max(1) },
            file: Some(file),
            segment,
            size,
            batch: Vec::new(),
            batch_text: 0,
            lost: Lost::default(),
            unmentioned: 0,
            live,
        })
    }

    fn put(&mut self, stamp: Stamp, stream: Stream, tag: Tag, text: &[u8]) {
        let pending = as_u64(self.batch.len());
        let filled = self.size.saturating_add(pending);
        let length = as_u64(HEADER + text.len() + 1);
        if filled > 0 && filled.saturating_add(length) > self.bounds.file_bytes {
            self.flush(stamp);
            if self.size > 0
                && let Err(error) = self.rotate()
            {
                self.lose(as_u64(text.len()), &error);
                return;
            }
        }
        record::write(&mut self.batch, stamp, stream, tag, text);
        self.batch_text += as_u64(text.len());
        if self.batch.len() >= BATCH {
            self.flush(stamp);
        }
    }

    fn flush(&mut self, stamp: Stamp) {
        if self.batch.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        if self.unmentioned > 0 {
            let reason = self.lost.reason.as_deref().unwrap_or("unknown");
            let words =
                format!("trainyard: {} bytes of output were lost here: {reason}", self.unmentioned);
            let mut note = Vec::new();
            record::write(&mut note, stamp, Stream::Stderr, Tag::Full, words.as_bytes());
            batch.splice(0..0, note);
        }
        match self.write(&batch) {
            Ok(()) => {
                self.unmentioned = 0;
                self.size += as_u64(batch.len());
                self.tell();
            }
            Err(error) => self.lose(self.batch_text, &error),
        }
        self.batch_text = 0;
        batch.clear();
        // A burst of short lines makes a big batch; an idle container keeps only a small one.
        batch.shrink_to(HEADER);
        self.batch = batch;
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            let (file, size) = open_current(&self.path)?;
            self.size = size;
            self.file = Some(file);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        let result = file.write_all(bytes);
        if result.is_err() {
            // A torn record would swallow the next one.
            let _unfixable = file.set_len(self.size);
            self.file = None;
        }
        result
    }

    fn rotate(&mut self) -> io::Result<()> {
        let live = self.live.clone();
        let held = live.hold();
        self.file = None;
        match fs::rename(&self.path, segments::rotated(&self.path, self.segment)) {
            Ok(()) => {}
            // Someone removed it; a new one takes its place.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.segment += 1;
        self.size = 0;
        for &number in &Segments::of(&self.path)?.rotated {
            if number.saturating_add(self.bounds.files) <= self.segment {
                let _kept_a_little_longer = fs::remove_file(segments::rotated(&self.path, number));
            }
        }
        let (file, size) = open_current(&self.path)?;
        self.file = Some(file);
        self.size = size;
        // Followers may look for the new file from now on.
        self.tell();
        drop(held);
        Ok(())
    }

    fn lose(&mut self, bytes: u64, error: &io::Error) {
        let reason = error.to_string();
        if self.unmentioned == 0 {
            tracing::warn!(path = %self.path.display(), %reason, "output of a container is lost");
        }
        self.lost.bytes += bytes;
        self.unmentioned += bytes;
        self.lost.reason = Some(reason);
    }

    fn tell(&self) {
        self.live.0.mark.send_modify(|mark| {
            mark.segment = self.segment;
            mark.size = self.size;
        });
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.live.0.mark.send_modify(|mark| mark.ended = true);
    }
}

/// Opens or makes the current file and the folders above it. A record that a crash tore off is ended.
fn open_current(path: &Path) -> io::Result<(File, u64)> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(segments::folder(path))?;
    let mut options = OpenOptions::new();
    let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
    let mut size = file.metadata()?.len();
    if size > 0 {
        let mut last = [0];
        file.seek(SeekFrom::Start(size - 1))?;
        file.read_exact(&mut last)?;
        if last != *b"\n" {
            file.write_all(b"\n")?;
            size += 1;
        }
    }
    Ok((file, size))
}

pub(super) fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        "2026-11-15T09:30:00Z".parse().unwrap()
    }

    fn sizes(folder: &Path) -> Vec<(String, u64)> {
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn files_are_rotated_and_bounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/0.log");
        let bounds = Bounds { file_bytes: 500, files: 3 };
        let mut log = LogFile::open(&path, bounds).unwrap();
        for number in 0..200 {
            log.append(Stream::Stdout, format!("line {number}\n").as_bytes(), now());
        }
        // One burst is cut into files just the same.
        log.append(Stream::Stderr, "burst\n".repeat(500).as_bytes(), now());
        assert!(!log.live().ended());
        let live = log.live();
        assert_eq!(log.finish(now()).bytes, 0);
        assert!(live.ended());
        let files = sizes(path.parent().unwrap());
        assert_eq!(files.len(), 3, "{files:?}");
        assert!(files.iter().all(|(_, size)| *size <= 500), "{files:?}");
        assert!(files[1].0.starts_with("0.log.") && files[2].0 > files[1].0, "{files:?}");
    }

    #[test]
    fn a_record_bigger_than_a_file_gets_one_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut log = LogFile::open(&path, Bounds { file_bytes: 1, files: 0 }).unwrap();
        log.append(Stream::Stdout, b"one\ntwo\n", now());
        drop(log);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "2026-11-15T09:30:00.000000000Z stdout F two\n");
        assert_eq!(sizes(folder.path()).len(), 1);
    }

    #[test]
    fn an_existing_log_is_gone_on_with_even_a_torn_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        fs::write(&path, "2026-11-15T09:30:00.000000000Z stdout F to").unwrap();
        fs::write(segments::rotated(&path, 4), "").unwrap();
        let mut log = LogFile::open(&path, Bounds::default()).unwrap();
        assert_eq!(log.live().mark().segment, 5);
        log.append(Stream::Stdout, b"more", now());
        assert_eq!(log.finish(now()).bytes, 0);
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            "2026-11-15T09:30:00.000000000Z stdout F to\n\
             2026-11-15T09:30:00.000000000Z stdout P more\n"
        );
    }

    #[test]
    fn a_removed_file_does_not_stop_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut log = LogFile::open(&path, Bounds { file_bytes: 60, files: 2 }).unwrap();
        log.append(Stream::Stdout, b"first\n", now());
        fs::remove_file(&path).unwrap();
        log.append(Stream::Stdout, b"second\n", now());
        assert_eq!(log.finish(now()).bytes, 0);
        assert!(fs::read_to_string(&path).unwrap().ends_with("second\n"));
    }

    #[test]
    fn output_that_cannot_be_kept_is_counted_and_mentioned() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut log = LogFile::open(&path, Bounds { file_bytes: 60, files: 2 }).unwrap();
        log.append(Stream::Stdout, b"kept\n", now());
        // A folder in the place of the rotated file makes rotation impossible.
        let obstacle = segments::rotated(&path, 1);
        fs::create_dir_all(obstacle.join("full")).unwrap();
        log.append(Stream::Stdout, b"dropped\n", now());
        fs::remove_dir_all(&obstacle).unwrap();
        log.append(Stream::Stdout, b"after\n", now());
        let lost = log.finish(now());
        assert_eq!(lost.bytes, 7);
        assert!(lost.reason.is_some());
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines[0].contains("stderr F trainyard: 7 bytes of output were lost here"),
            "{text}"
        );
        assert!(lines[1].ends_with("stdout F after"), "{text}");
    }

    #[test]
    fn a_path_that_cannot_be_made_is_told() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("file"), "").unwrap();
        let path = folder.path().join("file/0.log");
        let error = LogFile::open(&path, Bounds::default()).unwrap_err();
        assert_eq!(error.kind(), "io");
        assert!(error.to_string().contains("file/0.log"), "{error}");
    }
}
