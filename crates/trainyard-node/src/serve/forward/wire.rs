//! The connection to a client as pieces of bytes, whether they come as they are or inside the messages
//! of a websocket. Must not know what they mean.

use std::io;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{Sink, SinkExt as _, StreamExt as _, stream};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

/// Bytes of one message from a client at most.
const MESSAGE: usize = 4 << 20;
const PIECE: usize = 32 << 10;

/// Both ways of a connection.
pub(super) struct Wire {
    pub(super) from: BoxStream<'static, io::Result<Bytes>>,
    pub(super) to: Pin<Box<dyn Sink<Bytes, Error = io::Error> + Send>>,
}

/// Bytes as they are.
pub(super) fn plain(socket: impl AsyncRead + AsyncWrite + Send + 'static) -> Wire {
    let (read, write) = tokio::io::split(socket);
    let from = stream::try_unfold((read, BytesMut::new()), |(mut read, mut buffer)| async move {
        buffer.reserve(PIECE);
        let count = read.read_buf(&mut buffer).await?;
        let piece = buffer.split().freeze();
        io::Result::Ok((count > 0).then_some((piece, (read, buffer))))
    });
    let to = futures::sink::unfold(write, |mut write, piece: Bytes| async move {
        write.write_all(&piece).await?;
        write.flush().await?;
        io::Result::Ok(write)
    });
    Wire { from: from.boxed(), to: Box::pin(to) }
}

/// Bytes inside the binary messages of a websocket.
pub(super) async fn websocket(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
) -> Wire {
    let config = WebSocketConfig::default()
        .read_buffer_size(PIECE)
        .write_buffer_size(0)
        .max_write_buffer_size(1 << 20)
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE));
    let socket = WebSocketStream::from_raw_socket(socket, Role::Server, Some(config)).await;
    let (to, from) = socket.split();
    let from = from.filter_map(async |message| match message {
        Ok(Message::Binary(piece)) => Some(Ok(piece)),
        Ok(_) => None,
        Err(error) => Some(Err(io::Error::other(error))),
    });
    let to = to
        .sink_map_err(io::Error::other)
        .with(async |piece: Bytes| io::Result::Ok(Message::Binary(piece)));
    Wire { from: from.boxed(), to: Box::pin(to) }
}
