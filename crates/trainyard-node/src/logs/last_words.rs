//! The end of a log, as the message of a container that failed (`FallbackToLogsOnError`).

use std::path::{Path, PathBuf};

use super::file::as_u64;
use super::read::{Progress, Reader};
use super::stream::blocking;
use super::{LogError, LogQuery};

/// The last `lines` lines of the log at `path`, and of these the last `bytes` bytes. What is no UTF-8
/// is replaced. A log that is not there has none.
pub(crate) async fn last_words(
    path: PathBuf,
    lines: u64,
    bytes: usize,
) -> Result<String, LogError> {
    blocking(move || match end_of(&path, lines, bytes) {
        Err(LogError::Missing { .. }) => Ok(String::new()),
        result => result,
    })
    .await
}

fn end_of(path: &Path, lines: u64, bytes: usize) -> Result<String, LogError> {
    let query = LogQuery { tail_lines: Some(lines), ..LogQuery::default() };
    let mut reader = Reader::open_near_end(path, None, &query, as_u64(bytes))?;
    let mut words = Vec::new();
    loop {
        let progress = reader.fill(&mut words)?;
        words.drain(..words.len().saturating_sub(bytes));
        if progress != Progress::More {
            break;
        }
    }
    // The cut may have gone through a character; its rest would show as rubbish.
    let rest = words.iter().take(3).take_while(|&&byte| byte & 0xc0 == 0x80).count();
    let mut text = String::from_utf8_lossy(words.get(rest..).unwrap_or_default()).into_owned();
    // A replacement is longer than what it stands for.
    let surplus = text.len().saturating_sub(bytes);
    let from = (surplus..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len());
    text.drain(..from);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use crate::logs::{Bounds, LogFile, Stream};

    use super::*;

    async fn words(printed: &[u8], bounds: Bounds, lines: u64, bytes: usize) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let mut log = LogFile::open(&path, bounds).unwrap();
        log.append(Stream::Stderr, printed, jiff::Timestamp::UNIX_EPOCH);
        log.finish(jiff::Timestamp::UNIX_EPOCH);
        last_words(path, lines, bytes).await.unwrap()
    }

    #[tokio::test]
    async fn the_end_is_bounded_in_lines_and_bytes() {
        let all = Bounds::default();
        let small = Bounds { file_bytes: 60, files: 4 };
        let long = ["x".repeat(1 << 20), "the end".to_owned()].concat();
        for (printed, bounds, lines, bytes, expected) in [
            (&b"a\nb\nc\n"[..], all, 2, 2048, "b\nc\n"),
            (b"a\nb\nc\n", all, 80, 4, "b\nc\n"),
            (b"a\nb\nc\n", small, 3, 2048, "a\nb\nc\n"),
            (b"no end", all, 80, 2048, "no end"),
            (b"", all, 80, 2048, ""),
            (b"a\n", all, 0, 2048, ""),
            (b"a\n", all, 80, 0, ""),
            (long.as_bytes(), all, 80, 7, "the end"),
            ("löss".as_bytes(), all, 80, 3, "ss"),
            (b"\xff\xffab", all, 80, 4, "ab"),
            (b"\xffab", all, 80, 8, "\u{fffd}ab"),
        ] {
            let found = words(printed, bounds, lines, bytes).await;
            assert_eq!(found, expected, "{lines} lines, {bytes} bytes");
        }
    }

    #[tokio::test]
    async fn a_missing_log_has_no_words() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last_words(folder.path().join("0.log"), 80, 2048).await.unwrap(), "");
    }
}
