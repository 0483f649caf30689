//! What is served inside the pods' network: names, the way out, the API server. Every socket is made
//! inside by the holder and handed out.

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Client};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use trainyard_holder::protocol::{Network as Level, Place, Refusal, SocketKind};

use crate::accounts::Accounts;
use crate::error::AgentError;
use crate::net::names::{self, Names};
use crate::net::outbound::Outbound;
use crate::net::resolv::{HostResolver, Resolver};
use crate::net::{Inside, dns, forward, proxy, services};
use crate::options::{Options, Outbound as Wish};
use crate::outbound;
use crate::shared::Network;
use crate::start::Started;
use crate::yard::Yard;

const DNS: u16 = 53;
/// Port of the service `kubernetes`.
const API: u16 = 443;
const RESOLV: &str = "/etc/resolv.conf";

/// Begins to serve; the tasks end only by failing.
pub(crate) async fn serve(
    accounts: &Accounts,
    options: &Options,
    started: &Started,
    names: &Names,
) -> Result<(Network, JoinSet<()>), AgentError> {
    let client = accounts.any();
    let mut tasks = JoinSet::new();
    tasks.spawn(names::follow(client.clone(), names.clone()));
    if started.chosen.network == Level::Loopback {
        for (node, _) in &started.nodes {
            tasks.spawn(names::follow_pods(accounts.of(node).clone(), names.clone(), node.clone()));
        }
        let network = Network {
            resolver: None,
            cluster: None,
            outbound: Outbound::fixed(outbound::on_the_machine(options)?),
            api_server: options.api_server.clone(),
        };
        return Ok((network, tasks));
    }
    let gateway = started.gateway;
    let udp = UdpSocket::from(inside(started, gateway, DNS, SocketKind::Datagram).await?);
    let tcp = TcpListener::from(inside(started, gateway, DNS, SocketKind::Stream).await?);
    let upstreams = dns::Upstreams::of_file(RESOLV.into());
    let table = names.clone();
    tasks.spawn(async move { ended("name server", dns::serve(udp, tcp, table, upstreams).await) });
    let cluster = pods_network(started)?;
    names.set_networks(vec![cluster]);
    let found = outbound::find(options, started, cluster).await?;
    for reason in &found.reasons {
        tracing::info!(reason, "a way out of the pods' network is not used");
    }
    if let Some(keeping) = found.keeping {
        tasks.spawn(keeping.run());
    }
    if options.outbound != Wish::None {
        let listener = inside(started, gateway, proxy::PORT, SocketKind::Stream).await?;
        let policy = proxy::Policy { cluster: vec![cluster], ..proxy::Policy::default() };
        let (table, way) = (names.clone(), Arc::new(Way(started.yard.clone())));
        let served = proxy::serve(listener.into(), policy, table, way);
        tasks.spawn(async move { ended("proxy", served.await) });
    }
    let mut direct: Vec<String> = started.nodes.iter().map(|(name, _)| name.clone()).collect();
    if let Some(target) = &options.api_server {
        let address = api_server(client, started, target.clone(), &mut tasks).await?;
        direct.extend(address.map(|address| address.to_string()));
    }
    tasks.spawn(services::serve(names.clone(), Arc::new(Way(started.yard.clone()))));
    let text = std::fs::read_to_string(RESOLV).unwrap_or_default();
    let network = Network {
        resolver: Some(Resolver { gateway, host: HostResolver::parse(&text), confined: None }),
        cluster: Some(cluster),
        outbound: Outbound::new(found.now, proxy::proxy_variables(gateway, &[cluster], &direct)),
        api_server: options.api_server.clone(),
    };
    Ok((network, tasks))
}

fn pods_network(started: &Started) -> Result<ipnet::Ipv4Net, AgentError> {
    ipnet::Ipv4Net::new(started.gateway, started.addresses.prefix())
        .map(|network| network.trunc())
        .map_err(|error| AgentError::Network(error.to_string()))
}

/// The way inside: sockets that the holder makes.
struct Way(Yard);

impl Inside for Way {
    fn connect(&self, address: SocketAddrV4) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(async move {
            let socket = self.0.connect(Place::Yard, address).await.map_err(io::Error::other)?;
            let stream = std::net::TcpStream::from(socket);
            stream.set_nonblocking(true)?;
            let stream = TcpStream::from_std(stream)?;
            // It is connecting still; what came of it is known when it can be written to.
            stream.writable().await?;
            match stream.take_error()? {
                Some(error) => Err(error),
                None => Ok(stream),
            }
        })
    }

    fn listen(&self, address: SocketAddrV4) -> BoxFuture<'_, io::Result<TcpListener>> {
        Box::pin(async move {
            self.0.add_address(*address.ip()).await.map_err(io::Error::other)?;
            let socket = self.0.listen(Place::Yard, address, SocketKind::Stream).await;
            socket.map(TcpListener::from).map_err(io::Error::other)
        })
    }
}

/// The address that pods are told for the API server, which is answered in the yard's own network.
async fn api_server(
    client: &Client,
    started: &Started,
    target: String,
    tasks: &mut JoinSet<()>,
) -> Result<Option<Ipv4Addr>, AgentError> {
    let services: Api<Service> = Api::namespaced(client.clone(), "default");
    let service = services.get_opt("kubernetes").await.ok().flatten();
    let address = service
        .and_then(|service| service.spec)
        .and_then(|spec| spec.cluster_ip)
        .and_then(|address| address.parse::<Ipv4Addr>().ok());
    let Some(address) = address else {
        tracing::warn!("there is no service `kubernetes`; pods cannot reach the API server");
        return Ok(None);
    };
    started.yard.add_address(address).await.map_err(|refusal| refused(&refusal))?;
    let listener = TcpListener::from(inside(started, address, API, SocketKind::Stream).await?);
    tasks.spawn(async move {
        ended("API server's address", forward::serve(listener, target, None).await);
    });
    Ok(Some(address))
}

async fn inside(
    started: &Started,
    address: Ipv4Addr,
    port: u16,
    kind: SocketKind,
) -> Result<OwnedFd, AgentError> {
    let address = SocketAddrV4::new(address, port);
    started.yard.listen(Place::Yard, address, kind).await.map_err(|refusal| refused(&refusal))
}

fn refused(refusal: &Refusal) -> AgentError {
    AgentError::Network(refusal.to_string())
}

fn ended(what: &str, result: Result<(), crate::net::NetError>) {
    if let Err(error) = result {
        tracing::error!(%error, "the {what} of the pods' network ended");
    }
}
