//! A connection that is patient with its client, but not for ever: one that takes nothing of what is
//! sent to it is cut off, and what waits for it is freed.
//!
//! Must not know what is sent.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// A stream whose writes must get on.
pub(super) struct Patient<S> {
    stream: S,
    patience: Duration,
    /// Made when a write first has to wait.
    alarm: Option<Pin<Box<Sleep>>>,
    waits: bool,
}

impl<S> Patient<S> {
    pub(super) const fn new(stream: S, patience: Duration) -> Self {
        Self { stream, patience, alarm: None, waits: false }
    }

    /// Passes on what a write said; an error when it has been waiting for too long.
    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        said: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if said.is_ready() {
            self.waits = false;
            return said;
        }
        let patience = self.patience;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        if !self.waits {
            self.waits = true;
            alarm.as_mut().reset(Instant::now() + patience);
        }
        match alarm.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(()) => {
                let why = "the client does not take what it asked for";
                Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, why)))
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let said = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, said)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let said = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.judge(context, said)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let said = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, said)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let said = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, said)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(30);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_cut_off() {
        let (ours, _theirs) = tokio::io::duplex(10);
        let mut ours = Patient::new(ours, PATIENCE);
        let begin = Instant::now();
        let error = ours.write_all(&[0; 100]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begin.elapsed() >= PATIENCE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_gets_all_of_it() {
        let (ours, mut theirs) = tokio::io::duplex(10);
        let mut ours = Patient::new(ours, PATIENCE);
        let writing = tokio::spawn(async move { ours.write_all(&[7; 100]).await });
        let mut taken = 0;
        while taken < 100 {
            tokio::time::sleep(PATIENCE * 2 / 3).await;
            let mut some = [0; 10];
            taken += theirs.read(&mut some).await.unwrap();
        }
        writing.await.unwrap().unwrap();
    }
}
