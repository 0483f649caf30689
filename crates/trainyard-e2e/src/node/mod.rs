//! The tier on a real control plane with a real node: pods that run as processes of this machine, real
//! kubectl, real TensorFlow.
//!
//! Starts `trainyard` as a user would. Must not know how the agent does what it does.

mod agent;
mod cases;
mod pods;
mod stage;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::sync::Mutex;
use trainyard_testbed::packages;

use crate::control_plane::Program;
use crate::harness::{Case, Fixture, Phase, RealTime, Tier, cases, product, within};
use crate::setup;
use cases::Shared;
use cases::levels::{self, Level};

pub use agent::{Agent, AgentOptions, Who};
pub use pods::{Pods, exit_code, waiting_reason};
pub use stage::Stage;

/// Cases under way at the same time: they share two cores with the control plane.
const AT_ONCE: usize = 6;
/// No case without TensorFlow takes longer.
const LONGEST: Duration = Duration::from_mins(3);

/// Runs the tier.
#[must_use]
pub fn run() -> ExitCode {
    let needs = setup::programs_product_and_packages(&Program::CONTROL_PLANE, &packages::OUTBOUND);
    Tier::in_real_time(needs, |tier, real| {
        let stage = real.fixture(async || {
            let stage = Stage::start_with_audit(&product().await?).await?;
            Ok(Arc::new(stage))
        });
        let options = AgentOptions::default();
        let root = Level { name: "", options, cases: cases::all() };
        for level in [vec![root], levels::all()].into_iter().flatten() {
            on_one_agent(tier, real, &stage, level);
        }
        tier.run(Phase::new(&stage, cases::alone()).one_by_one());
        tier.judge_all(&stage, cases!["node": rights_are_all_used]);
        tier.judge(&stage, cases!["node": rights_suffice, control_plane_still_runs]);
        Ok(())
    })
}

/// An agent that several cases share.
struct Common {
    stage: Arc<Stage>,
    agent: Mutex<Option<Arc<Agent>>>,
}

/// Runs the cases of a level on one agent.
fn on_one_agent(tier: &mut Tier, real: &RealTime, stage: &Arc<Fixture<Arc<Stage>>>, level: Level) {
    let Level { name, options, cases } = level;
    let common = real.fixture({
        let stage = Arc::clone(stage);
        async move || {
            let stage = stage.get().await?;
            let agent = Arc::new(Agent::start(&stage, options.clone()).await?);
            Ok(Arc::new(Common { stage, agent: Mutex::new(Some(agent)) }))
        }
    });
    let open = async |common: Arc<Common>, _: &str| -> Result<Shared> {
        let agent = common.agent.lock().await.clone().context("the agent has been stopped")?;
        Ok((Arc::clone(&common.stage), agent))
    };
    let cases = within(LONGEST, cases).into_iter().map(|case| below(name, case).over(open));
    tier.run(Phase::new(&common, cases.collect()).at_once(AT_ONCE));
    let verdicts: Vec<Case<Arc<Common>>> = cases!["agent": still_runs, stops_when_told];
    tier.judge(&common, verdicts.into_iter().map(|case| below(name, case)).collect());
}

fn below<F: 'static>(name: &str, case: Case<F>) -> Case<F> {
    if name.is_empty() { case } else { case.below(name) }
}

async fn still_runs(common: &Common) -> Result<()> {
    common.agent.lock().await.as_ref().context("the agent has been stopped")?.check()
}

async fn stops_when_told(common: &Common) -> Result<()> {
    let agent = common.agent.lock().await.take().context("the agent has been stopped")?;
    Arc::into_inner(agent).context("a case still uses the agent")?.stop().await
}

async fn rights_are_all_used(stage: &Stage) -> Result<()> {
    stage.check_rights(true).await
}

async fn rights_suffice(stage: &Stage) -> Result<()> {
    stage.check_rights(false).await
}

async fn control_plane_still_runs(stage: &Stage) -> Result<()> {
    stage.check()
}
