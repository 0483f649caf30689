//! Accepts connections: TLS with client certificates, HTTP/1.1, upgrades. Bounded in number and in the
//! time a client may take to say what it wants.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ServeError;
use super::clients::Clients;
use super::pods::Pods;
use super::routes::{Node, router};

/// Connections at once; more wait to be accepted.
const CONNECTIONS: usize = 256;

/// Time for a TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Time for a request's head; a connection that is kept open asks again within it or is closed.
const HEAD: Duration = Duration::from_secs(90);

/// Bytes of a request's head at most: a long command line stands in it.
const HEAD_BYTES: usize = 128 << 10;

/// Time that answers under way have when the node stops.
const GRACE: Duration = Duration::from_secs(2);

/// Serves the kubelet's API on `listener` until `stop` is cancelled; then gives answers under way a
/// moment, ends what is left, and returns when nothing is.
pub(crate) async fn serve<P: Pods>(
    listener: std::net::TcpListener,
    tls: Arc<ServerConfig>,
    clients: Clients,
    pods: Arc<P>,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let acceptor = TlsAcceptor::from(tls);
    let clients = Arc::new(clients);
    let tasks = TaskTracker::new();
    let router = router(Arc::new(Node::new(pods, stop.clone(), tasks.clone())));
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let accepted = async {
            let slot = Arc::clone(&slots).acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, accepted) = tokio::select! {
            accepted = accepted => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (acceptor, router, stop) = (acceptor.clone(), router.clone(), stop.clone());
                let clients = Arc::clone(&clients);
                tasks.spawn(async move {
                    let _slot = slot;
                    connection(stream, acceptor, &clients, router, stop).await;
                });
            }
            Err(error) => {
                // Out of descriptors, or a client that gave up: the next may fare better.
                tracing::warn!(%error, "accepting a connection");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
    tasks.close();
    tasks.wait().await;
    Ok(())
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    clients: &Clients,
    router: Router,
    stop: CancellationToken,
) {
    // Small messages of exec are worth more at once than together. A peer without power is noticed.
    let _as_it_is = stream.set_nodelay(true);
    let _as_it_is = rustix::net::sockopt::set_socket_keepalive(&stream, true);
    let _as_it_is = rustix::net::sockopt::set_tcp_keepidle(&stream, Duration::from_mins(1));
    let shaken = tokio::select! {
        shaken = timeout(HANDSHAKE, acceptor.accept(stream)) => shaken,
        () = stop.cancelled() => return,
    };
    let stream = match shaken {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a client was not let in");
            return;
        }
        Err(_) => return,
    };
    let router = match clients.refusal(stream.get_ref().1.peer_certificates()) {
        None => router,
        // In words, so that whoever has the wrong name learns of it through the API server.
        Some(words) => Router::new().fallback(async move || (StatusCode::FORBIDDEN, words)),
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            timeout(GRACE, connection.as_mut()).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}
