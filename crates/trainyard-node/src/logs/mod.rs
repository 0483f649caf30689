//! What containers print: kept on disk in the CRI's format, rotated and bounded, read back as a kubelet
//! would give it, also while it grows.
//!
//! Must not know the HTTP API that asks for logs, nor how containers are run: it is given descriptors to
//! read from and paths to write to.

mod descriptor;
mod file;
mod kept;
mod last_words;
mod lines;
mod place;
mod pump;
mod query;
mod read;
mod record;
mod retain;
mod segments;
mod split;
mod stream;
mod tail;

#[cfg(test)]
mod follow_tests;
#[cfg(test)]
mod read_tests;

use std::io;
use std::path::{Path, PathBuf};

pub(crate) use descriptor::Descriptor;
#[cfg(test)]
pub(crate) use file::LiveLog;
pub(crate) use file::{LogFile, Lost};
pub use kept::{KeptLine, KeptLines, KeptRun, kept_runs};
pub(crate) use last_words::last_words;
pub(crate) use place::{Logged, PodPlace};
pub(crate) use pump::pump;
pub(crate) use query::{LogQuery, Streams};
#[cfg(test)]
pub(crate) use record::Stream;
pub(crate) use retain::trim;
pub(crate) use stream::{LogSource, read};

/// What the logs of all pods together may take.
pub(crate) const ALL_BYTES: u64 = 2 << 30;

/// How much of one container's output is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// A file is rotated before it grows beyond this many bytes.
    pub(crate) file_bytes: u64,
    /// How many files there are at most, the one being written among them.
    pub(crate) files: u64,
}

impl Default for Bounds {
    /// A kubelet's own.
    fn default() -> Self {
        Self { file_bytes: 10 << 20, files: 5 }
    }
}

/// Why a log could not be written or read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// There is no such log, or no more.
    #[error("the log {path} is not there: nothing was printed yet, or it was removed to make room")]
    Missing {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("{doing} {path}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A descriptor that output was to be read from cannot be used.
    #[error("reading a container's output: {source}")]
    Output {
        /// Why not.
        source: io::Error,
    },
    /// A thread that did the reading ended.
    #[error("the reader of a log ended unexpectedly: {problem}")]
    Broken {
        /// What is known of it.
        problem: String,
    },
}

impl LogError {
    /// One word for logs.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Missing { .. } => "missing",
            Self::Io { .. } => "io",
            Self::Output { .. } => "output",
            Self::Broken { .. } => "broken",
        }
    }

    fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::NotFound {
            return Self::Missing { path: path.to_owned() };
        }
        Self::Io { doing, path: path.to_owned(), source }
    }
}
