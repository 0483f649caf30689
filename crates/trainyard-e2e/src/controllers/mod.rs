//! The controllers that a cluster brings, on any API server that a `kube::Client` leads to.
//!
//! The cases know the API and nothing of the server behind it. [`run`] plays them on the embedded
//! server and on the real kube-apiserver, without kube-controller-manager; [`play`] on whatever it is
//! given. Those about jobs are also played on kube-controller-manager itself: what they expect is what
//! it does.

mod cases;
mod ground;
mod quiet;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use trainyard_apiserver::Server;
use trainyard_apiserver::controllers::{self, Settings};

use crate::control_plane::{ControlPlane, Identity, Options};
use crate::counts::Counts;
use crate::suite::report::Report;
use ground::Ground;

/// Cases under way at the same time.
const AT_ONCE: usize = 6;
/// No case takes longer.
const LONGEST: Duration = Duration::from_mins(2);
/// What stands for the certificate of the API server.
pub(crate) const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nof the tests\n";

/// Times that are short enough to be waited for.
#[must_use]
pub fn quick_settings(claims: &Path) -> Settings {
    Settings {
        event_life: Duration::from_secs(15),
        node_grace: Duration::from_secs(4),
        node_start_grace: Duration::from_secs(4),
        missing_node_grace: Duration::from_secs(2),
        lost_pod_grace: Duration::from_secs(2),
        ..Settings::new(claims.to_owned(), CERTIFICATE.to_owned())
    }
}

/// Plays the cases whose names contain `filter` on the server behind `client`, where `start` starts
/// the controllers. Nobody else may run controllers on it. `server` is its name in the report.
pub async fn play(
    server: &str,
    client: Client,
    start: impl Fn(Settings, CancellationToken) -> JoinHandle<()>,
    filter: Option<&str>,
) -> Result<Counts> {
    let claims = tempfile::Builder::new().prefix("trainyard-claims-").tempdir()?;
    let settings = quick_settings(claims.path());
    let report = Report::in_real_time();
    let tell = |name: &str, result: &Result<()>, begun: Instant| {
        report.tell(&format!("{server}/{name}"), result, begun.elapsed());
    };
    let begun = Instant::now();
    let made = cases::bootstrap(&client, &settings).await;
    tell("bootstrap/makes_what_is_missing", &made, begun);
    made.context("without these objects nothing can be played")?;
    let stop = CancellationToken::new();
    let running = start(settings.clone(), stop.clone());
    let ground = Ground::open(client, claims.path()).await?;
    let wanted = cases::all().into_iter();
    let wanted = wanted.filter(|case| filter.is_none_or(|filter| case.name.contains(filter)));
    play_all(server, wanted, &ground, &report).await;
    let begun = Instant::now();
    tell("controllers/rest_when_all_is_done", &quiet::settle(&ground).await, begun);
    let begun = Instant::now();
    tell("controllers/stop_when_told", &ended(stop, running).await, begun);
    let begun = Instant::now();
    let stop = CancellationToken::new();
    let running = start(settings, stop.clone());
    tell("controllers/a_new_start_writes_nothing", &quiet::stays(&ground).await, begun);
    ended(stop, running).await?;
    Ok(report.finish())
}

async fn play_all(
    server: &str,
    wanted: impl Iterator<Item = cases::Case>,
    ground: &Ground,
    report: &Report,
) {
    let one = async |case: cases::Case| {
        let name = format!("{server}/{}", case.name);
        report.play(&name, LONGEST, async |_| (case.play)(ground).await).await;
    };
    futures::stream::iter(wanted).for_each_concurrent(AT_ONCE, one).await;
}

async fn ended(stop: CancellationToken, running: JoinHandle<()>) -> Result<()> {
    stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(10), running).await;
    ended.context("the controllers do not stop").and_then(|ended| Ok(ended?))
}

/// Plays the cases on both servers.
pub async fn run(filter: Option<&str>) -> Result<Counts> {
    let mut counts = on_embedded(filter).await?;
    counts += on_real(filter).await?;
    counts += on_manager(filter).await?;
    Ok(counts)
}

/// Plays the cases on the embedded server, in this process.
async fn on_embedded(filter: Option<&str>) -> Result<Counts> {
    let server = Server::open(trainyard_apiserver::Settings::default())?;
    let start = |settings, stop| {
        let client = server.client("system:kube-controller-manager");
        tokio::spawn(controllers::run_all(client, settings, stop))
    };
    let counts = play("embedded", server.client("admin"), start, filter).await;
    server.close().await;
    counts
}

/// Plays the cases on the real kube-apiserver.
async fn on_real(filter: Option<&str>) -> Result<Counts> {
    let options = Options {
        controller_manager: false,
        audit: false,
        // Pods need accounts here, as on any cluster.
        api_server_flags: vec!["--disable-admission-plugins=".to_owned()],
        ..Options::default()
    };
    let mut plane = ControlPlane::start(options).await?;
    let client = plane.client(Identity::ControllerManager)?;
    let start = |settings, stop| tokio::spawn(controllers::run_all(client.clone(), settings, stop));
    let counts = play("real", plane.client(Identity::Admin)?, start, filter).await?;
    plane.check()?;
    Ok(counts)
}

/// Plays the cases about jobs on kube-controller-manager.
async fn on_manager(filter: Option<&str>) -> Result<Counts> {
    let wanted = cases::all().into_iter().filter(|case| case.name.starts_with("jobs/"));
    let wanted = wanted.filter(|case| filter.is_none_or(|filter| case.name.contains(filter)));
    let wanted: Vec<cases::Case> = wanted.collect();
    if wanted.is_empty() {
        return Ok(Counts::default());
    }
    let controllers = [
        "garbage-collector-controller",
        "job-controller",
        "namespace-controller",
        "serviceaccount-controller",
        "ttl-after-finished-controller",
    ];
    let options = Options {
        controllers: controllers.map(str::to_owned).to_vec(),
        audit: false,
        api_server_flags: vec!["--disable-admission-plugins=".to_owned()],
        ..Options::default()
    };
    let mut plane = ControlPlane::start(options).await?;
    let client = plane.client(Identity::Admin)?;
    let claims = tempfile::Builder::new().prefix("trainyard-claims-").tempdir()?;
    // Namespaces that nobody else makes here, such as that of the leases.
    controllers::bootstrap(client.clone(), quick_settings(claims.path())).await?;
    let ground = Ground::open(client, claims.path()).await?;
    let report = Report::in_real_time();
    play_all("manager", wanted.into_iter(), &ground, &report).await;
    plane.check()?;
    Ok(report.finish())
}
