//! The controllers that a cluster brings, each over a `kube::Client` and nothing else: they run on
//! the embedded server as they would on any other.
//!
//! Each owns one matter: it follows the objects it needs, decides by pure functions, and writes.
//! None knows another, and none knows which server is behind the client.

mod accounts;
mod bootstrap;
mod calls;
mod claims;
mod clock;
mod definitions;
mod endpoints;
mod error;
mod events;
mod expiry;
mod follow;
mod garbage;
mod jobs;
mod namespaces;
mod node_life;
mod queue;
mod resources;
mod view;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Client;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use bootstrap::bootstrap;
pub use error::Error;

use calls::Calls;
use clock::Clock;
use events::Recorder;

/// What the controllers are told.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where claims get their folders. Made when the first claim needs it.
    pub claims_folder: PathBuf,
    /// Removes such a folder with all in it; one that is not there is no error. Pods wrote in it what they
    /// liked.
    pub remove_folder: fn(&Path) -> io::Result<()>,
    /// The certificate by which pods know the API server.
    pub root_ca_pem: String,
    /// How long events are kept after they were last written.
    pub event_life: Duration,
    /// A node that gives no sign of life for so long is lost.
    pub node_grace: Duration,
    /// The same for a node that has never told its condition.
    pub node_start_grace: Duration,
    /// Pods of a node that has not existed for so long are removed.
    pub missing_node_grace: Duration,
    /// Pods of a lost node that should have ended so long ago are removed.
    pub lost_pod_grace: Duration,
}

impl Settings {
    /// The usual times.
    #[must_use]
    pub fn new(claims_folder: PathBuf, root_ca_pem: String) -> Self {
        Self {
            claims_folder,
            remove_folder: |folder| std::fs::remove_dir_all(folder),
            root_ca_pem,
            event_life: Duration::from_hours(1),
            node_grace: Duration::from_secs(40),
            node_start_grace: Duration::from_mins(1),
            missing_node_grace: Duration::from_secs(40),
            lost_pod_grace: Duration::from_mins(1),
        }
    }
}

/// What every controller gets.
#[derive(Clone)]
struct Context {
    calls: Calls,
    clock: Clock,
    settings: Arc<Settings>,
}

impl Context {
    fn new(client: Client, settings: Settings) -> Self {
        Self { calls: Calls::new(client), clock: Clock::start(), settings: Arc::new(settings) }
    }

    fn recorder(&self, component: &'static str) -> Recorder {
        Recorder::new(self.calls.clone(), self.clock, component)
    }
}

/// What a mutex holds; a panic of another holder left it as whole as any single step does.
fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs what a kube-apiserver does by itself and this server leaves to its controllers: the end of
/// definitions. For those who run no other controller.
pub async fn run_definitions(client: Client, stop: CancellationToken) {
    let settings = Settings::new(PathBuf::new(), String::new());
    tokio::select! {
        () = definitions::run(Context::new(client, settings)) => {}
        () = stop.cancelled() => {}
    }
}

/// Runs all controllers until told to stop.
pub async fn run_all(client: Client, settings: Settings, stop: CancellationToken) {
    let context = Context::new(client, settings);
    let mut tasks = JoinSet::new();
    tasks.spawn(accounts::run(context.clone()));
    tasks.spawn(claims::run(context.clone()));
    tasks.spawn(definitions::run(context.clone()));
    tasks.spawn(endpoints::run(context.clone()));
    tasks.spawn(expiry::run(context.clone()));
    tasks.spawn(garbage::run(context.clone()));
    tasks.spawn(jobs::run(context.clone()));
    tasks.spawn(namespaces::run(context.clone()));
    tasks.spawn(node_life::run(context));
    // None ends by itself: whatever they are at is begun again from what the API server holds.
    stop.cancelled().await;
    tasks.shutdown().await;
}
