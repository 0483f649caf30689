//! What can be asked of a log.

use jiff::Timestamp;

use super::record::Stream;

/// Which outputs are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Streams {
    /// Both, in the order they were printed.
    #[default]
    All,
    /// Standard output only.
    Stdout,
    /// Standard error only.
    Stderr,
}

impl Streams {
    pub(super) const fn take(self, stream: Stream) -> bool {
        matches!(
            (self, stream),
            (Self::All, _) | (Self::Stdout, Stream::Stdout) | (Self::Stderr, Stream::Stderr)
        )
    }
}

/// What is wanted of a container's log. By default all there is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LogQuery {
    /// Goes on until the container has ended.
    pub(crate) follow: bool,
    /// The log of the container's run before this one. Whoever names the log acts on it.
    pub(crate) previous: bool,
    /// Puts its time before each line.
    pub(crate) timestamps: bool,
    /// Only so many lines from the end.
    pub(crate) tail_lines: Option<u64>,
    /// Only what was printed then or later.
    pub(crate) since: Option<Timestamp>,
    /// No more bytes than these.
    pub(crate) limit_bytes: Option<u64>,
    /// Which outputs.
    pub(crate) streams: Streams,
}
