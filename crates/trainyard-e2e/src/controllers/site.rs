//! Servers with controllers on them: the embedded one, the real one, and the real one with its own.
//!
//! Must not know what cases do.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use kube::Client;
use tempfile::TempDir;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use trainyard_apiserver::controllers::{self, Settings};

use super::ground::Ground;
use super::quick_settings;
use crate::control_plane::{ControlPlane, Identity, Options};

/// Controllers of kube-controller-manager that cases about jobs need.
const OF_THE_MANAGER: [&str; 5] = [
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "ttl-after-finished-controller",
];

fn claims() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("trainyard-claims-").tempdir()?)
}

/// Pods need accounts here, as on any cluster.
fn options() -> Options {
    Options {
        controller_manager: false,
        audit: false,
        api_server_flags: vec!["--disable-admission-plugins=".to_owned()],
        ..Options::default()
    }
}

/// A server that nobody else runs controllers on.
pub(super) struct Server {
    pub(super) client: Client,
    /// Whose the controllers are.
    controllers: Client,
    claims: TempDir,
    plane: Mutex<Option<ControlPlane>>,
    _embedded: Option<trainyard_apiserver::Server>,
}

impl Server {
    /// The embedded one, in this process.
    pub(super) fn embedded() -> Result<Arc<Self>> {
        let server = trainyard_apiserver::Server::open(trainyard_apiserver::Settings::default())?;
        Ok(Arc::new(Self {
            client: server.client("admin"),
            controllers: server.client("system:kube-controller-manager"),
            claims: claims()?,
            plane: Mutex::default(),
            _embedded: Some(server),
        }))
    }

    /// The real one.
    pub(super) async fn real() -> Result<Arc<Self>> {
        let plane = ControlPlane::start(options()).await?;
        Ok(Arc::new(Self {
            client: plane.client(Identity::Admin)?,
            controllers: plane.client(Identity::ControllerManager)?,
            claims: claims()?,
            plane: Mutex::new(Some(plane)),
            _embedded: None,
        }))
    }

    pub(super) fn settings(&self) -> Settings {
        quick_settings(self.claims.path())
    }

    /// Fails when a program of it has ended.
    pub(super) async fn check(&self) -> Result<()> {
        self.plane.lock().await.as_mut().map_or(Ok(()), |plane| plane.check())
    }
}

/// A server with our controllers.
pub(super) struct Site {
    pub(super) ground: Arc<Ground>,
    server: Arc<Server>,
    running: Mutex<Option<(CancellationToken, JoinHandle<()>)>>,
}

impl Site {
    pub(super) async fn open(server: Arc<Server>) -> Result<Arc<Self>> {
        controllers::bootstrap(server.client.clone(), server.settings()).await?;
        let running = Mutex::new(Some(begin(&server)));
        let ground = Arc::new(Ground::open(server.client.clone(), server.claims.path()).await?);
        Ok(Arc::new(Self { ground, server, running }))
    }

    /// Starts the controllers again.
    pub(super) async fn start(&self) {
        *self.running.lock().await = Some(begin(&self.server));
    }

    /// Stops them.
    pub(super) async fn stop(&self) -> Result<()> {
        let running = self.running.lock().await.take();
        let (stop, running) = running.context("the controllers do not run")?;
        stop.cancel();
        let ended = tokio::time::timeout(Duration::from_secs(10), running).await;
        ended.context("the controllers do not stop").and_then(|ended| Ok(ended?))
    }
}

fn begin(server: &Server) -> (CancellationToken, JoinHandle<()>) {
    let stop = CancellationToken::new();
    let all = controllers::run_all(server.controllers.clone(), server.settings(), stop.clone());
    (stop, tokio::spawn(all))
}

/// kube-controller-manager on the real server.
pub(super) struct Manager {
    pub(super) ground: Arc<Ground>,
    pub(super) plane: Mutex<ControlPlane>,
    _claims: TempDir,
}

impl Manager {
    pub(super) async fn start() -> Result<Arc<Self>> {
        let controllers = OF_THE_MANAGER.map(str::to_owned).to_vec();
        let options = Options { controller_manager: true, controllers, ..options() };
        let plane = ControlPlane::start(options).await?;
        let client = plane.client(Identity::Admin)?;
        let claims = claims()?;
        // Namespaces that nobody else makes here, such as that of the leases.
        controllers::bootstrap(client.clone(), quick_settings(claims.path())).await?;
        let ground = Arc::new(Ground::open(client, claims.path()).await?);
        Ok(Arc::new(Self { ground, plane: Mutex::new(plane), _claims: claims }))
    }
}
