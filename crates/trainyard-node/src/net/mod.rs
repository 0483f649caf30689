//! What pods see of the network beside their address: names, the name server that answers them, the way
//! out, and the files and variables that tell a container of it.
//!
//! Every listening socket is given by the caller, who has it made inside the pods' network; what goes out
//! goes out from the host's side. Must not know how the pods' network is made, nor how pods run.

mod accept;
pub(crate) mod dns;
pub(crate) mod door;
pub(crate) mod forward;
pub(crate) mod hosts;
pub(crate) mod names;
pub(crate) mod outbound;
pub(crate) mod proxy;
pub(crate) mod resolv;
pub(crate) mod services;

use std::{
    io,
    net::{SocketAddrV4, TcpListener},
};

use futures::future::BoxFuture;
use tokio::net::TcpStream;

/// The domain that names of the cluster end in.
pub(crate) const CLUSTER_DOMAIN: &str = "cluster.local";

/// The way into the pods' network from the machine's side.
pub(crate) trait Inside: Send + Sync {
    /// Connects to an address inside.
    fn connect(&self, address: SocketAddrV4) -> BoxFuture<'_, io::Result<TcpStream>>;

    /// Listens inside, at an address that is added where it is not there.
    fn listen(&self, address: SocketAddrV4) -> BoxFuture<'_, io::Result<TcpListener>>;
}

/// Why something of the network could not be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NetError {
    /// A socket that was handed in cannot be served.
    #[error("cannot serve the {what}: {source}")]
    Socket {
        /// What the socket was for.
        what: &'static str,
        /// Why not.
        source: std::io::Error,
    },
    /// A pod's host name or subdomain is none.
    #[error("pod {field} {value:?} is not a valid DNS label: {rule}")]
    NotALabel {
        /// `Hostname` or `Subdomain`.
        field: &'static str,
        /// What the pod says.
        value: String,
        /// What a label is.
        rule: &'static str,
    },
    /// The name is longer than the kernel takes.
    #[error(
        "Failed to construct FQDN from pod hostname and cluster domain, FQDN {name} is too long \
         ({limit} is the max, {length} characters requested)"
    )]
    NameTooLong {
        /// The full name.
        name: String,
        /// How many characters the kernel takes.
        limit: usize,
        /// How many it has.
        length: usize,
    },
}

impl NetError {
    /// A word for the kind of failure, for statuses and counters.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Socket { .. } => "Socket",
            Self::NotALabel { .. } | Self::NameTooLong { .. } => "CreatePodSandboxError",
        }
    }
}
