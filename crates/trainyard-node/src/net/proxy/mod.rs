//! The pods' way out where there is no other: an HTTP proxy on their gateway that connects from the
//! host's side. Takes `CONNECT` and `http://` requests; where it may connect is in `policy`.
//!
//! Programs that do not understand `NO_PROXY` ask it for pods and services too; those it reaches through
//! the way inside that it is given. Must not know what is said through it.

mod local;
mod policy;
mod variables;

use std::{
    net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, header, uri,
};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{body::Incoming, service::service_fn, upgrade::OnUpgrade};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{net::TcpStream, time::timeout};
use tracing::debug;

use super::{
    Inside, NetError,
    accept::{self, Room, notice_death},
    names::{Answer, Names},
};
pub(crate) use local::own_addresses;
pub(crate) use policy::Policy;
use policy::Verdict;
pub(crate) use variables::{PORT, proxy_variables};

/// How long a client has to say what it wants.
const HEAD: Duration = Duration::from_secs(30);

/// Headers that concern one connection and are not passed on, beside those that `Connection` names.
const HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
];

type Body = BoxBody<Bytes, hyper::Error>;

/// Serves pods until dropped.
pub(crate) async fn serve(
    listener: TcpListener,
    policy: Policy,
    names: Names,
    inside: Arc<dyn Inside>,
) -> Result<(), NetError> {
    let listener = accept::ready(listener, "proxy")?;
    let limit = policy.connections;
    let ways = Arc::new(Ways { policy, names, inside });
    accept::serve(listener, limit, |stream, room| {
        let ways = Arc::clone(&ways);
        async move { connection(stream, room, ways).await }
    })
    .await;
    Ok(())
}

/// Where the proxy may connect to, and how.
struct Ways {
    policy: Policy,
    names: Names,
    inside: Arc<dyn Inside>,
}

/// What is to be carried once a client has been told that it is connected.
struct Tunnel {
    near: OnUpgrade,
    far: TcpStream,
}

type Slot = Arc<Mutex<Option<Tunnel>>>;

async fn connection(stream: TcpStream, room: Room, ways: Arc<Ways>) {
    notice_death(&stream);
    let viewer = match stream.peer_addr() {
        Ok(SocketAddr::V4(address)) => *address.ip(),
        _ => Ipv4Addr::UNSPECIFIED,
    };
    if ways.policy.only.is_some_and(|only| only != viewer) {
        return;
    }
    let slot = Slot::default();
    let service = service_fn(|request| {
        let (ways, slot) = (Arc::clone(&ways), Arc::clone(&slot));
        async move {
            let answer = match room {
                Room::Free => answer(request, &ways, viewer, &slot).await,
                Room::Full => Err(full(ways.policy.connections)),
            };
            Ok::<_, std::convert::Infallible>(answer.unwrap_or_else(Refused::into_response))
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .keep_alive(room == Room::Free)
        .half_close(true)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        return debug!(%error, "connection to the proxy broke");
    }
    let tunnel = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(Tunnel { near, mut far }) = tunnel {
        let carried = match near.await {
            Ok(near) => tokio::io::copy_bidirectional(&mut TokioIo::new(near), &mut far).await,
            Err(error) => return debug!(%error, "client left before it was connected"),
        };
        if let Err(error) = carried {
            debug!(%error, "connection broke");
        }
    }
}

/// A request that is not carried out, and why.
#[derive(Debug)]
struct Refused {
    status: StatusCode,
    reason: String,
}

impl Refused {
    fn new(status: StatusCode, reason: impl Into<String>) -> Self {
        Self { status, reason: reason.into() }
    }

    fn into_response(self) -> Response<Body> {
        let text = format!("trainyard proxy: {}\n", self.reason);
        let body = Full::from(text).map_err(|never| match never {}).boxed();
        let mut response = Response::new(body);
        *response.status_mut() = self.status;
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

fn full(limit: usize) -> Refused {
    let reason =
        format!("{limit} connections are open already, which is all there may be; try again");
    Refused::new(StatusCode::SERVICE_UNAVAILABLE, reason)
}

async fn answer(
    request: Request<Incoming>,
    ways: &Ways,
    viewer: Ipv4Addr,
    slot: &Slot,
) -> Result<Response<Body>, Refused> {
    if request.method() == Method::CONNECT {
        return tunnel(request, ways, viewer, slot).await;
    }
    let uri = request.uri();
    match uri.scheme_str() {
        Some("http") => {}
        Some(other) => {
            let reason = format!("{other}:// cannot be fetched by a proxy: use CONNECT");
            return Err(Refused::new(StatusCode::BAD_REQUEST, reason));
        }
        None => {
            let reason =
                "this is a proxy, not a server: set it in HTTP_PROXY and ask for a whole URL";
            return Err(Refused::new(StatusCode::BAD_REQUEST, reason));
        }
    }
    let Some(authority) = uri.authority() else {
        return Err(Refused::new(StatusCode::BAD_REQUEST, "the URL names no host"));
    };
    let (host, port) = (host_of(authority), authority.port_u16().unwrap_or(80));
    let stream = ways.connect(viewer, &host, port).await?;
    fetch(request, stream, &format!("{host}:{port}")).await
}

async fn tunnel(
    mut request: Request<Incoming>,
    ways: &Ways,
    viewer: Ipv4Addr,
    slot: &Slot,
) -> Result<Response<Body>, Refused> {
    let target = request.uri().authority().and_then(|authority| {
        Some((host_of(authority), authority.port_u16().filter(|port| *port != 0)?))
    });
    let Some((host, port)) = target else {
        let reason = "CONNECT needs a host and a port, as in CONNECT example.com:443";
        return Err(Refused::new(StatusCode::BAD_REQUEST, reason));
    };
    let far = ways.connect(viewer, &host, port).await?;
    let near = hyper::upgrade::on(&mut request);
    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(Tunnel { near, far });
    Ok(Response::new(Full::default().map_err(|never| match never {}).boxed()))
}

fn host_of(authority: &uri::Authority) -> String {
    authority.host().trim_start_matches('[').trim_end_matches(']').to_owned()
}

impl Ways {
    /// Connects to what a host means to the pod at `viewer`.
    async fn connect(&self, viewer: Ipv4Addr, host: &str, port: u16) -> Result<TcpStream, Refused> {
        match self.names.lookup_from(viewer, host) {
            Answer::Found(addresses) => self.connect_inside(&addresses, host, port).await,
            Answer::Alias(name) => connect(&self.policy, &name, port).await,
            Answer::Unknown | Answer::Elsewhere => connect(&self.policy, host, port).await,
        }
    }

    async fn connect_inside(
        &self,
        addresses: &[Ipv4Addr],
        host: &str,
        port: u16,
    ) -> Result<TcpStream, Refused> {
        let mut failures = Vec::new();
        for address in addresses {
            let address = SocketAddrV4::new(*address, port);
            match timeout(self.policy.patience, self.inside.connect(address)).await {
                Ok(Ok(stream)) => {
                    notice_death(&stream);
                    return Ok(stream);
                }
                Ok(Err(error)) => failures.push(format!("{address}: {error}")),
                Err(_) => failures.push(format!("{address}: no answer in time")),
            }
        }
        let reason = format!("cannot connect to {host}:{port}: {}", failures.join("; "));
        Err(Refused::new(StatusCode::BAD_GATEWAY, reason))
    }
}

/// Connects to the first address of a host that may be connected to. The very addresses that were judged
/// are used: a name cannot change its meaning in between.
async fn connect(policy: &Policy, host: &str, port: u16) -> Result<TcpStream, Refused> {
    let unresolved = |why: String| {
        let reason = format!(
            "cannot resolve {host} on the node's side: {why}. Names of the cluster are reached directly: \
             add them to NO_PROXY"
        );
        Refused::new(StatusCode::BAD_GATEWAY, reason)
    };
    let found = match timeout(policy.patience, tokio::net::lookup_host((host, port))).await {
        Ok(Ok(found)) => found.collect::<Vec<SocketAddr>>(),
        Ok(Err(error)) => return Err(unresolved(error.to_string())),
        Err(_) => return Err(unresolved("no answer in time".to_owned())),
    };
    let mut refusal = None;
    let mut failures = Vec::new();
    for address in found {
        if let Verdict::Refused(why) = policy.judge(address) {
            refusal = Some(why);
            continue;
        }
        match timeout(policy.patience, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                notice_death(&stream);
                return Ok(stream);
            }
            Ok(Err(error)) => failures.push(format!("{address}: {error}")),
            Err(_) => failures.push(format!("{address}: no answer in time")),
        }
    }
    match (failures.is_empty(), refusal) {
        (false, _) => {
            let reason = format!("cannot connect to {host}:{port}: {}", failures.join("; "));
            Err(Refused::new(StatusCode::BAD_GATEWAY, reason))
        }
        (true, Some(why)) => {
            Err(Refused::new(StatusCode::FORBIDDEN, format!("{host}:{port} is refused: {why}")))
        }
        (true, None) => Err(unresolved("it has no address".to_owned())),
    }
}

/// Passes one request on and its answer back.
async fn fetch(
    mut request: Request<Incoming>,
    stream: TcpStream,
    target: &str,
) -> Result<Response<Body>, Refused> {
    let broke = |error: hyper::Error| {
        Refused::new(StatusCode::BAD_GATEWAY, format!("{target} did not answer properly: {error}"))
    };
    strip(request.headers_mut());
    if let Some(authority) = request.uri().authority()
        && let Ok(host) = HeaderValue::from_str(without_user(authority.as_str()))
    {
        request.headers_mut().insert(header::HOST, host);
    }
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    *request.version_mut() = http::Version::HTTP_11;
    let (mut sender, driver) = hyper::client::conn::http1::Builder::new()
        .preserve_header_case(true)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(broke)?;
    // Ends with the answer, or when the client leaves: nothing else holds the connection.
    tokio::spawn(async move {
        if let Err(error) = driver.await {
            debug!(%error, "connection broke");
        }
    });
    let mut response = sender.send_request(request).await.map_err(broke)?;
    strip(response.headers_mut());
    Ok(response.map(BodyExt::boxed))
}

fn without_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests;
