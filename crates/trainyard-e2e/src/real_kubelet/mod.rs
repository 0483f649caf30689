//! The tier on a complete cluster: two nodes with the real kubelet, containerd, a pod network and `CoreDNS`, on which
//! Trainyard is installed as the documentation says. What all other tiers play is real here.
//!
//! Must not know how a cluster is made.

mod jobs;
mod scene;
mod site;
mod stand_in;
mod stories;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use trainyard_testbed::cluster::Cluster;

use crate::harness::{Phase, RealTime, Tier, cases, product};
use site::{Site, on_site};

/// Stories under way at the same time.
const AT_ONCE: usize = 6;
/// The same where each has pods that compute.
const TRAININGS_AT_ONCE: usize = 2;

/// Runs the tier.
#[must_use]
pub fn run() -> ExitCode {
    Tier::in_real_time(prepare(), |tier, real| {
        play(tier, real);
        Ok(())
    })
}

async fn prepare() -> Result<Option<String>> {
    let obstacle = Cluster::obstacle().await?;
    if obstacle.is_none() {
        Cluster::provide().await?;
        product().await?;
    }
    Ok(obstacle)
}

fn play(tier: &mut Tier, real: &RealTime) {
    let trains = tier.wants(&stories::with_tensorflow());
    let site = real.fixture(async move || Site::start(trains).await);
    let installed = |flags: &'static [&'static str]| {
        let site = Arc::clone(&site);
        real.fixture(async move || {
            let site = site.get().await?;
            site.install(flags).await?;
            Ok(site)
        })
    };
    let operator = installed(&[]);
    let cases = on_site(stories::with_operator());
    tier.run(Phase::new(&operator, cases).at_once(AT_ONCE));
    let everything = installed(&["--volcano", "--scheduler"]);
    let cases = on_site(stories::with_scheduler());
    tier.run(Phase::new(&everything, cases).at_once(AT_ONCE));
    let cases = on_site(stories::with_tensorflow());
    tier.run(Phase::new(&everything, cases).at_once(TRAININGS_AT_ONCE));
    tier.run(Phase::new(&everything, on_site(stories::alone())).one_by_one());
    tier.judge(&site, cases!["cluster": stops_and_leaves_nothing]);
}

async fn stops_and_leaves_nothing(site: &Site) -> Result<()> {
    site.stop().await
}
