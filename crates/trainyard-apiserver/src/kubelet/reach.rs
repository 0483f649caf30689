//! A connection to a node's own API.

use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, Uri};
use http_body_util::Empty;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Kubelets;
use crate::api::Api;
use crate::failure::{About, Failure};

const CONNECT: Duration = Duration::from_secs(5);

/// Where a node answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Address {
    pub(super) host: String,
    pub(super) port: u16,
}

/// The address in a Node object.
pub(super) fn address(node: &Value) -> Option<Address> {
    let port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"].as_u64()?;
    let addresses = node["status"]["addresses"].as_array()?;
    let of = |kind: &str| addresses.iter().find(|address| address["type"] == kind);
    let found = of("InternalIP").or_else(|| of("Hostname"))?;
    let host = found["address"].as_str()?.to_owned();
    Some(Address { host, port: u16::try_from(port).ok()? })
}

impl Kubelets {
    /// The address of a node by its name.
    pub(super) fn node(api: &Api, name: &str) -> Result<Address, Failure> {
        let node = api.store.get("nodes", "", name);
        let node = node.ok_or_else(|| Failure::not_found(About::new("", "nodes", name)))?;
        address(&node.value()).ok_or_else(|| {
            Failure::internal(format!("node {name:?} does not say where its kubelet answers"))
        })
    }

    /// Sends a request to a node and gives its answer.
    pub(super) async fn ask(
        &self,
        address: &Address,
        mut request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, Failure> {
        let unreachable = |error: &dyn std::fmt::Display| {
            Failure::internal(format!(
                "error dialing backend: {}:{}: {error}",
                address.host, address.port
            ))
        };
        let tls =
            self.tls.as_ref().ok_or_else(|| unreachable(&"this server has no key for nodes"))?;
        let stream = TcpStream::connect((address.host.as_str(), address.port));
        let stream =
            tokio::time::timeout(CONNECT, stream).await.map_err(|error| unreachable(&error))?;
        let stream = stream.map_err(|error| unreachable(&error))?;
        let _as_it_is = stream.set_nodelay(true);
        let name =
            ServerName::try_from(address.host.clone()).map_err(|error| unreachable(&error))?;
        let stream = TlsConnector::from(Arc::clone(tls)).connect(name, stream).await;
        let stream = stream.map_err(|error| unreachable(&error))?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| unreachable(&error))?;
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to a node broke off");
            }
        });
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        *request.uri_mut() = path.parse::<Uri>().map_err(|error| unreachable(&error))?;
        let host = format!("{}:{}", address.host, address.port);
        if let Ok(host) = host.parse() {
            request.headers_mut().insert(http::header::HOST, host);
        }
        sender.send_request(request).await.map_err(|error| unreachable(&error))
    }
}

/// The node that a pod runs on.
pub(super) fn node_of(pod: &Value, name: &str) -> Result<String, Failure> {
    let node = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty());
    node.map(str::to_owned)
        .ok_or_else(|| Failure::bad_request(format!("pod {name} does not have a host assigned")))
}

/// The container that is meant.
pub(super) fn container(pod: &Value, asked: Option<&str>) -> Result<String, Failure> {
    let pod_name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let names = |key: &str| -> Vec<&str> {
        let list = pod["spec"][key].as_array().into_iter().flatten();
        list.filter_map(|container| container["name"].as_str()).collect()
    };
    let (containers, inits) = (names("containers"), names("initContainers"));
    match asked {
        Some(name) if containers.contains(&name) || inits.contains(&name) => Ok(name.to_owned()),
        Some(name) => {
            Err(Failure::bad_request(format!("container {name} is not valid for pod {pod_name}")))
        }
        None if containers.len() == 1 => Ok(containers.concat()),
        None => {
            let also = match inits.as_slice() {
                [] => String::new(),
                inits => format!(" or one of the init containers: [{}]", inits.join(" ")),
            };
            Err(Failure::bad_request(format!(
                "a container name must be specified for pod {pod_name}, choose one of: [{}]{also}",
                containers.join(" ")
            )))
        }
    }
}
