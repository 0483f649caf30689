//! The tier on a complete cluster: two nodes with the real kubelet, containerd, a pod network and `CoreDNS`, on which
//! Trainyard is installed as the documentation says. What all other tiers play is real here.
//!
//! Must not know how a cluster is made.

mod company;
mod devices;
mod history;
mod jobs;
mod leftovers;
mod page;
mod play;
mod scene;
mod site;
mod stand_in;
mod stories;

use std::process::ExitCode;
use std::slice::from_ref;
use std::sync::Arc;

use anyhow::Result;
use trainyard_testbed::cluster::Cluster;

use crate::harness::{Phase, RealTime, Tier, cases, product};
use play::{Early, changing, in_one_outage, on_site};
use site::{NODES, Site};

/// Stories under way at the same time.
const AT_ONCE: usize = 8;

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
    let first = Arc::clone(&site);
    let operator = real.fixture(async move || {
        let site = first.get().await?;
        site.install(&[]).await?;
        Ok(site)
    });
    tier.run(Phase::new(&operator, on_site(stories::with_operator())).at_once(AT_ONCE));
    let long: Vec<_> =
        stories::long().into_iter().filter(|story| tier.wants(from_ref(story))).collect();
    let early = Arc::<Early>::default();
    let (first, begun) = (Arc::clone(&site), Arc::clone(&early));
    let everything = real.fixture(async move || {
        let site = first.get().await?;
        site.install(&["--volcano", "--scheduler"]).await?;
        begun.begin(&site, long.clone());
        Ok(site)
    });
    tier.run(Phase::new(&everything, on_site(stories::with_scheduler())).at_once(AT_ONCE));
    let first = Arc::clone(&everything);
    let quick = real.fixture(async move || {
        let site = first.get().await?;
        site.hurry().await?;
        Ok(site)
    });
    tier.run(Phase::new(&quick, changing(stories::of_the_operator())).one_by_one());
    tier.run(Phase::new(&everything, early.cases(stories::long())).at_once(AT_ONCE));
    tier.run(Phase::new(&everything, changing(stories::of_all_jobs())).one_by_one());
    let braced = real.fixture(async move || {
        let site = everything.get().await?;
        site.brace(NODES.len() - 1).await?;
        Ok(site)
    });
    let outage = in_one_outage(stories::of_a_lost_node());
    let at_once = outage.len();
    tier.run(Phase::new(&braced, outage).at_once(at_once));
    tier.judge(&site, cases!["cluster": stops_and_leaves_nothing]);
}

async fn stops_and_leaves_nothing(site: &Site) -> Result<()> {
    site.stop().await
}
