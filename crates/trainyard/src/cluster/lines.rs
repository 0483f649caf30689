//! A body that comes line by line: events of a watch, lines of a log.

use http_body_util::BodyExt as _;
use kube::client::Body;

use super::Error;

/// Longest line that is kept whole; an object is at most 3 MiB, and a log may hold anything.
const LINE_BYTES_MAX: usize = 16 << 20;

/// A body under way.
pub(crate) struct Lines {
    body: Body,
    server: String,
    /// What has come and is not given out yet, from `at` on.
    kept: Vec<u8>,
    at: usize,
    ended: bool,
}

impl Lines {
    pub(super) fn new(body: Body, server: &str) -> Self {
        Self { body, server: server.to_owned(), kept: Vec::new(), at: 0, ended: false }
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
            match self.body.frame().await {
                None => self.ended = true,
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        self.kept.extend_from_slice(&data);
                    }
                }
                Some(Err(_)) => return Err(Error::Broken { server: self.server.clone() }),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_come_one_by_one_and_the_last_needs_no_end() {
        let mut lines = Lines::new(Body::from(b"one\n\nthree".to_vec()), "x");
        for expected in [&b"one"[..], b"", b"three"] {
            assert_eq!(lines.next().await.unwrap().as_deref(), Some(expected));
        }
        assert_eq!(lines.next().await.unwrap(), None);
        assert_eq!(lines.next().await.unwrap(), None);
    }
}
