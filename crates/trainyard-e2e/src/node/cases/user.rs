//! The kubelet's contract once more, kept by an agent that an ordinary user runs.

use std::time::Duration;

use anyhow::Result;

use super::{Alone, exec, freed, levels, life, logs, node, probes, refused, restart, unsupported};
use crate::node::{Agent, AgentOptions, Stage, Who};

pub(super) fn alone() -> Vec<Alone> {
    let longest = Duration::from_mins(8);
    vec![
        Alone { name: "user/keeps_the_contract", longest, play: |s| Box::pin(bridge(s)) },
        Alone { name: "user/without_a_bridge", longest, play: |s| Box::pin(loopback(s)) },
    ]
}

async fn bridge(stage: &Stage) -> Result<()> {
    keeps_the_contract(stage, &["cedar", "elm"], &[]).await
}

async fn loopback(stage: &Stage) -> Result<()> {
    keeps_the_contract(stage, &["hazel", "larch"], &["--network=loopback"]).await
}

async fn keeps_the_contract(stage: &Stage, nodes: &[&str], flags: &[&str]) -> Result<()> {
    // Without root, whoever runs the tests is the ordinary user.
    let who = if rustix::process::geteuid().is_root() { Who::User } else { Who::Me };
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let options =
        AgentOptions { nodes: owned(nodes), flags: owned(flags), who, ..AgentOptions::default() };
    let agent = Agent::start(stage, options).await?;
    let cases = [
        life::all(),
        restart::all(),
        probes::all(),
        logs::all(),
        exec::all(),
        refused::all(),
        unsupported::all(),
        node::all(),
        freed::all(),
    ]
    .concat();
    levels::play(stage, &agent, &cases, &[]).await?;
    agent.stop().await
}
