//! A log as a stream of bytes for async code. Pulled by whoever reads: nothing is queued, and a reader
//! that is dropped leaves nothing behind.

use std::path::PathBuf;

use bytes::Bytes;
use futures::Stream;

use super::LogError;
use super::file::LiveLog;
use super::query::LogQuery;
use super::read::{Progress, Reader};

/// Where a container's log is.
#[derive(Debug, Clone)]
pub(crate) struct LogSource {
    /// The current file.
    pub(crate) path: PathBuf,
    /// If it is still being written: who does.
    pub(crate) live: Option<LiveLog>,
}

/// Opens a log and gives out what the query wants of it.
pub(crate) async fn read(
    source: LogSource,
    query: LogQuery,
) -> Result<impl Stream<Item = Result<Bytes, LogError>> + Send + 'static, LogError> {
    let reader = blocking(move || Reader::open(&source.path, source.live, &query)).await?;
    Ok(futures::stream::try_unfold(Some(reader), |state| async {
        let Some(mut reader) = state else { return Ok(None) };
        loop {
            let (back, piece, progress) = blocking(move || {
                let mut piece = Vec::new();
                let progress = reader.fill(&mut piece)?;
                Ok((reader, piece, progress))
            })
            .await?;
            reader = back;
            if !piece.is_empty() {
                let next = (progress != Progress::Done).then_some(reader);
                return Ok(Some((Bytes::from(piece), next)));
            }
            match progress {
                Progress::More => {}
                Progress::CaughtUp => reader.grown().await,
                Progress::Done => return Ok(None),
            }
        }
    }))
}

/// Runs file work on a thread where it may wait for the disk.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LogError> + Send + 'static,
) -> Result<T, LogError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(LogError::Broken { problem: error.to_string() }),
    }
}
