//! Carries a container's output into its log until the container has closed both.

use std::os::fd::OwnedFd;

use jiff::Timestamp;
use tokio::task::JoinHandle;

use super::LogError;
use super::descriptor::Descriptor;
use super::file::{LogFile, Lost};
use super::record::Stream;
use super::stream::blocking;

/// What is read at once.
const READ: usize = 32 << 10;

/// Starts to carry. `stderr` is none for a terminal, which prints all to one place. The log ends when
/// nothing holds the other sides open any more; then the task gives what was lost. While the disk is
/// slow nothing is read, so that the container waits and no memory fills.
pub(crate) fn pump(
    stdout: OwnedFd,
    stderr: Option<OwnedFd>,
    log: LogFile,
) -> Result<JoinHandle<Lost>, LogError> {
    let open = |fd| Descriptor::new(fd).map_err(|source| LogError::Output { source });
    let stdout = open(stdout)?;
    let stderr = stderr.map(open).transpose()?;
    Ok(tokio::spawn(carry(Some(stdout), stderr, log)))
}

async fn carry(
    mut stdout: Option<Descriptor>,
    mut stderr: Option<Descriptor>,
    mut log: LogFile,
) -> Lost {
    loop {
        let (stream, result) = tokio::select! {
            result = some(stdout.as_ref()), if stdout.is_some() => (Stream::Stdout, result),
            result = some(stderr.as_ref()), if stderr.is_some() => (Stream::Stderr, result),
            else => break,
        };
        let bytes = result.unwrap_or_else(|error| {
            tracing::warn!(%error, ?stream, "reading a container's output failed");
            Vec::new()
        });
        if bytes.is_empty() {
            match stream {
                Stream::Stdout => stdout = None,
                Stream::Stderr => stderr = None,
            }
            continue;
        }
        let written = blocking(move || {
            log.append(stream, &bytes, Timestamp::now());
            Ok(log)
        });
        log = match written.await {
            Ok(log) => log,
            Err(error) => return Lost { bytes: 0, reason: Some(error.to_string()) },
        };
    }
    match blocking(move || Ok(log.finish(Timestamp::now()))).await {
        Ok(lost) => lost,
        Err(error) => Lost { bytes: 0, reason: Some(error.to_string()) },
    }
}

async fn some(source: Option<&Descriptor>) -> std::io::Result<Vec<u8>> {
    match source {
        Some(source) => source.read_some(READ).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use crate::logs::Bounds;

    use super::*;

    #[tokio::test]
    async fn both_outputs_are_carried_until_both_are_closed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.log");
        let log = LogFile::open(&path, Bounds::default()).unwrap();
        let live = log.live();
        let (out_read, out_write) = rustix::pipe::pipe().unwrap();
        let (err_read, err_write) = rustix::pipe::pipe().unwrap();
        let task = pump(out_read, Some(err_read), log).unwrap();
        let mut marks = live.watch();
        let mut out = File::from(out_write);
        out.write_all(b"out\n").unwrap();
        marks.changed().await.unwrap();
        drop(out);
        let mut err = File::from(err_write);
        err.write_all(b"err").unwrap();
        assert!(!live.ended());
        drop(err);
        assert_eq!(task.await.unwrap().bytes, 0);
        assert!(live.ended());
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().map(|line| line.split_at(31).1).collect();
        assert_eq!(lines, ["stdout F out", "stderr P err"]);
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let log = LogFile::open(&folder.path().join("0.log"), Bounds::default()).unwrap();
        let file = File::create(folder.path().join("plain")).unwrap();
        let error = pump(file.into(), None, log).unwrap_err();
        assert_eq!(error.kind(), "output");
    }
}
