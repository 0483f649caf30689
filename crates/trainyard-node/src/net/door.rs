//! A door to a pod on the machine's own loopback: a port that stays the same for a pod's name, whose
//! connections are carried inside. Must not know how pods are reached, nor what is spoken.

use std::{
    io,
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::{
    net::TcpStream,
    time::{Instant, sleep, timeout},
};
use tracing::debug;

use super::{
    NetError,
    accept::{self, Room, notice_death},
};

/// The first port of doors. Below those that the kernel gives to outgoing connections and that clusters
/// give to services, so that one seldom is taken.
const FIRST: u16 = 20_000;
/// How many there are.
const SPAN: u16 = 10_000;
/// Ports that are tried for a door.
const TRIES: u16 = 100;
/// Connections of one door at a time; a browser makes a handful.
const CONNECTIONS: usize = 128;
/// How long a connection waits for a program that does not listen yet.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long one attempt may take, and between attempts.
const ATTEMPT: Duration = Duration::from_secs(3);
const BETWEEN: Duration = Duration::from_millis(200);

/// The way to what is behind a door.
pub(crate) trait Behind: Clone + Send + Sync + 'static {
    /// Connects to it.
    fn connect(&self) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// Listens at the port that belongs to this name, or at the next free one.
pub(crate) fn open(name: &str) -> io::Result<(TcpListener, SocketAddrV4)> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for step in 0..TRIES {
        let address = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port(name, step));
        match TcpListener::bind(address) {
            Ok(listener) => return Ok((listener, address)),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The port that a name gets after so many that were taken.
fn port(name: &str, step: u16) -> u16 {
    // FNV-1a: the same on every machine and in every release, unlike the standard library's.
    let hash = name
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let at = (hash % u32::from(SPAN) + u32::from(step)) % u32::from(SPAN);
    FIRST + u16::try_from(at).unwrap_or_default()
}

/// Carries connections inside until dropped.
pub(crate) async fn serve(listener: TcpListener, behind: impl Behind) -> Result<(), NetError> {
    let listener = accept::ready(listener, "door")?;
    accept::serve(listener, CONNECTIONS, |near, room| {
        let behind = behind.clone();
        async move {
            if room == Room::Free {
                carry(near, &behind).await;
            }
        }
    })
    .await;
    Ok(())
}

async fn carry(mut near: TcpStream, behind: &impl Behind) {
    let Some(mut far) = reached(behind).await else { return };
    notice_death(&near);
    notice_death(&far);
    if let Err(error) = tokio::io::copy_bidirectional(&mut near, &mut far).await {
        debug!(%error, "connection broke");
    }
}

/// A connection, waited for while the program behind the door is still starting.
async fn reached(behind: &impl Behind) -> Option<TcpStream> {
    let until = Instant::now() + PATIENCE;
    loop {
        match timeout(ATTEMPT, behind.connect()).await {
            Ok(Ok(far)) => return Some(far),
            Ok(Err(error)) => debug!(%error, "nothing listens behind a door"),
            Err(_) => debug!("no answer behind a door"),
        }
        if Instant::now() >= until {
            return None;
        }
        sleep(BETWEEN).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A program that listens only from the third attempt on.
    #[derive(Clone)]
    struct Late {
        address: std::net::SocketAddr,
        asked: Arc<AtomicUsize>,
    }

    impl Behind for Late {
        fn connect(&self) -> BoxFuture<'_, io::Result<TcpStream>> {
            Box::pin(async move {
                if self.asked.fetch_add(1, Ordering::Relaxed) < 2 {
                    return Err(io::ErrorKind::ConnectionRefused.into());
                }
                TcpStream::connect(self.address).await
            })
        }
    }

    #[test]
    fn a_name_keeps_its_port_and_gives_way_to_who_came_first() {
        let name = "default/a-door-that-only-this-test-opens";
        let (first, at) = open(name).unwrap();
        assert!(at.ip().is_loopback() && (FIRST..FIRST + SPAN).contains(&at.port()), "{at}");
        let (_second, other) = open(name).unwrap();
        assert_ne!(at.port(), other.port());
        drop(first);
        assert_eq!(open(name).unwrap().1, at);
    }

    #[test]
    fn ports_stay_within_their_range() {
        for name in ["", "default/a", "kubeflow/mnist-tensorboard-0"] {
            for step in [0, 1, TRIES - 1] {
                assert!((FIRST..FIRST + SPAN).contains(&port(name, step)));
            }
            assert_ne!(port(name, 0), port(name, 1));
        }
        assert_ne!(port("default/a-tensorboard-0", 0), port("default/b-tensorboard-0", 0));
    }

    #[tokio::test]
    async fn a_connection_waits_for_a_program_that_is_still_starting() {
        let far = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let behind = Late { address: far.local_addr().unwrap(), asked: Arc::default() };
        let near = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = near.local_addr().unwrap();
        let serving = tokio::spawn(serve(near, behind.clone()));
        let peer = tokio::spawn(async move {
            let (mut stream, _) = far.accept().await.unwrap();
            stream.write_all(b"here").await.unwrap();
        });
        let mut stream = TcpStream::connect(address).await.unwrap();
        let mut heard = String::new();
        stream.read_to_string(&mut heard).await.unwrap();
        assert_eq!(heard, "here");
        assert_eq!(behind.asked.load(Ordering::Relaxed), 3);
        peer.await.unwrap();
        serving.abort();
    }
}
