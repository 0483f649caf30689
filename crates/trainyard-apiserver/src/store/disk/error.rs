//! Why a folder cannot be opened as a store, or a write did not reach it.
//!
//! Owns how errors of the files are told. Must not know who asked.

use std::io;
use std::path::{Path, PathBuf};

use super::FORMAT;

/// Why there is no store in a folder.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error(
        "{} is in use by {}; stop that one first or choose another folder",
        folder.display(),
        pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Held {
        /// The folder.
        folder: PathBuf,
        /// That process, when it left its number.
        pid: Option<u32>,
    },
    /// It was written by a program that knows more than this one.
    #[error(
        "{} has data of format {found}, and this program knows format {FORMAT}; use the program \
         that wrote it or choose another folder",
        path.display()
    )]
    OtherFormat {
        /// The file.
        path: PathBuf,
        /// The number of its format.
        found: u64,
    },
    /// This user may not write there.
    #[error(
        "{} is not writable: {source}; change its permissions or choose another folder",
        path.display()
    )]
    NotWritable {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// There is no room.
    #[error("no room for {}: {source}; make room or choose another folder", path.display())]
    Full {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The data make no sense.
    #[error("{} is damaged: {why}; restore the whole folder from a copy, or move it away to begin anew", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What was found wrong first.
        why: String,
    },
    /// It was written before there was a first release.
    #[error(
        "{} is from before the first release and cannot be read; move it away to begin anew, or \
         choose another folder",
        path.display()
    )]
    Former {
        /// The file.
        path: PathBuf,
    },
    /// Something else.
    #[error("{} cannot be opened: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl OpenError {
    /// A stable name of the variant, for logs and metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Held { .. } => "held",
            Self::OtherFormat { .. } => "other-format",
            Self::NotWritable { .. } => "not-writable",
            Self::Full { .. } => "full",
            Self::Corrupt { .. } => "corrupt",
            Self::Former { .. } => "former",
            Self::Io { .. } => "io",
        }
    }

    pub(super) fn of_io(path: &Path, source: io::Error) -> Self {
        use io::ErrorKind::{InvalidData, PermissionDenied, ReadOnlyFilesystem, UnexpectedEof};
        let path = path.to_owned();
        match source.kind() {
            PermissionDenied | ReadOnlyFilesystem => Self::NotWritable { path, source },
            InvalidData | UnexpectedEof => Self::Corrupt { path, why: source.to_string() },
            _ if is_full(&source) => Self::Full { path, source },
            _ => Self::Io { path, source },
        }
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Why a write did not reach the disk.
#[derive(Debug, thiserror::Error)]
pub(in crate::store) enum WriteError {
    /// There was no room, and nothing of it is there.
    #[error("{0}")]
    Full(String),
    /// Nobody knows whether it is there; no more can be written by this process.
    #[error("{0}")]
    Broken(String),
}

impl WriteError {
    pub(super) fn of(error: &io::Error) -> Self {
        if is_full(error) { Self::Full(error.to_string()) } else { Self::Broken(error.to_string()) }
    }
}
