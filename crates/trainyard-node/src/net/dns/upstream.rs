//! Asking the host's name servers: which they are, in what order, for how long. Packets pass through as
//! they are, so that what we do not know of DNS still works. Must not know what names mean.

use std::{
    collections::BTreeSet,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hickory_proto::op::{Message, MessageType, Query, ResponseCode};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    time::{Instant, timeout},
};
use tracing::debug;

use crate::net::resolv::HostResolver;

/// How long one server has. Three of them together stay below the five seconds that resolvers wait.
const PATIENCE: Duration = Duration::from_millis(1500);
/// How often the file that names the servers is read again: a laptop changes networks.
const REFRESH: Duration = Duration::from_secs(5);
/// As many servers as resolvers use.
const SERVERS: usize = 3;
const PORT: u16 = 53;

/// How a query came, and goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    Udp,
    Tcp,
}

/// The name servers that are asked for what is not ours.
#[derive(Debug)]
pub(crate) struct Upstreams {
    file: Option<PathBuf>,
    patience: Duration,
    servers: Mutex<Servers>,
    /// The one that answered last.
    preferred: AtomicUsize,
    /// What we are asking others now. A query that comes in with the same number and question is our
    /// own: some server passes to us what we pass to it.
    asked: Mutex<BTreeSet<(u16, String, u16)>>,
}

#[derive(Debug)]
struct Servers {
    known: Arc<[SocketAddr]>,
    read: Option<Instant>,
}

impl Upstreams {
    /// These and no others.
    #[cfg(test)]
    pub(crate) fn fixed(servers: Vec<SocketAddr>) -> Self {
        Self::new(None, servers.into())
    }

    /// Those that a file like `/etc/resolv.conf` names, which is looked at again and again.
    pub(crate) fn of_file(file: PathBuf) -> Self {
        Self::new(Some(file), Arc::new([]))
    }

    /// How long each server has to answer.
    #[cfg(test)]
    pub(crate) fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    fn new(file: Option<PathBuf>, known: Arc<[SocketAddr]>) -> Self {
        Self {
            file,
            patience: PATIENCE,
            servers: Mutex::new(Servers { known, read: None }),
            preferred: AtomicUsize::new(0),
            asked: Mutex::new(BTreeSet::new()),
        }
    }

    /// The answer of the first server that has one; none if none does. A refusal is taken when no
    /// server has better.
    pub(super) async fn forward(
        &self,
        packet: &[u8],
        question: &Query,
        transport: Transport,
    ) -> Option<Vec<u8>> {
        let number = number_of(packet)?;
        if lock(&self.asked).contains(&entry(number, question)) {
            debug!(name = %question.name(), "a name server asks us what we ask it");
            return None;
        }
        let servers = self.servers().await;
        let first = self.preferred.load(Ordering::Relaxed);
        let mut refusal = None;
        for step in 0..servers.len() {
            let index = (first + step) % servers.len();
            match self.ask(servers[index], packet, question, transport).await {
                Ok(mut reply) => {
                    reply[..2].copy_from_slice(&packet[..2]);
                    if !refused(&reply) {
                        self.preferred.store(index, Ordering::Relaxed);
                        return Some(reply);
                    }
                    refusal = Some(reply);
                }
                Err(error) => {
                    debug!(server = %servers[index], name = %question.name(), %error, "no answer");
                }
            }
        }
        refusal
    }

    async fn ask(
        &self,
        server: SocketAddr,
        packet: &[u8],
        question: &Query,
        transport: Transport,
    ) -> io::Result<Vec<u8>> {
        // A number of our own, so that a pod cannot choose what an answer must bear.
        let number = Message::query().metadata.id;
        let mut packet = packet.to_vec();
        packet[..2].copy_from_slice(&number.to_be_bytes());
        let _asked = Asked::new(&self.asked, entry(number, question));
        let exchange = async {
            match transport {
                Transport::Udp => by_datagram(server, &packet, number, question).await,
                Transport::Tcp => by_stream(server, &packet, number, question).await,
            }
        };
        timeout(self.patience, exchange)
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    async fn servers(&self) -> Arc<[SocketAddr]> {
        let Some(file) = &self.file else { return Arc::clone(&lock(&self.servers).known) };
        {
            let mut servers = lock(&self.servers);
            if servers.read.is_some_and(|read| read.elapsed() < REFRESH) {
                return Arc::clone(&servers.known);
            }
            // Others go on with what is known while this one reads.
            servers.read = Some(Instant::now());
        }
        let read = tokio::fs::read_to_string(file).await;
        let mut servers = lock(&self.servers);
        match read {
            Ok(text) => servers.known = addresses(&HostResolver::parse(&text)),
            Err(error) => debug!(file = %file.display(), %error, "cannot read the name servers"),
        }
        Arc::clone(&servers.known)
    }
}

/// The servers that can be asked from here: as resolvers do, the first three.
fn addresses(host: &HostResolver) -> Arc<[SocketAddr]> {
    let address = |text: &String| {
        let plain = text.parse::<IpAddr>().ok().map(|address| SocketAddr::new(address, PORT));
        plain.or_else(|| format!("[{text}]:{PORT}").parse().ok())
    };
    host.nameservers.iter().filter_map(address).take(SERVERS).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A question that is being asked, for as long as this lives.
struct Asked<'a> {
    all: &'a Mutex<BTreeSet<(u16, String, u16)>>,
    entry: (u16, String, u16),
}

impl<'a> Asked<'a> {
    fn new(all: &'a Mutex<BTreeSet<(u16, String, u16)>>, entry: (u16, String, u16)) -> Self {
        lock(all).insert(entry.clone());
        Self { all, entry }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        lock(self.all).remove(&self.entry);
    }
}

fn entry(number: u16, question: &Query) -> (u16, String, u16) {
    (number, question.name().to_lowercase().to_ascii(), u16::from(question.query_type()))
}

fn number_of(packet: &[u8]) -> Option<u16> {
    packet.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

async fn by_datagram(
    server: SocketAddr,
    packet: &[u8],
    number: u16,
    question: &Query,
) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // A socket for each query: its port is one more thing that a forger would have to guess.
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(packet).await?;
    let mut reply = vec![0; 16 * 1024];
    loop {
        let length = socket.recv(&mut reply).await?;
        if answers(&reply[..length], number, question) {
            reply.truncate(length);
            return Ok(reply);
        }
    }
}

async fn by_stream(
    server: SocketAddr,
    packet: &[u8],
    number: u16,
    question: &Query,
) -> io::Result<Vec<u8>> {
    let length = u16::try_from(packet.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(&[&length.to_be_bytes()[..], packet].concat()).await?;
    let mut reply = vec![0; usize::from(stream.read_u16().await?)];
    stream.read_exact(&mut reply).await?;
    if answers(&reply, number, question) {
        Ok(reply)
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

/// Whether a packet answers what was asked.
fn answers(packet: &[u8], number: u16, question: &Query) -> bool {
    let Ok(reply) = Message::from_vec(packet) else { return false };
    let same = |asked: &Query| {
        asked.name() == question.name()
            && asked.query_type() == question.query_type()
            && asked.query_class() == question.query_class()
    };
    reply.metadata.id == number
        && reply.metadata.message_type == MessageType::Response
        && reply.queries.first().is_none_or(same)
}

/// Whether another server should be asked.
fn refused(reply: &[u8]) -> bool {
    Message::from_vec(reply).is_ok_and(|reply| {
        matches!(reply.metadata.response_code, ResponseCode::ServFail | ResponseCode::Refused)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_those_of_the_file() {
        let host = HostResolver::parse(
            "nameserver 127.0.0.53\nnameserver nonsense\nnameserver ::1\nnameserver fe80::1%2\nnameserver 9.9.9.9\n",
        );
        let texts: Vec<String> = addresses(&host).iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["127.0.0.53:53", "[::1]:53", "[fe80::1%2]:53"]);
    }

    #[tokio::test]
    async fn the_file_is_read_again_after_a_while() {
        tokio::time::pause();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("resolv.conf");
        let upstreams = Upstreams::of_file(file.clone());
        assert!(upstreams.servers().await.is_empty());
        std::fs::write(&file, "nameserver 192.0.2.1\n").unwrap();
        assert!(upstreams.servers().await.is_empty());
        tokio::time::advance(REFRESH).await;
        assert_eq!(upstreams.servers().await[..], ["192.0.2.1:53".parse().unwrap()]);
        // What was known stays when the file goes for a moment.
        std::fs::remove_file(&file).unwrap();
        tokio::time::advance(REFRESH).await;
        assert_eq!(upstreams.servers().await.len(), 1);
    }
}
