//! The tier on a real control plane with a real node: pods that run as processes of this machine, real
//! kubectl, real TensorFlow.
//!
//! Starts `trainyard` as a user would. Must not know how the agent does what it does.

mod agent;
mod cases;
mod pods;
mod stage;

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use futures::StreamExt as _;

use crate::counts::Counts;
use crate::suite::report::Report;

pub use agent::{Agent, AgentOptions, Who};
pub use pods::{Pods, exit_code, waiting_reason};
pub use stage::Stage;

/// Cases under way at the same time: they share two cores with the control plane.
const AT_ONCE: usize = 4;
/// No case without TensorFlow takes longer.
const LONGEST: Duration = Duration::from_mins(3);

/// Runs the cases whose names contain `filter` with this binary.
pub async fn run(binary: &Path, filter: Option<&str>) -> Result<Counts> {
    let stage = Stage::start_with_audit(binary).await?;
    let report = Report::in_real_time();
    let wants = |name: &str| filter.is_none_or(|filter| name.contains(filter));
    let shared: Vec<_> = cases::shared().into_iter().filter(|case| wants(case.name)).collect();
    if !shared.is_empty() {
        let agent = Agent::start(&stage, AgentOptions::default()).await?;
        let play = async |case: cases::Case| {
            report.play(case.name, LONGEST, async |_| (case.play)(&stage, &agent).await).await;
        };
        futures::stream::iter(shared).for_each_concurrent(AT_ONCE, play).await;
        report.tell("node/agent_still_runs", &agent.check(), Duration::ZERO);
        agent.stop().await?;
    }
    for case in cases::alone().into_iter().filter(|case| wants(case.name)) {
        report.play(case.name, case.longest, async |_| (case.play)(&stage).await).await;
    }
    let rights = stage.check_rights(filter.is_none()).await;
    report.tell("node/rights", &rights, Duration::ZERO);
    stage.check()?;
    Ok(report.finish())
}
