//! Memory of an agent and its holder with pods that only sleep, over that without any.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Ground, NODE, NodeBench, program};
use crate::bench::processes::{self, Memories};
use crate::bench::sample::round;
use crate::node::Stage;

/// Until what was only needed to start has been given back.
const SETTLED: Duration = Duration::from_secs(5);

pub(super) async fn measure(stage: &Stage, options: &NodeBench) -> Result<Value> {
    let agent = super::agent(stage, options.who).await?;
    let ground = Ground::open(stage, "idle").await?;
    tokio::time::sleep(SETTLED).await;
    let before = processes::memories(agent.pid)?;
    let names: Vec<String> = (0..options.pods).map(|index| format!("idle-{index}")).collect();
    let sleeps = program(&["sleep", "86400"]);
    for name in &names {
        ground.pod(name, &sleeps, &json!({"nodeName": NODE})).await?;
    }
    ground.phases.until(&names, "Running").await?;
    tokio::time::sleep(SETTLED).await;
    agent.check()?;
    let after = processes::memories(agent.pid)?;
    ensure!(after.holder.processes > 0, "the agent has no holder");
    agent.stop().await?;
    let pods = f64::from(u32::try_from(options.pods)?);
    let per_pod = |of: fn(&Memories) -> f64| round((of(&after) - of(&before)) / pods);
    Ok(json!({
        "pods": options.pods,
        "mb_per_pod": per_pod(|m| m.agent.rss + m.holder.rss),
        "pss_mb_per_pod": per_pod(|m| m.agent.pss + m.holder.pss),
        "pss_mb_per_pod_with_inits": per_pod(|m| m.agent.pss + m.holder.pss + m.beside_pods.pss),
        "without_pods": shown(&before),
        "with_pods": shown(&after),
    }))
}

fn shown(memories: &Memories) -> Value {
    json!({
        "agent": memories.agent.shown(),
        "holder": memories.holder.shown(),
        "inits": memories.beside_pods.shown(),
    })
}
