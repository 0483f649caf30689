//! A pipe or terminal of a container, for async code.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Reads and writes a pipe or a terminal's master side without blocking. The end of a terminal, which the
/// kernel reports as an error, is the end of the file.
#[derive(Debug)]
pub(crate) struct Descriptor {
    fd: AsyncFd<OwnedFd>,
}

impl Descriptor {
    /// Takes over `fd`, inside a runtime. Nobody else may rely on it to block.
    pub(crate) fn new(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types whose descriptor may change; an owned one never does"
        )]
        let fd = AsyncFd::new(fd)?;
        Ok(Self { fd })
    }

    /// Waits until something can be read, then reads it: no memory is taken while waiting.
    pub(super) async fn read_some(&self, most: usize) -> io::Result<Vec<u8>> {
        loop {
            let mut guard = self.fd.readable().await?;
            let result = guard.try_io(|fd| {
                let mut buffer = vec![0; most];
                let count = read(fd.get_ref(), &mut buffer)?;
                buffer.truncate(count);
                Ok(buffer)
            });
            if let Ok(result) = result {
                return result;
            }
        }
    }
}

fn read(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match rustix::io::read(fd, &mut *buffer) {
            Ok(count) => return Ok(count),
            Err(rustix::io::Errno::INTR) => {}
            // A terminal that no process has open any more.
            Err(rustix::io::Errno::IO) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
    }
}

impl AsyncRead for Descriptor {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.fd.poll_read_ready(context))?;
            let space = buffer.initialize_unfilled();
            if let Ok(result) = guard.try_io(|fd| read(fd.get_ref(), space)) {
                return Poll::Ready(result.map(|count| buffer.advance(count)));
            }
        }
    }
}

impl AsyncWrite for Descriptor {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.fd.poll_write_ready(context))?;
            let result = guard.try_io(|fd| Ok(rustix::io::write(fd.get_ref(), bytes)?));
            if let Ok(result) = result {
                return Poll::Ready(result);
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// Nothing to do: the other side sees the end when this is dropped.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_pipe_takes_more_than_it_holds() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        let (mut read, mut write) =
            (Descriptor::new(read).unwrap(), Descriptor::new(write).unwrap());
        let sent = vec![7; 1 << 20];
        let copy = sent.clone();
        let writer = tokio::spawn(async move { write.write_all(&copy).await.unwrap() });
        let mut got = Vec::new();
        read.read_to_end(&mut got).await.unwrap();
        writer.await.unwrap();
        assert!(got == sent);
    }

    #[tokio::test]
    async fn a_terminal_ends_when_its_last_user_has_gone() {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
        let slave = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
        let master = Descriptor::new(master).unwrap();
        rustix::io::write(&slave, b"hi").unwrap();
        assert_eq!(master.read_some(10).await.unwrap(), b"hi");
        drop(slave);
        assert_eq!(master.read_some(10).await.unwrap(), b"");
    }
}
