//! The way of one sandbox to package indexes: a proxy for it alone, on the pods' gateway, which keeps it from
//! this machine as pods are kept, but for the servers that the administrator's configuration names. Where that
//! names a proxy, the way leads to that one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use trainyard_holder::protocol::{Place, SocketKind};
use trainyard_image::Server;

use crate::net::names::Names;
use crate::net::{Inside, forward, proxy};
use crate::shared::{Shared, lock};

/// Variables that name a proxy.
const PROXIES: [&str; 7] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "PIP_PROXY",
];
/// What is set where the administrator names none.
const OURS: [&str; 4] = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];

/// Served until dropped.
#[derive(Default)]
pub(super) struct Way {
    served: JoinSet<()>,
}

/// Opens a way for the sandbox at `viewer`, and says so in its environment.
pub(super) async fn open(
    shared: &Shared,
    viewer: Ipv4Addr,
    servers: &[Server],
    env: &mut Vec<(String, String)>,
) -> io::Result<Way> {
    let mut way = Way::default();
    let Some(cluster) = shared.network.cluster else {
        // It is on the machine's own network.
        return Ok(way);
    };
    let gateway = lock(&shared.addresses).gateway();
    let named = env.iter_mut().filter(|(name, _)| PROXIES.contains(&name.as_str()));
    let mut is_named = false;
    for (_, value) in named {
        is_named = true;
        let Some(target) = target(value) else { continue };
        let (listener, port) = listen(shared, gateway).await?;
        *value = value.replacen(&target, &format!("{gateway}:{port}"), 1);
        let from = Some(IpAddr::V4(viewer));
        way.served.spawn(async move { told(forward::serve(listener, target, from).await) });
    }
    if is_named {
        return Ok(way);
    }
    let (listener, port) = listen(shared, gateway).await?;
    let policy = proxy::Policy {
        allowed: addresses(servers).await,
        cluster: vec![cluster],
        only: Some(viewer),
        ..proxy::Policy::default()
    };
    way.served.spawn(async move {
        told(proxy::serve(listener, policy, Names::new(), Arc::new(Nothing)).await);
    });
    let url = format!("http://{gateway}:{port}");
    env.extend(OURS.map(|name| (name.to_owned(), url.clone())));
    // What is configured as reached without a proxy is not reached without this one.
    env.retain(|(name, _)| !name.eq_ignore_ascii_case("no_proxy"));
    Ok(way)
}

/// Host and port in a proxy's address; none where another name would not do, as with a certificate.
fn target(value: &str) -> Option<String> {
    let rest = match value.split_once("://") {
        Some(("http", rest)) => rest,
        Some(_) => return None,
        None => value,
    };
    let place = rest.split('/').next()?.rsplit('@').next()?;
    (place.rsplit_once(':')?.1.parse::<u16>().is_ok()).then(|| place.to_owned())
}

/// Where servers are, as this machine sees them. One that cannot be found is not reached by others either.
async fn addresses(servers: &[Server]) -> Vec<SocketAddr> {
    let mut found = Vec::new();
    for server in servers {
        match tokio::net::lookup_host((server.host.as_str(), server.port)).await {
            Ok(addresses) => found.extend(addresses),
            Err(error) => {
                tracing::debug!(host = server.host, %error, "a configured server is not found");
            }
        }
    }
    found
}

async fn listen(shared: &Shared, gateway: Ipv4Addr) -> io::Result<(TcpListener, u16)> {
    let address = SocketAddrV4::new(gateway, 0);
    let socket = shared.yard.listen(Place::Yard, address, SocketKind::Stream).await;
    let listener = TcpListener::from(socket.map_err(io::Error::other)?);
    let port = listener.local_addr()?.port();
    Ok((listener, port))
}

fn told(served: Result<(), crate::net::NetError>) {
    if let Err(error) = served {
        tracing::warn!(%error, "a sandbox' way to the package index ended");
    }
}

/// Pods and services are not reached.
struct Nothing;

impl Inside for Nothing {
    fn connect(&self, _: SocketAddrV4) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(async { Err(io::ErrorKind::PermissionDenied.into()) })
    }

    fn listen(&self, _: SocketAddrV4) -> BoxFuture<'_, io::Result<TcpListener>> {
        Box::pin(async { Err(io::ErrorKind::PermissionDenied.into()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configured_proxy_is_led_to_whatever_its_address_says_else() {
        for (value, expected) in [
            ("http://proxy.example:3128", Some("proxy.example:3128")),
            ("http://me:word@10.0.0.1:8080/", Some("10.0.0.1:8080")),
            ("proxy:80", Some("proxy:80")),
            ("https://proxy.example:443", None),
            ("http://proxy.example", None),
            ("", None),
        ] {
            assert_eq!(target(value).as_deref(), expected, "{value}");
        }
    }
}
