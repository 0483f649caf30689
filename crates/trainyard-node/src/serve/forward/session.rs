//! One client that forwards ports: for every connection it opens a stream for data and one for what goes
//! wrong. Many run side by side; a slow one slows its client down.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use super::frames::{self, Frame};
use super::headers::{Reader, Writer};
use super::wire::Wire;
use crate::serve::pods::{ForwardTarget, Pods};

/// Connections of one client at a time.
const MOST: usize = 256;
/// Pieces that wait on their way, of one connection and of all.
const WAITING: usize = 16;
const PIECE: usize = 32 << 10;

/// A stream that the client has opened.
enum Open {
    /// For what goes wrong; the client sends nothing on it.
    Errors,
    /// For data, which goes to its connection until the client has sent the last.
    Data { to: Option<mpsc::Sender<Bytes>>, errors: u32, connection: AbortHandle },
}

/// Where what is to be said of a connection goes.
#[derive(Debug, Clone, Copy)]
struct Pair {
    data: u32,
    errors: u32,
}

/// Forwards until the client is gone.
pub(super) async fn run<P: Pods>(
    wire: Wire,
    target: ForwardTarget,
    pods: Arc<P>,
) -> io::Result<()> {
    let Wire { from, to } = wire;
    let (frames, waiting) = mpsc::channel(WAITING);
    let session = Session {
        pods,
        target,
        frames,
        headers: Reader::new(),
        answers: Writer::default(),
        streams: BTreeMap::new(),
        errors: BTreeMap::new(),
        connections: JoinSet::new(),
    };
    tokio::select! {
        ended = write(waiting, to) => ended,
        ended = session.read(from) => ended,
    }
}

async fn write(
    mut waiting: mpsc::Receiver<Frame>,
    mut to: std::pin::Pin<Box<dyn futures::Sink<Bytes, Error = io::Error> + Send>>,
) -> io::Result<()> {
    while let Some(frame) = waiting.recv().await {
        to.send(frames::written(&frame)).await?;
    }
    Ok(())
}

struct Session<P> {
    pods: Arc<P>,
    target: ForwardTarget,
    frames: mpsc::Sender<Frame>,
    headers: Reader,
    answers: Writer,
    streams: BTreeMap<u32, Open>,
    /// The streams for errors, by the request they belong to.
    errors: BTreeMap<String, u32>,
    /// End with the session.
    connections: JoinSet<Pair>,
}

impl<P: Pods> Session<P> {
    async fn read(
        mut self,
        mut from: futures::stream::BoxStream<'static, io::Result<Bytes>>,
    ) -> io::Result<()> {
        let mut came = BytesMut::new();
        loop {
            tokio::select! {
                piece = from.next() => {
                    let Some(piece) = piece else { return Ok(()) };
                    came.extend_from_slice(&piece?);
                    while let Some(frame) = frames::next(&mut came).map_err(io::Error::other)? {
                        self.take(frame).await?;
                    }
                }
                Some(ended) = self.connections.join_next(), if !self.connections.is_empty() => {
                    // A panic in there has been reported where it happened.
                    if let Ok(pair) = ended {
                        self.streams.remove(&pair.data);
                        self.streams.remove(&pair.errors);
                    }
                }
            }
        }
    }

    async fn take(&mut self, frame: Frame) -> io::Result<()> {
        match frame {
            Frame::Open { stream, headers } => self.open(stream, &headers).await,
            Frame::Data { stream, piece, last } => {
                if let Some(Open::Data { to, .. }) = self.streams.get_mut(&stream) {
                    if let Some(to) = to.as_ref().filter(|_| !piece.is_empty()) {
                        // The connection may have ended just now.
                        let _ = to.send(piece).await;
                    }
                    if last {
                        *to = None;
                    }
                }
                Ok(())
            }
            Frame::Reset { stream } => {
                let Some(Open::Data { errors, connection, .. }) = self.streams.remove(&stream)
                else {
                    return Ok(());
                };
                connection.abort();
                self.streams.remove(&errors);
                // The client waits for this word even now.
                self.say(Frame::Data { stream: errors, piece: Bytes::new(), last: true }).await
            }
            Frame::Ping { number } => self.say(Frame::Ping { number }).await,
            Frame::GoAway => Err(io::ErrorKind::ConnectionAborted.into()),
            Frame::Reply { .. } | Frame::Other => Ok(()),
        }
    }

    async fn say(&self, frame: Frame) -> io::Result<()> {
        self.frames.send(frame).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    async fn open(&mut self, stream: u32, block: &[u8]) -> io::Result<()> {
        let headers = self.headers.read(block).map_err(io::Error::other)?;
        let of = |name: &str| {
            let found = headers.iter().find(|(given, _)| given == name);
            found.map(|(_, value)| value.as_str())
        };
        let port = of("port").and_then(|port| port.parse::<u16>().ok()).filter(|port| *port > 0);
        let kind = of("streamtype").unwrap_or_default();
        let taken = self.streams.len() < 2 * MOST && !self.streams.contains_key(&stream);
        let (Some(port), true) = (port, taken && ["data", "error"].contains(&kind)) else {
            return self.say(Frame::Reset { stream }).await;
        };
        // Old clients do not number their requests: there, data comes right after errors.
        let request = of("requestid").map_or_else(
            || format!("stream {}", if kind == "data" { stream.wrapping_sub(2) } else { stream }),
            str::to_owned,
        );
        if kind == "error" {
            self.errors.insert(request, stream);
            self.streams.insert(stream, Open::Errors);
        } else {
            let Some(errors) = self.errors.remove(&request) else {
                return self.say(Frame::Reset { stream }).await;
            };
            let (to, from) = mpsc::channel(WAITING);
            let pair = Pair { data: stream, errors };
            let (pods, target) = (Arc::clone(&self.pods), self.target.clone());
            let frames = self.frames.clone();
            let connection = self.connections.spawn(async move {
                let problem = match pods.connect(target, port).await {
                    Ok(far) => carry(far, from, &frames, pair.data).await.err(),
                    Err(refused) => Some(io::Error::other(refused.to_string())),
                };
                finish(&frames, pair, port, problem).await;
                pair
            });
            self.streams.insert(stream, Open::Data { to: Some(to), errors, connection });
        }
        let headers = self.answers.empty();
        self.say(Frame::Reply { stream, headers }).await
    }
}

/// Carries a connection's data both ways until both have ended.
async fn carry(
    far: TcpStream,
    from: mpsc::Receiver<Bytes>,
    frames: &mpsc::Sender<Frame>,
    stream: u32,
) -> io::Result<()> {
    let (read, write) = far.into_split();
    let outward = outward(read, frames, stream);
    let (outward, inward) = tokio::join!(outward, inward(write, from));
    outward.and(inward)
}

async fn outward(
    mut read: OwnedReadHalf,
    frames: &mpsc::Sender<Frame>,
    stream: u32,
) -> io::Result<()> {
    let mut buffer = BytesMut::new();
    loop {
        buffer.reserve(PIECE);
        let count = read.read_buf(&mut buffer).await;
        let last = !matches!(count, Ok(count) if count > 0);
        let frame = Frame::Data { stream, piece: buffer.split().freeze(), last };
        if frames.send(frame).await.is_err() || last {
            return count.map(drop);
        }
    }
}

async fn inward(mut write: OwnedWriteHalf, mut from: mpsc::Receiver<Bytes>) -> io::Result<()> {
    while let Some(piece) = from.recv().await {
        if let Err(error) = write.write_all(&piece).await {
            // What the program does not read any more is no failure of the connection.
            return if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) };
        }
    }
    // The program may have closed it from its side.
    let _ = write.shutdown().await;
    Ok(())
}

/// Ends both streams of a connection, and says what went wrong.
async fn finish(frames: &mpsc::Sender<Frame>, pair: Pair, port: u16, problem: Option<io::Error>) {
    let words = problem.map(|problem| format!("error forwarding port {port}: {problem}"));
    let piece = Bytes::from(words.unwrap_or_default());
    let failed = !piece.is_empty();
    // Without a client nobody needs to know.
    let _ = frames.send(Frame::Data { stream: pair.errors, piece, last: true }).await;
    if failed {
        let _ = frames.send(Frame::Reset { stream: pair.data }).await;
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
