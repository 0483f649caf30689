//! The pods' name server: what the table of names knows it answers, the rest it passes on to the host's
//! name servers. Must not know what names mean (`names`) nor how an answer is put (`respond`).

mod respond;
mod upstream;

use std::{
    net::{SocketAddr, TcpListener, UdpSocket as StdSocket},
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    task::JoinSet,
    time::timeout,
};
use tracing::{debug, warn};

use super::{
    NetError,
    accept::{self, Room},
    names::Names,
};
use respond::{Chase, Reaction, react};
use upstream::Transport;
pub(crate) use upstream::Upstreams;

/// Datagrams that wait for other name servers at a time.
const WAITING: usize = 256;
/// Connections at a time.
const CONNECTIONS: usize = 64;
/// How long a connection may say nothing.
const IDLE: Duration = Duration::from_secs(10);
/// No query needs more.
const DATAGRAM: usize = 4096;
/// Bytes of an answer by TCP.
const MESSAGE: usize = u16::MAX as usize;

/// Answers queries until dropped.
pub(crate) async fn serve(
    udp: StdSocket,
    tcp: TcpListener,
    names: Names,
    upstreams: Upstreams,
) -> Result<(), NetError> {
    let tcp = accept::ready(tcp, "name server")?;
    let udp = udp
        .set_nonblocking(true)
        .and_then(|()| UdpSocket::from_std(udp))
        .map_err(|source| NetError::Socket { what: "name server", source })?;
    let server = Arc::new(Server { names, upstreams });
    let connections = accept::serve(tcp, CONNECTIONS, |stream, room| {
        let server = Arc::clone(&server);
        async move {
            if room == Room::Free
                && let Err(error) = server.connection(stream).await
            {
                debug!(%error, "connection broke");
            }
        }
    });
    tokio::join!(connections, datagrams(Arc::new(udp), Arc::clone(&server)));
    Ok(())
}

async fn datagrams(socket: Arc<UdpSocket>, server: Arc<Server>) {
    let mut waiting = JoinSet::new();
    let mut buffer = vec![0; DATAGRAM];
    loop {
        let (packet, peer) = tokio::select! {
            received = socket.recv_from(&mut buffer) => match received {
                Ok((length, peer)) => (&buffer[..length], peer),
                Err(error) => {
                    warn!(%error, "cannot receive a query");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            Some(_) = waiting.join_next(), if !waiting.is_empty() => continue,
        };
        match react(packet, &server.names, None) {
            Reaction::Ignore => {}
            Reaction::Reply(reply) => send(&socket, &reply, peer).await,
            _ if waiting.len() >= WAITING => {
                if let Some(reply) = respond::failure(packet) {
                    send(&socket, &reply, peer).await;
                }
            }
            later => {
                let (socket, server, packet) =
                    (Arc::clone(&socket), Arc::clone(&server), packet.to_vec());
                waiting.spawn(async move {
                    if let Some(reply) = server.later(later, &packet, Transport::Udp).await {
                        send(&socket, &reply, peer).await;
                    }
                });
            }
        }
    }
}

async fn send(socket: &UdpSocket, reply: &[u8], peer: SocketAddr) {
    if let Err(error) = socket.send_to(reply, peer).await {
        debug!(%peer, %error, "cannot answer");
    }
}

/// What answers are made from.
#[derive(Debug)]
struct Server {
    names: Names,
    upstreams: Upstreams,
}

impl Server {
    /// Queries on a connection are answered one after the other.
    async fn connection(&self, mut stream: TcpStream) -> std::io::Result<()> {
        loop {
            let Ok(length) = timeout(IDLE, stream.read_u16()).await else { return Ok(()) };
            let length = match length {
                Ok(length) => length,
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut packet = vec![0; usize::from(length)];
            let Ok(read) = timeout(IDLE, stream.read_exact(&mut packet)).await else {
                return Ok(());
            };
            read?;
            let reply = match react(&packet, &self.names, Some(MESSAGE)) {
                Reaction::Ignore => return Ok(()),
                Reaction::Reply(reply) => Some(reply),
                later => self.later(later, &packet, Transport::Tcp).await,
            };
            let Some(reply) = reply else { return Ok(()) };
            let Ok(length) = u16::try_from(reply.len()) else { return Ok(()) };
            let framed = [&length.to_be_bytes()[..], &reply].concat();
            let Ok(written) = timeout(IDLE, stream.write_all(&framed)).await else { return Ok(()) };
            written?;
        }
    }

    /// An answer that other name servers have to give.
    async fn later(
        &self,
        reaction: Reaction,
        packet: &[u8],
        transport: Transport,
    ) -> Option<Vec<u8>> {
        let reply = match reaction {
            Reaction::Ignore => return None,
            Reaction::Reply(reply) => Some(reply),
            Reaction::Forward(question) => {
                self.upstreams.forward(packet, &question, transport).await
            }
            Reaction::Chase(chase) => self.chase(*chase, transport).await,
        };
        reply.or_else(|| respond::failure(packet))
    }

    /// The rest of an answer whose name stands for one outside.
    async fn chase(&self, chase: Chase, transport: Transport) -> Option<Vec<u8>> {
        let query = chase.query();
        let packet = query.to_vec().ok()?;
        let reply = self.upstreams.forward(&packet, query.queries.first()?, transport).await?;
        chase.complete(&reply)
    }
}

#[cfg(test)]
mod tests;
