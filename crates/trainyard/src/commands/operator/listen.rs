//! Where metrics and probes are served.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use tokio::net::TcpListener;
use tracing::info;

use crate::failure::Failure;

/// An address as Go programs take it, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// Not served.
    Off,
    /// Every address of the machine.
    Port(u16),
    /// One host.
    Host(String, u16),
}

/// `:8080`, `127.0.0.1:8080`, `[::1]:8080`, `localhost:8080`, or `0` for none.
pub(crate) fn endpoint(text: &str) -> Result<Endpoint, String> {
    const WRONG: &str = "write an address like :8080 or 127.0.0.1:8080, or 0 to turn it off";
    if text.is_empty() || text == "0" {
        return Ok(Endpoint::Off);
    }
    let (host, port) = text.rsplit_once(':').ok_or(WRONG)?;
    let port = port.parse().map_err(|_| WRONG)?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    match bare.unwrap_or(host) {
        "" => Ok(Endpoint::Port(port)),
        host if bare.is_none() && host.contains(':') => Err(WRONG.to_owned()),
        host => Ok(Endpoint::Host(host.to_owned(), port)),
    }
}

/// Opens the sockets. Both may be the same one: each answers for metrics and probes.
pub(crate) async fn all(
    metrics: &Endpoint,
    probes: &Endpoint,
) -> Result<Vec<TcpListener>, Failure> {
    let mut listeners = Vec::new();
    for (what, flag, endpoint) in [
        ("metrics", "--metrics-bind-address", metrics),
        ("probes", "--health-probe-bind-address", probes),
    ] {
        if what == "probes" && endpoint == metrics {
            continue;
        }
        let listener = open(endpoint).await.map_err(|error| {
            Failure::other(format!("listening for {what}"), &error)
                .hint(format!("{flag} says where; 0 turns it off"))
        })?;
        if let Some(address) = listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
            info!(%address, "serving {what}");
        }
        listeners.extend(listener);
    }
    Ok(listeners)
}

async fn open(endpoint: &Endpoint) -> std::io::Result<Option<TcpListener>> {
    match endpoint {
        Endpoint::Off => Ok(None),
        Endpoint::Host(host, port) => TcpListener::bind((host.as_str(), *port)).await.map(Some),
        // The IPv6 wildcard takes IPv4 too; a machine may have no IPv6.
        Endpoint::Port(port) => {
            match TcpListener::bind((IpAddr::from(Ipv6Addr::UNSPECIFIED), *port)).await {
                Ok(listener) => Ok(Some(listener)),
                Err(_) => {
                    TcpListener::bind((IpAddr::from(Ipv4Addr::UNSPECIFIED), *port)).await.map(Some)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_go_takes_them() {
        let host = |host: &str, port| Ok(Endpoint::Host(host.to_owned(), port));
        assert_eq!(endpoint(":8080"), Ok(Endpoint::Port(8080)));
        assert_eq!(endpoint("0"), Ok(Endpoint::Off));
        assert_eq!(endpoint("127.0.0.1:1"), host("127.0.0.1", 1));
        assert_eq!(endpoint("[::1]:2"), host("::1", 2));
        assert_eq!(endpoint("localhost:3"), host("localhost", 3));
        for wrong in ["8080", ":", ":x", ":70000", "::1:8080", "host"] {
            assert!(endpoint(wrong).is_err(), "{wrong}");
        }
    }
}
