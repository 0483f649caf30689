//! A Kubernetes API as one of its users meets it: where it is, which kinds it serves, how it is asked.
//!
//! Owns connections, requests and how a refusal is told. Objects stay JSON throughout, so that no
//! field is lost on the way. Must not know any command.

pub(crate) mod access;
mod error;
pub(crate) mod kinds;
mod lines;
mod requests;

pub(crate) use access::Access;
pub(crate) use error::Error;
pub(crate) use kinds::{Kind, Kinds};
pub(crate) use lines::Lines;
pub(crate) use requests::{DryRun, Query};

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::future::Future;
use std::path::PathBuf;

use kube::{Client, Config};

use crate::failure::Failure;

/// An API server that we are connected to.
pub(crate) struct Cluster {
    client: Client,
    /// What answers come by that are read slowly; made when the first is asked for.
    each: OnceCell<Client>,
    /// How it is reached; none for a server in this process.
    config: Option<Config>,
    /// Where it is.
    pub(crate) server: String,
    /// The namespace that is meant when none is named.
    pub(crate) namespace: String,
    /// The folder of the yard that it is, as the kubeconfig has it.
    pub(crate) folder: Option<PathBuf>,
    /// What the server has warned of: each warning is told once.
    warned: RefCell<BTreeSet<String>>,
}

impl Cluster {
    /// A server in this process.
    pub(crate) fn own(client: Client, server: String, namespace: String) -> Self {
        Self::new(client, None, server, namespace, None)
    }

    /// The client itself, for libraries that speak the API.
    pub(crate) fn client(&self) -> Client {
        self.client.clone()
    }

    fn new(
        client: Client,
        config: Option<Config>,
        server: String,
        namespace: String,
        folder: Option<PathBuf>,
    ) -> Self {
        let each = OnceCell::new();
        Self { client, each, config, server, namespace, folder, warned: RefCell::default() }
    }

    /// The client for answers that are read slowly: each has a connection of its own.
    fn each(&self) -> &Client {
        self.each.get_or_init(|| {
            let config = self.config.clone();
            let each = config.and_then(|config| trainyard_operator::connect_each(config).ok());
            each.unwrap_or_else(|| self.client.clone())
        })
    }
}

/// Runs a command's work to its end, on this thread.
pub(crate) fn run(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other("starting the runtime", &error))?;
    let ended = runtime.block_on(work);
    // A connection that still says goodbye must not keep us.
    runtime.shutdown_background();
    ended
}
