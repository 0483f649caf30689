//! A body that comes line by line: events of a watch, lines of a log.

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};

use super::Error;

/// Longest line that is kept whole; an object is at most 3 MiB, and a log may hold anything.
const LINE_BYTES_MAX: usize = 16 << 20;

/// A body under way.
pub(crate) struct Lines {
    pieces: BoxStream<'static, Result<Bytes, ()>>,
    server: String,
    /// What has come and is not given out yet, from `at` on.
    kept: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Lines {
    /// Lines of what comes in pieces, from a server of this name.
    pub(crate) fn new<E>(
        pieces: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
        server: &str,
    ) -> Self {
        let pieces = pieces.map(|piece| piece.map_err(drop)).boxed();
        Self { pieces, server: server.to_owned(), kept: Vec::new(), at: 0, ended: false }
    }

    /// The next line without its end; none at the end of the body. Nothing is lost when the caller
    /// stops waiting.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Error> {
        let mut looked = self.at;
        loop {
            let fresh = self.kept.get(looked..).unwrap_or_default();
            if let Some(end) = fresh.iter().position(|byte| *byte == b'\n') {
                let line = self.kept[self.at..looked + end].to_vec();
                self.at = looked + end + 1;
                return Ok(Some(line));
            }
            if self.ended || self.kept.len() - self.at > LINE_BYTES_MAX {
                let rest = self.kept.split_off(self.at);
                self.kept.clear();
                self.at = 0;
                return Ok((!rest.is_empty()).then_some(rest));
            }
            self.kept.drain(..self.at);
            self.at = 0;
            looked = self.kept.len();
            match self.pieces.next().await {
                None => self.ended = true,
                Some(Ok(piece)) => self.kept.extend_from_slice(&piece),
                Some(Err(())) => return Err(Error::Broken { server: self.server.clone() }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_one_by_one_and_the_last_needs_no_end() {
        let pieces = ["on", "e\n\nth", "ree"].map(|piece| Ok::<_, ()>(Bytes::from(piece)));
        let mut lines = Lines::new(futures::stream::iter(pieces), "x");
        for expected in [&b"one"[..], b"", b"three"] {
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(expected));
        }
        assert_eq!(lines.next().await.unwrap(), None);
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
