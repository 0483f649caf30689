//! Where lines come from: a server, or a file that was kept. Each line with its time.

use jiff::Timestamp;
use trainyard_node::KeptLines;

use crate::cluster::Lines;
use crate::failure::Failure;

/// A line and when it was printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) time: Option<Timestamp>,
    pub(crate) text: Vec<u8>,
}

/// A log under way.
pub(crate) enum Source {
    /// From a server or a node, with times before the lines.
    Stamped(Box<Lines>),
    /// From a file; lines before this time are left out.
    Kept(KeptLines, Option<Timestamp>),
    /// Lines that were gathered before.
    Ready(std::vec::IntoIter<Line>),
}

impl Source {
    /// The next line; none at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Line>, Failure> {
        match self {
            Self::Stamped(lines) => Ok(lines.next().await?.map(|bytes| split(&bytes))),
            Self::Kept(lines, begin) => loop {
                let Some(line) = lines.next() else { return Ok(None) };
                let line = line.map_err(|error| Failure::other("reading a kept log", &error))?;
                if begin.is_none_or(|begin| line.time >= begin) {
                    return Ok(Some(Line { time: Some(line.time), text: line.text }));
                }
            },
            Self::Ready(lines) => Ok(lines.next()),
        }
    }

    /// The same with no more than the last lines of a file. The server does this itself.
    pub(super) async fn tailed(mut self, most: Option<usize>) -> Result<Self, Failure> {
        let (Self::Kept(..), Some(most)) = (&self, most) else { return Ok(self) };
        let mut last = std::collections::VecDeque::new();
        while let Some(line) = self.next().await? {
            if last.len() == most {
                last.pop_front();
            }
            if most > 0 {
                last.push_back(line);
            }
        }
        Ok(Self::Ready(Vec::from(last).into_iter()))
    }
}

/// Takes the time off a line. What has none is all text.
fn split(bytes: &[u8]) -> Line {
    let space = bytes.iter().position(|byte| *byte == b' ').unwrap_or(bytes.len());
    let (stamp, rest) = bytes.split_at(space);
    let time = std::str::from_utf8(stamp).ok().and_then(|stamp| stamp.parse().ok());
    match time {
        Some(_) => Line { time, text: rest.strip_prefix(b" ").unwrap_or(rest).to_vec() },
        None => Line { time: None, text: bytes.to_vec() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_taken_off() {
        let line = split(b"2026-01-31T08:00:00.5Z epoch 1");
        assert_eq!(line.text, b"epoch 1");
        assert_eq!(line.time, "2026-01-31T08:00:00.5Z".parse().ok());
        assert_eq!(split(b"2026-01-31T08:00:00Z").text, b"");
        assert_eq!(split(b"no time"), Line { time: None, text: b"no time".to_vec() });
    }
}
