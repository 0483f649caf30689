//! Connections: TLS on a listener, bounded in number, in head and in time; those who have not said who they
//! are more tightly.
//!
//! Must not know what is asked.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::ServerConfig;
use rustls::pki_types::CertificateDer;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::auth;
use super::lobby::{self, Lobby, Seat};
use super::patient::Patient;
use super::respond::{Core, Peer};
use crate::kind::Caller;

const HEAD_BYTES: usize = 64 * 1024;
const STREAMS: u32 = 512;
/// How long answers under way may take when the server ends.
const GRACE: Duration = Duration::from_secs(2);

/// Serves a listener until told to stop.
pub(crate) async fn serve(
    core: Arc<Core>,
    listener: TcpListener,
    tls: Arc<ServerConfig>,
    stop: CancellationToken,
) {
    let acceptor = TlsAcceptor::from(tls);
    let lobby = Arc::new(Lobby::new(core.gate.bounds().connections));
    let tasks = TaskTracker::new();
    loop {
        let accepted = async {
            lobby.make_room().await;
            listener.accept().await
        };
        let accepted = tokio::select! {
            accepted = accepted => accepted,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                let (core, acceptor, stop) = (core.clone(), acceptor.clone(), stop.clone());
                let seat = Arc::new(lobby.enter());
                tasks.spawn(async move {
                    tokio::select! {
                        () = secured(core, stream, acceptor, &seat, stop) => {}
                        () = seat.must_leave() => tracing::debug!("a stranger is sent away"),
                    }
                });
            }
            Err(error) => {
                // Out of descriptors, or a client that gave up: the next may fare better.
                tracing::warn!(%error, "accepting a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    tasks.close();
    let _ended = tokio::time::timeout(GRACE, tasks.wait()).await;
}

async fn secured(
    core: Arc<Core>,
    stream: TcpStream,
    acceptor: TlsAcceptor,
    seat: &Arc<Seat>,
    stop: CancellationToken,
) {
    let _as_it_is = stream.set_nodelay(true);
    let shaken = tokio::time::timeout(lobby::IDLE, acceptor.accept(stream)).await;
    let Ok(Ok(stream)) = shaken else { return };
    let certificate =
        stream.get_ref().1.peer_certificates().and_then(<[_]>::first).and_then(subject);
    if certificate.is_some() {
        // Without a place it is refused when it asks for something.
        seat.welcome();
    }
    connection(core, stream, Peer::Network(certificate, Arc::clone(seat)), stop).await;
}

/// The identity that a certificate shows: its common name and its organisations.
fn subject(certificate: &CertificateDer<'_>) -> Option<Caller> {
    let (_, read) = X509Certificate::from_der(certificate).ok()?;
    let name = read.subject().iter_common_name().next()?.as_str().ok()?;
    let groups: Vec<&str> =
        read.subject().iter_organization().filter_map(|group| group.as_str().ok()).collect();
    Some(auth::caller(name, &groups))
}

/// Serves one connection.
async fn connection(
    core: Arc<Core>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    peer: Peer,
    stop: CancellationToken,
) {
    let bounds = *core.gate.bounds();
    let service = service_fn(move |request: Request<Incoming>| {
        let (core, peer) = (core.clone(), peer.clone());
        async move {
            let response = core.respond(request, &peer).await;
            peer.answered();
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.head_time)
        .max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(64 * 1024)
        .max_send_buf_size(128 * 1024)
        .max_pending_accept_reset_streams(Some(64))
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    let stream = TokioIo::new(Patient::new(stream, bounds.stall_time));
    let connection = builder.serve_connection_with_upgrades(stream, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            tokio::time::timeout(GRACE, connection).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}
