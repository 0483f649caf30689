//! The scenarios of Volcano Jobs, played on Volcano itself: where it does something else, that is known
//! and said in `differences.yaml`, or it is a fault of ours.
//!
//! Must not know what scenarios do.

mod programs;
mod stand;
mod verdict;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use tokio::sync::Mutex;

use programs::Programs;
use stand::Stand;
use verdict::{Differences, Verdict};

use crate::control_plane::Program;
use crate::harness::{Case, Phase, Tier, cases, note};
use crate::scenarios;
use crate::setup;
use crate::stage::{Stage, in_worlds};
use crate::suite::{self, AT_ONCE};

/// Volcano, and what is known of it.
struct Referee {
    stage: Arc<Stage>,
    stand: Mutex<Option<Stand>>,
    differences: Differences,
}

impl Referee {
    async fn start() -> Result<Arc<Self>> {
        let scenarios = scenarios::of_volcano_jobs();
        let differences = Differences::known()?;
        let names: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
        let strays = differences.strays(&names);
        ensure!(
            strays.is_empty(),
            "differences.yaml is about scenarios that are not there: {strays:?}"
        );
        let programs = Programs::provide().await?;
        let stand = Stand::open(&programs).await.context("starting Volcano")?;
        let stage = Arc::new(Stage::new(suite::clients(&stand.plane)?));
        Ok(Arc::new(Self { stage, stand: Mutex::new(Some(stand)), differences }))
    }
}

/// Runs the tier.
#[must_use]
pub fn run() -> ExitCode {
    Tier::in_real_time(prepare(), |tier, real| {
        let referee = real.fixture(Referee::start);
        let cases = in_worlds(scenarios::of_volcano_jobs()).into_iter().map(refereed).collect();
        tier.run(Phase::new(&referee, cases).at_once(AT_ONCE).tried_once());
        tier.judge(&referee, cases!["volcano": still_runs, stops_when_told]);
        Ok(())
    })
}

async fn prepare() -> Result<Option<String>> {
    if let Some(obstacle) = Programs::obstacle().await {
        return Ok(Some(obstacle));
    }
    let obstacle = setup::programs_and_product(&Program::CONTROL_PLANE).await?;
    if obstacle.is_none() {
        Programs::provide().await.context("building Volcano")?;
    }
    Ok(obstacle)
}

/// A scenario whose failure may be known, and must then be.
fn refereed(scenario: Case<Arc<Stage>>) -> Case<Arc<Referee>> {
    let (name, longest) = (scenario.name.clone(), scenario.timeout * 2);
    Case::new(name, move |referee| play(referee, scenario.clone())).within(longest)
}

async fn play(referee: Arc<Referee>, scenario: Case<Arc<Stage>>) -> Result<()> {
    let once = async || {
        let played = scenario.play(Arc::clone(&referee.stage)).await;
        referee.differences.judge(&scenario.name, played)
    };
    let mut verdict = once().await;
    if matches!(verdict, Verdict::Wrong(_)) {
        // Volcano misses events now and then; what it does twice it means.
        verdict = once().await;
    }
    match verdict {
        Verdict::Agrees => Ok(()),
        Verdict::Differs(why) => {
            note(format_args!("differs {}: {why}", scenario.name));
            Ok(())
        }
        Verdict::Wrong(error) => Err(error),
    }
}

async fn still_runs(referee: &Referee) -> Result<()> {
    referee.stand.lock().await.as_mut().context("it has been stopped")?.check()
}

async fn stops_when_told(referee: &Referee) -> Result<()> {
    referee.stand.lock().await.take().context("it has been stopped")?.close().await
}
