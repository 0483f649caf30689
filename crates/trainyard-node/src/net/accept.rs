//! Taking connections, so many at a time. Must not know what is spoken on them.

use std::{future::Future, net::TcpListener as StdListener, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tracing::warn;

use super::NetError;

/// Connections beyond the limit that are still told so; more than these are closed unheard.
const TOLD: usize = 64;
/// How long to wait when the machine has no descriptor left to accept with.
const BREATH: Duration = Duration::from_millis(100);

/// Whether a connection may be served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// It may.
    Free,
    /// There are as many as there may be: say so and close.
    Full,
}

/// Makes a listener that was handed in ready for the runtime.
pub(super) fn ready(listener: StdListener, what: &'static str) -> Result<TcpListener, NetError> {
    listener
        .set_nonblocking(true)
        .and_then(|()| TcpListener::from_std(listener))
        .map_err(|source| NetError::Socket { what, source })
}

/// Serves connections until dropped; what is still being served then is dropped too.
pub(super) async fn serve<H, F>(listener: TcpListener, limit: usize, handle: H)
where
    H: Fn(TcpStream, Room) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut served = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) if served.len() < limit => {
                    served.spawn(handle(stream, Room::Free));
                }
                Ok((stream, _)) if served.len() < limit.saturating_add(TOLD) => {
                    served.spawn(handle(stream, Room::Full));
                }
                Ok(_) => {}
                Err(error) => {
                    warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(BREATH).await;
                }
            },
            Some(_) = served.join_next(), if !served.is_empty() => {}
        }
    }
}

/// Has the kernel notice a peer that went without a word, such as a pod that was removed.
pub(super) fn notice_death(stream: &TcpStream) {
    use rustix::net::sockopt;
    let told = sockopt::set_socket_keepalive(stream, true)
        .and_then(|()| sockopt::set_tcp_keepidle(stream, Duration::from_mins(1)))
        .and_then(|()| sockopt::set_tcp_keepintvl(stream, Duration::from_secs(15)));
    if let Err(error) = told {
        warn!(%error, "cannot turn on keep-alive");
    }
    // Without it small messages wait for each other's acknowledgements, twice over a relay.
    if let Err(error) = stream.set_nodelay(true) {
        warn!(%error, "cannot turn off delays");
    }
}
