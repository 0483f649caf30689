//! A client for one API server, on as few connections as possible.
//!
//! All requests and watches share one HTTP/2 connection, as they do for Kubernetes' own clients: a
//! connection each for dozens of writes under way would cost a handshake and its buffers each. Its
//! pings find out within seconds that the other side is gone, also while nothing is sent. Must not
//! know what is requested.

use std::time::Duration;

use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{
    client::legacy::{Builder, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{Client, Config, client::ConfigExt};
use tower::{BoxError, Layer, ServiceExt};

const CONNECT: Duration = Duration::from_secs(10);
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(15);

/// A client for the API server that `config` names.
///
/// Nothing is sent yet. Behind a proxy, or with a certificate for another name, it is the
/// library's usual client.
pub fn connect(config: Config) -> Result<Client, kube::Error> {
    client(config, Connections::Shared)
}

/// The same with a connection for each request under way, for answers that are read slowly.
///
/// On a shared connection what is not read yet of some answers keeps the others away, and a server
/// bounds how many there are at a time.
pub fn connect_each(config: Config) -> Result<Client, kube::Error> {
    client(config, Connections::Each)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connections {
    Shared,
    Each,
}

fn client(config: Config, connections: Connections) -> Result<Client, kube::Error> {
    let is_plain = config.cluster_url.scheme_str() != Some("https");
    if is_plain || config.proxy_url.is_some() || config.tls_server_name.is_some() {
        return Client::try_from(config);
    }
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_keepalive(Some(PING));
    http.set_connect_timeout(Some(config.connect_timeout.unwrap_or(CONNECT)));
    let https =
        HttpsConnectorBuilder::new().with_tls_config(config.rustls_client_config()?).https_only();
    let https = match connections {
        Connections::Shared => https.enable_all_versions().wrap_connector(http),
        Connections::Each => https.enable_http1().wrap_connector(http),
    };
    let client = Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PONG)
        .http2_keep_alive_while_idle(true)
        .build::<_, kube::client::Body>(https);
    let service = config.extra_headers_layer()?.layer(client.map_err(BoxError::from));
    let service = tower::util::option_layer(config.auth_layer()?).layer(service);
    let service = config.base_uri_layer().layer(service);
    Ok(Client::new(service, config.default_namespace))
}
