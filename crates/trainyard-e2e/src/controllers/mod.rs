//! The controllers that a cluster brings, on any API server that a `kube::Client` leads to.
//!
//! The cases know the API and nothing of the server behind it. They are played on the embedded server
//! and on the real kube-apiserver, without kube-controller-manager. Those about jobs are also played on
//! kube-controller-manager itself: what they expect is what it does.

mod cases;
mod ground;
mod quiet;
mod site;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use trainyard_apiserver::controllers::Settings;

use crate::control_plane::Program;
use crate::harness::{Case, Fixture, Phase, RealTime, Tier, cases};
use crate::setup;
use site::{Manager, Server, Site};

/// Cases under way at the same time.
const AT_ONCE: usize = 6;
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

/// Runs the tier.
#[must_use]
pub fn run() -> ExitCode {
    Tier::in_real_time(setup::programs(&Program::CONTROL_PLANE), |tier, real| {
        on(tier, real, "embedded", &real.fixture(async || Server::embedded()));
        on(tier, real, "real", &real.fixture(Server::real));
        let manager = real.fixture(Manager::start);
        let of_jobs = cases::all().into_iter().filter(|case| case.name.starts_with("jobs/"));
        let open = async |manager: Arc<Manager>, _: &str| Ok(Arc::clone(&manager.ground));
        let of_jobs = of_jobs.map(|case| case.below("manager").over(open)).collect();
        tier.run(Phase::new(&manager, of_jobs).at_once(AT_ONCE));
        tier.judge(&manager, below("manager", cases!["control_plane": manager_still_runs]));
        Ok(())
    })
}

/// All cases on one server, which has this name in theirs.
fn on(tier: &mut Tier, real: &RealTime, name: &str, server: &Arc<Fixture<Arc<Server>>>) {
    let bootstrap = cases!["bootstrap": makes_what_is_missing];
    tier.run(Phase::new(server, below(name, bootstrap)));
    let site = real.fixture({
        let server = Arc::clone(server);
        async move || Site::open(server.get().await?).await
    });
    let open = async |site: Arc<Site>, _: &str| Ok(Arc::clone(&site.ground));
    let all = cases::all().into_iter().map(|case| case.below(name).over(open)).collect();
    tier.run(Phase::new(&site, all).at_once(AT_ONCE));
    let verdicts = cases!["controllers":
        rest_when_all_is_done,
        stop_when_told,
        a_new_start_writes_nothing,
    ];
    tier.judge(&site, below(name, verdicts));
    tier.judge(server, below(name, cases!["server": still_runs]));
}

fn below<F: 'static>(name: &str, cases: Vec<Case<F>>) -> Vec<Case<F>> {
    cases.into_iter().map(|case| case.below(name)).collect()
}

async fn makes_what_is_missing(server: &Server) -> Result<()> {
    cases::bootstrap(&server.client, &server.settings()).await
}

async fn rest_when_all_is_done(site: &Site) -> Result<()> {
    quiet::settle(&site.ground).await?;
    quiet::stays(&site.ground).await
}

async fn stop_when_told(site: &Site) -> Result<()> {
    site.stop().await
}

async fn a_new_start_writes_nothing(site: &Site) -> Result<()> {
    site.start().await;
    quiet::stays(&site.ground).await?;
    site.stop().await
}

async fn still_runs(server: &Server) -> Result<()> {
    server.check().await
}

async fn manager_still_runs(manager: &Manager) -> Result<()> {
    manager.plane.lock().await.check()
}
