//! Services at their own addresses: what pods say to such an address is carried to one of the pods behind
//! it. TCP alone. Must not know names, nor how sockets are made inside.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{SocketAddrV4, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::{net::TcpStream, task::JoinHandle, time::timeout};
use tracing::{debug, warn};

use super::{
    Inside,
    accept::{self, Room, notice_death},
    names::{Front, Names},
};

/// Ports of services that are answered; one descriptor each.
const MOST: usize = 256;
/// Connections of one port at a time.
const CONNECTIONS: usize = 256;
/// Pods that are tried for a connection.
const TRIES: usize = 3;
/// How long each of them has to accept.
const PATIENCE: Duration = Duration::from_secs(3);

/// A port that is answered; no longer when dropped.
struct Served {
    front: Front,
    task: JoinHandle<()>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers at the addresses of all services, as they come and go, until dropped.
pub(crate) async fn serve(names: Names, inside: Arc<dyn Inside>) {
    let mut served: BTreeMap<SocketAddrV4, Served> = BTreeMap::new();
    // Said once each.
    let mut unserved = BTreeSet::new();
    let mut seen = None;
    loop {
        seen = Some(names.changed(seen.unwrap_or(u64::MAX)).await);
        let mut wanted: BTreeMap<SocketAddrV4, Front> =
            names.fronts().into_iter().map(|front| (front.address, front)).collect();
        let gone: Vec<SocketAddrV4> = served
            .iter()
            .filter(|(address, served)| wanted.get(address) != Some(&served.front))
            .map(|(address, _)| *address)
            .collect();
        for address in gone {
            if let Some(mut old) = served.remove(&address) {
                old.task.abort();
                // Its listener must be gone before another takes the address.
                let _ = (&mut old.task).await;
            }
        }
        unserved.retain(|address| wanted.contains_key(address));
        wanted.retain(|address, _| !served.contains_key(address) && !unserved.contains(address));
        for (address, front) in wanted {
            let listener = if served.len() < MOST {
                inside.listen(address).await.map_err(|error| error.to_string())
            } else {
                Err(format!("{MOST} ports of services are answered already"))
            };
            match listener {
                Ok(listener) => {
                    let carried =
                        answer(listener, front.clone(), names.clone(), Arc::clone(&inside));
                    served.insert(address, Served { front, task: tokio::spawn(carried) });
                }
                Err(reason) => {
                    warn!(%address, reason, "a service does not answer at its own address");
                    unserved.insert(address);
                }
            }
        }
    }
}

async fn answer(listener: TcpListener, front: Front, names: Names, inside: Arc<dyn Inside>) {
    let listener = match accept::ready(listener, "service") {
        Ok(listener) => listener,
        Err(error) => return warn!(%error, "a service does not answer at its own address"),
    };
    let turn = Arc::new(AtomicUsize::new(0));
    accept::serve(listener, CONNECTIONS, |stream, room| {
        let backs = if room == Room::Free { names.backs(&front) } else { Vec::new() };
        let turn = turn.fetch_add(1, Ordering::Relaxed);
        let inside = Arc::clone(&inside);
        async move { carry(stream, &backs, turn, &*inside).await }
    })
    .await;
}

/// Carries a connection to the pod whose turn it is, or the next that takes it; without any it is closed.
async fn carry(mut near: TcpStream, backs: &[SocketAddrV4], turn: usize, inside: &dyn Inside) {
    let ordered = backs.iter().cycle().skip(turn % backs.len().max(1)).take(backs.len());
    for back in ordered.take(TRIES) {
        let mut far = match timeout(PATIENCE, inside.connect(*back)).await {
            Ok(Ok(far)) => far,
            Ok(Err(error)) => {
                debug!(%back, %error, "cannot connect");
                continue;
            }
            Err(_) => continue,
        };
        notice_death(&near);
        notice_death(&far);
        if let Err(error) = tokio::io::copy_bidirectional(&mut near, &mut far).await {
            debug!(%back, %error, "connection broke");
        }
        return;
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        net::SocketAddr,
        sync::{Mutex, PoisonError},
    };

    use futures::future::BoxFuture;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// A pods' network played on loopback: where each of its addresses really is.
    #[derive(Default)]
    struct Played {
        fronts: Mutex<BTreeMap<SocketAddrV4, SocketAddr>>,
        backs: BTreeMap<SocketAddrV4, SocketAddr>,
    }

    impl Played {
        fn front(&self, address: &str) -> Option<SocketAddr> {
            let fronts = self.fronts.lock().unwrap_or_else(PoisonError::into_inner);
            fronts.get(&address.parse().unwrap()).copied()
        }
    }

    impl Inside for Played {
        fn connect(&self, address: SocketAddrV4) -> BoxFuture<'_, io::Result<TcpStream>> {
            Box::pin(async move {
                match self.backs.get(&address) {
                    Some(real) => TcpStream::connect(real).await,
                    None => Err(io::ErrorKind::ConnectionRefused.into()),
                }
            })
        }

        fn listen(&self, address: SocketAddrV4) -> BoxFuture<'_, io::Result<TcpListener>> {
            Box::pin(async move {
                let listener = TcpListener::bind("127.0.0.1:0")?;
                let mut fronts = self.fronts.lock().unwrap_or_else(PoisonError::into_inner);
                fronts.insert(address, listener.local_addr()?);
                Ok(listener)
            })
        }
    }

    /// A pod that says this to everyone.
    async fn pod(says: &'static str) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let _ = stream.write_all(says.as_bytes()).await;
            }
        });
        address
    }

    async fn heard(address: SocketAddr) -> io::Result<String> {
        let mut said = String::new();
        TcpStream::connect(address).await?.read_to_string(&mut said).await?;
        Ok(said)
    }

    async fn until<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
        let tries = async {
            loop {
                if let Some(found) = attempt().await {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(SOON, tries).await.unwrap()
    }

    #[tokio::test]
    async fn pods_take_turns_and_one_that_is_away_is_passed_over() {
        let backs = [("10.77.0.8:8080", pod("one").await), ("10.77.0.9:8080", pod("two").await)];
        let backs = backs.map(|(address, real)| (address.parse().unwrap(), real)).into();
        let inside = Arc::new(Played { backs, ..Played::default() });
        let names = Names::new();
        names.put_front("web", "10.96.3.4", &["10.77.0.7", "10.77.0.8", "10.77.0.9"]);
        let serving = tokio::spawn(serve(names.clone(), Arc::clone(&inside) as Arc<dyn Inside>));
        let front = until(async || inside.front("10.96.3.4:80")).await;
        let mut answers = BTreeSet::new();
        for _ in 0..6 {
            answers.insert(timeout(SOON, heard(front)).await.unwrap().unwrap());
        }
        assert_eq!(answers, BTreeSet::from(["one".to_owned(), "two".to_owned()]));
        // Nobody behind it: closed without a word.
        names.put_front("web", "10.96.3.4", &[]);
        assert!(matches!(heard(front).await.as_deref(), Ok("") | Err(_)));
        names.drop_service("web");
        until(async || heard(front).await.err()).await;
        serving.abort();
    }

    #[tokio::test]
    async fn no_more_ports_than_there_may_be() {
        let inside = Arc::new(Played::default());
        let names = Names::new();
        for number in 0..=MOST {
            names.put_front(
                &format!("s{number}"),
                &format!("10.96.{}.{}", number / 250, number % 250 + 1),
                &[],
            );
        }
        let serving = tokio::spawn(serve(names, Arc::clone(&inside) as Arc<dyn Inside>));
        let count = || inside.fronts.lock().unwrap_or_else(PoisonError::into_inner).len();
        until(async || (count() == MOST).then_some(())).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(count(), MOST);
        serving.abort();
    }
}
