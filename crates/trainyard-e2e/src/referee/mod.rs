//! The scenarios of Volcano Jobs, played on Volcano itself: where it does something else, that is known
//! and said in `differences.yaml`, or it is a fault of ours.
//!
//! Must not know what scenarios do.

mod programs;
mod stand;
mod verdict;

use anyhow::{Context as _, Result, ensure};
use futures::StreamExt as _;
use tokio::time::Instant;

use programs::Programs;
use stand::Stand;
use verdict::{Differences, Verdict};

use crate::control_plane::Identity;
use crate::counts::Counts;
use crate::scenarios::{self, Scenario};
use crate::suite::report::{Report, bounded, say};
use crate::suite::{AT_ONCE, LONGEST, Stage};
use crate::world::Clients;

/// Why Volcano cannot be had here, if so.
pub async fn obstacle() -> Option<String> {
    Programs::obstacle().await
}

/// Plays the scenarios whose names contain `filter`.
pub async fn run(filter: Option<&str>) -> Result<Counts> {
    let scenarios = scenarios::of_volcano_jobs();
    let differences = Differences::known()?;
    let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    let strays = differences.strays(&names);
    ensure!(
        strays.is_empty(),
        "differences.yaml is about scenarios that are not there: {strays:?}"
    );
    let programs = Programs::provide().await.context("building Volcano")?;
    let mut stand = Stand::open(&programs).await.context("starting Volcano")?;
    let clients = Clients {
        user: stand.plane.client(Identity::Admin)?,
        kubelet: stand.plane.client(Identity::Kubelet)?,
        operator: stand.plane.client(Identity::Operator)?,
        scheduler: stand.plane.client(Identity::GangScheduler)?,
    };
    let stage = Stage::new(clients, filter, Report::default());
    let wanted = scenarios.iter().filter(|scenario| stage.wants(&scenario.name));
    futures::stream::iter(wanted)
        .for_each_concurrent(AT_ONCE, |scenario| play(&stage, &differences, scenario))
        .await;
    stand.check()?;
    stand.close().await?;
    Ok(stage.finish())
}

async fn play(stage: &Stage, differences: &Differences, scenario: &Scenario) {
    let (name, started) = (&scenario.name, Instant::now());
    let mut verdict = once(stage, differences, scenario).await;
    if matches!(verdict, Verdict::Wrong(_)) {
        // Volcano misses events now and then; what it does twice it means.
        verdict = once(stage, differences, scenario).await;
    }
    let result = match verdict {
        Verdict::Agrees => Ok(()),
        Verdict::Differs(why) => {
            say(&format!("differs {name}: {why}"));
            Ok(())
        }
        Verdict::Wrong(error) => Err(error),
    };
    stage.report().tell(name, &result, started.elapsed());
}

async fn once(stage: &Stage, differences: &Differences, scenario: &Scenario) -> Verdict {
    let name = &scenario.name;
    let played = async { scenario.run(stage.open(name).await?).await };
    differences.judge(name, bounded(LONGEST, played).await)
}
