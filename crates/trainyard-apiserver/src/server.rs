//! The server as others use it: opened over a store, asked in process, served on a listener.
//!
//! Owns how the parts are put together. Must not know TFJobs or who its clients are.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::api::Api;
use crate::certificates::{Authority, KeyError};
use crate::clock::Clock;
use crate::http::{Bounds, Core, Doors, Gate, auth, nodes};
use crate::kubelet::{Kubelets, Residents};
use crate::store::{Limits, OpenError, Store};
use crate::tokens::Tokens;

/// The common name under which the server is known to nodes.
pub const NODE_CLIENT: &str = "kube-apiserver-kubelet-client";

/// Who has the authority's token ([`Authority::user_token`]).
pub const USER: &str = "trainyard-admin";

/// Why a server could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The folder with the objects.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// Keys and certificates.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The key of tokens.
    #[error("the signing key cannot be used: {0}")]
    Tokens(String),
    /// A definition that the program brings.
    #[error("a definition cannot be stored: {0}")]
    Definition(String),
}

impl ServerError {
    /// A stable name of the variant, for logs and metrics.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Store(error) => error.kind(),
            Self::Keys(error) => error.kind(),
            Self::Tokens(_) => "token_key",
            Self::Definition(_) => "definition",
        }
    }
}

/// How a server is to be.
pub struct Settings {
    /// Where objects and keys are kept; without it they live as long as the process.
    pub folder: Option<PathBuf>,
    /// Where the time comes from.
    pub clock: Clock,
    /// How much is let in at once.
    pub bounds: Bounds,
    /// More tokens that let their bearer do everything, and who that is.
    pub tokens: Vec<(String, String)>,
    /// Names and addresses under which the server may be asked for.
    pub hosts: Vec<String>,
    /// Where the server will be, as `127.0.0.1:6443`.
    pub address: String,
    /// How many changes are remembered for watches and for lists at older revisions.
    pub history: usize,
    /// Pods that live in this process.
    pub residents: Option<Arc<dyn Residents>>,
}

impl Default for Settings {
    fn default() -> Self {
        let hosts = ["127.0.0.1", "localhost", "::1", "kubernetes.default.svc", "kubernetes"];
        Self {
            folder: None,
            clock: Clock::Wall,
            bounds: Bounds::default(),
            tokens: Vec::new(),
            hosts: hosts.map(str::to_owned).to_vec(),
            address: "127.0.0.1:6443".to_owned(),
            history: Limits::default().history_events,
            residents: None,
        }
    }
}

/// A server.
#[derive(Clone)]
pub struct Server {
    core: Arc<Core>,
    authority: Arc<Authority>,
    stop: CancellationToken,
}

impl Server {
    /// Opens a server over what its folder holds.
    pub fn open(settings: Settings) -> Result<Self, ServerError> {
        let limits = Limits { history_events: settings.history, ..Limits::default() };
        let (store, authority) = match &settings.folder {
            Some(folder) => (Store::open(folder, limits)?, Authority::open(folder)?),
            None => (Store::memory(limits), Authority::ephemeral()?),
        };
        let authority = Arc::new(authority);
        let tokens = Tokens::with_key(&authority.token_key);
        let tokens = tokens.map_err(|error| ServerError::Tokens(error.to_string()))?;
        let api = Api::new(store, settings.clock, tokens);
        let mut doors = Doors::default();
        doors.trust(authority.user_tokens(), auth::caller(USER, &[auth::MASTERS]));
        for (token, name) in &settings.tokens {
            doors.add(token, auth::caller(name, &[auth::MASTERS]));
        }
        let tls = Some(authority.node_tls(NODE_CLIENT)?);
        let kubelets = Kubelets { tls, residents: settings.residents };
        let gate = Gate::new(settings.bounds);
        let core = Core::new(api, gate, doors, kubelets, settings.hosts, settings.address);
        let core = Arc::new(core);
        Ok(Self { core, authority, stop: CancellationToken::new() })
    }

    /// Stores definitions that the program itself brings, without looking for faults in them: tests do
    /// that. Answers with those that are there already and say something else.
    pub async fn bring(&self, definitions: Vec<Value>) -> Result<Vec<Value>, ServerError> {
        let brought = crate::verbs::bring(&self.core.api, definitions).await;
        brought.map_err(|failure| ServerError::Definition(failure.message))
    }

    /// A client in this process that may do everything, under a name of its own.
    #[must_use]
    pub fn client(&self, name: &str) -> kube::Client {
        let caller = auth::caller(name, &[auth::MASTERS]);
        crate::http::client(self.core.clone(), caller, self.stop.clone())
    }

    /// A client in this process that is a node, and may do what nodes may.
    #[must_use]
    pub fn node_client(&self, node: &str) -> kube::Client {
        let caller = auth::caller(&format!("{}{node}", nodes::PREFIX), &[nodes::NODES]);
        crate::http::client(self.core.clone(), caller, self.stop.clone())
    }

    /// The authority of this server.
    #[must_use]
    pub fn authority(&self) -> &Authority {
        &self.authority
    }

    /// Serves a listener over TLS until the server is closed.
    pub async fn serve(&self, listener: TcpListener) -> Result<(), ServerError> {
        let tls = self.authority.server_tls(&self.core.hosts)?;
        crate::http::serve(self.core.clone(), listener, tls, self.stop.clone()).await;
        Ok(())
    }

    /// Ends all connections and takes no more. What was acknowledged is on disk and the folder is free
    /// when it returns.
    pub async fn close(&self) {
        self.stop.cancel();
        self.core.api.store.close().await;
    }
}
