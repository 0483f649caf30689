//! Components of the yard that are shown as pods, and their logs: what they say is kept in memory,
//! bounded, for `kubectl logs`.
//!
//! Owns that memory. Must not know what is said.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::{Stream, stream};
use jiff::Timestamp;
use tokio::sync::watch;
use tracing_subscriber::fmt::MakeWriter;
use trainyard_apiserver::{LogOptions, Residents};

/// So many bytes of lines are kept.
const KEPT: usize = 1 << 20;

/// The last lines of a component.
#[derive(Clone)]
pub(crate) struct Lines {
    kept: Arc<Mutex<Kept>>,
    told: watch::Sender<u64>,
}

#[derive(Default)]
struct Kept {
    lines: VecDeque<(Timestamp, Bytes)>,
    bytes: usize,
    /// The number of the line after the last.
    end: u64,
}

impl Kept {
    fn push(&mut self, line: Bytes) {
        self.bytes += line.len();
        self.end += 1;
        self.lines.push_back((Timestamp::now(), line));
        while self.bytes > KEPT {
            let Some((_, oldest)) = self.lines.pop_front() else { break };
            self.bytes -= oldest.len();
        }
    }

    /// The lines from a number on; those that are gone are left out.
    fn from(&self, number: u64) -> impl Iterator<Item = &(Timestamp, Bytes)> {
        let first = self.end - self.lines.len() as u64;
        let skip = usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX);
        self.lines.iter().skip(skip)
    }
}

impl Default for Lines {
    fn default() -> Self {
        Self { kept: Arc::default(), told: watch::Sender::new(0) }
    }
}

impl Lines {
    fn locked(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, text: &[u8]) {
        let mut kept = self.locked();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            kept.push(Bytes::copy_from_slice(line));
        }
        let end = kept.end;
        drop(kept);
        self.told.send_replace(end);
    }

    /// What is there, from a number on, and the number to go on from.
    fn piece(&self, from: u64, timestamps: bool) -> (Bytes, u64) {
        let kept = self.locked();
        let mut out = Vec::new();
        for (time, line) in kept.from(from) {
            if timestamps {
                out.extend_from_slice(time.to_string().as_bytes());
                out.push(b' ');
            }
            out.extend_from_slice(line);
        }
        (out.into(), kept.end)
    }

    /// The number of the first line that is wanted.
    fn first(&self, options: &LogOptions) -> u64 {
        let kept = self.locked();
        let by_tail = options.tail.map_or(0, |tail| kept.end.saturating_sub(tail as u64));
        let by_time = options.since_seconds.map_or(0, |seconds| {
            let span = jiff::SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
            let since = Timestamp::now().checked_sub(span).unwrap_or(Timestamp::MIN);
            let young = kept.lines.iter().filter(|(time, _)| *time >= since).count();
            kept.end - young as u64
        });
        by_tail.max(by_time)
    }

    fn stream(&self, options: &LogOptions) -> Pin<Box<dyn Stream<Item = Bytes> + Send>> {
        let (timestamps, follow) = (options.timestamps, options.follow);
        let state = (self.clone(), self.told.subscribe(), self.first(options), true);
        Box::pin(stream::unfold(state, move |(lines, mut told, from, is_first)| async move {
            loop {
                told.borrow_and_update();
                let (piece, end) = lines.piece(from, timestamps);
                if !piece.is_empty() {
                    return Some((piece, (lines, told, end, false)));
                }
                if !follow || (!is_first && told.has_changed().is_err()) {
                    return None;
                }
                told.changed().await.ok()?;
            }
        }))
    }
}

/// Writes one event's text.
pub(crate) struct Writer(Lines);

impl io::Write for Writer {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.push(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Writer;

    fn make_writer(&self) -> Writer {
        Writer(self.clone())
    }
}

/// The components with their lines, by namespace and pod.
#[derive(Default)]
pub(crate) struct House {
    /// Namespace, pod, lines.
    pub(crate) pods: Vec<(String, String, Lines)>,
}

impl Residents for House {
    fn log(
        &self,
        namespace: &str,
        pod: &str,
        options: &LogOptions,
    ) -> Option<Pin<Box<dyn Stream<Item = Bytes> + Send>>> {
        let found = self.pods.iter().find(|(ns, name, _)| ns == namespace && name == pod);
        found.map(|(_, _, lines)| lines.stream(options))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;

    use super::*;

    #[tokio::test]
    async fn the_last_lines_and_what_follows() {
        let lines = Lines::default();
        lines.push(b"one\ntwo\n");
        lines.push(b"three\n");
        let options = LogOptions { tail: Some(2), ..LogOptions::default() };
        let all: Vec<Bytes> = lines.stream(&options).collect().await;
        assert_eq!(all.concat(), b"two\nthree\n");
        let options = LogOptions { follow: true, tail: Some(0), ..LogOptions::default() };
        let mut stream = lines.stream(&options);
        lines.push(b"four\n");
        assert_eq!(stream.next().await.unwrap(), "four\n");
    }

    #[test]
    fn memory_is_bounded() {
        let lines = Lines::default();
        for _ in 0..3000 {
            lines.push(&[b'x'; 1024]);
        }
        assert!(lines.locked().bytes <= KEPT);
        assert_eq!(lines.locked().end, 3000);
    }
}
