//! One program's streams over one websocket. A message's first byte is its channel: 0 input, 1 output,
//! 2 error output, 3 how it ended, 4 the terminal's size; 255 closes the channel that the second byte
//! names (from version 5 on).
//!
//! Nothing is queued: a slow client slows the program down, a slow program the client.

use std::future::pending;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::{Sink, SinkExt, Stream, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::pods::{ExecAsk, ExecSession, Pods, TerminalSize};
use super::status;
use super::upgrade::Protocol;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// Bytes of output in one message at most.
const PIECE: usize = 32 << 10;

/// A client that has vanished without a word is noticed by this.
const PING: Duration = Duration::from_secs(30);

/// How long an ended program's output may stay silent, held open by something it left running, before
/// it counts as complete.
const SILENCE: Duration = Duration::from_secs(2);

/// How long a client may take to hear how the program ended, and to say goodbye.
const GOODBYE: Duration = Duration::from_secs(10);

/// Runs a program and serves its streams until it has ended or the client has gone.
pub(super) async fn run<S, P>(
    socket: WebSocketStream<S>,
    protocol: Protocol,
    ask: ExecAsk,
    pods: &P,
) where
    S: AsyncRead + AsyncWrite + Unpin,
    P: Pods,
{
    let (mut sink, mut stream) = socket.split();
    // An empty message tells the client that the connection stands.
    let first = if ask.stdout {
        STDOUT
    } else if ask.stderr {
        STDERR
    } else {
        STATUS
    };
    if send(&mut sink, frame(first, &[])).await.is_err() {
        return;
    }
    let wanted = [ask.stdout, ask.stderr];
    let status = match pods.exec(ask).await {
        Ok(session) => {
            let ExecSession { stdin, stdout, stderr, resize, exit } = session;
            let outputs = Outputs { stdout, stderr, wanted };
            let mut inputs = Inputs { stdin, resize, protocol };
            tokio::select! {
                status = outputs.serve(&mut sink, exit) => status,
                () = inputs.serve(&mut stream) => None,
            }
        }
        Err(refused) => Some(status::of_refusal(&refused)),
    };
    // Without a status the client has gone; the program went with its session.
    let _gone = timeout(GOODBYE, async {
        if let Some(status) = status {
            let _gone = goodbye(&mut sink, &mut stream, &status).await;
        }
        // Ends the connection in a way that the client can tell from an accident.
        if let Ok(mut socket) = sink.reunite(stream) {
            let _gone = socket.flush().await;
            let _gone = socket.get_mut().shutdown().await;
        }
    })
    .await;
}

async fn goodbye<K, R>(sink: &mut K, stream: &mut R, status: &Value) -> Result<(), Error>
where
    K: Sink<Message, Error = Error> + Unpin,
    R: Stream<Item = Result<Message, Error>> + Unpin,
{
    send(sink, frame(STATUS, status.to_string().as_bytes())).await?;
    let close = CloseFrame { code: CloseCode::Normal, reason: "".into() };
    send(sink, Message::Close(Some(close))).await?;
    // Closing a connection with something unread in it would take the last words back.
    while let Some(message) = stream.next().await {
        let _unread = message?;
    }
    Ok(())
}

async fn send<K>(sink: &mut K, message: Message) -> Result<(), Error>
where
    K: Sink<Message, Error = Error> + Unpin,
{
    sink.send(message).await
}

fn frame(channel: u8, bytes: &[u8]) -> Message {
    let mut frame = Vec::with_capacity(bytes.len() + 1);
    frame.push(channel);
    frame.extend_from_slice(bytes);
    Message::Binary(Bytes::from(frame))
}

type Reader = Box<dyn AsyncRead + Send + Unpin>;

struct Outputs {
    stdout: Option<Reader>,
    stderr: Option<Reader>,
    wanted: [bool; 2],
}

impl Outputs {
    /// Sends what is printed; the program's end, or none if the client cannot be reached any more.
    async fn serve<K>(
        mut self,
        sink: &mut K,
        mut exit: impl Future<Output = Result<i32, String>> + Unpin,
    ) -> Option<Value>
    where
        K: Sink<Message, Error = Error> + Unpin,
    {
        let mut ended = None;
        let mut pings = interval_at(Instant::now() + PING, PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut out, mut err) = (vec![0; PIECE], vec![0; PIECE]);
        let [want_out, want_err] = self.wanted;
        loop {
            if self.stdout.is_none()
                && self.stderr.is_none()
                && let Some(ended) = &ended
            {
                return Some(status::of_exit(ended));
            }
            let message = tokio::select! {
                count = read(&mut self.stdout, &mut out), if self.stdout.is_some() => {
                    piece(STDOUT, want_out, count, &out, &mut self.stdout)
                }
                count = read(&mut self.stderr, &mut err), if self.stderr.is_some() => {
                    piece(STDERR, want_err, count, &err, &mut self.stderr)
                }
                how = &mut exit, if ended.is_none() => {
                    ended = Some(how);
                    None
                }
                () = sleep(SILENCE), if ended.is_some() => {
                    (self.stdout, self.stderr) = (None, None);
                    None
                }
                _ = pings.tick() => Some(Message::Ping(Bytes::new())),
            };
            if let Some(message) = message
                && send(sink, message).await.is_err()
            {
                return None;
            }
        }
    }
}

async fn read(reader: &mut Option<Reader>, buffer: &mut [u8]) -> io::Result<usize> {
    match reader {
        Some(reader) => reader.read(buffer).await,
        None => pending().await,
    }
}

/// What was read as a message; an end or an error closes the reader.
fn piece(
    channel: u8,
    wanted: bool,
    count: io::Result<usize>,
    buffer: &[u8],
    reader: &mut Option<Reader>,
) -> Option<Message> {
    let count = count.unwrap_or(0);
    if count == 0 {
        *reader = None;
        return None;
    }
    wanted.then(|| frame(channel, buffer.get(..count).unwrap_or_default()))
}

struct Inputs {
    stdin: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    resize: Option<Box<dyn FnMut(TerminalSize) + Send>>,
    protocol: Protocol,
}

impl Inputs {
    /// Takes what the client sends until it has gone.
    async fn serve<R>(&mut self, stream: &mut R)
    where
        R: Stream<Item = Result<Message, Error>> + Unpin,
    {
        while let Some(message) = stream.next().await {
            match message {
                Ok(Message::Binary(bytes)) => self.take(&bytes).await,
                // Pings are answered by the library. Text has no channel.
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => {}
                Ok(Message::Text(_) | Message::Close(_)) => return,
                Err(error) => {
                    tracing::debug!(%error, "a client of exec has gone");
                    return;
                }
            }
        }
    }

    async fn take(&mut self, message: &[u8]) {
        match message.split_first() {
            Some((&STDIN, bytes)) if !bytes.is_empty() => {
                if let Some(stdin) = &mut self.stdin
                    && (stdin.write_all(bytes).await.is_err() || stdin.flush().await.is_err())
                {
                    // The program wants no more of it.
                    self.stdin = None;
                }
            }
            Some((&RESIZE, bytes)) => {
                if let (Some(resize), Ok(size)) = (&mut self.resize, serde_json::from_slice(bytes))
                {
                    resize(size);
                }
            }
            Some((&CLOSE, [STDIN])) if self.protocol == Protocol::V5 => {
                if let Some(mut stdin) = self.stdin.take() {
                    let _closed_already = stdin.shutdown().await;
                }
            }
            _ => {}
        }
    }
}
