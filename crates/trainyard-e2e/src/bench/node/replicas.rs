//! Five replicas that do nothing, until all have run, against a shell that starts five processes.

use std::{
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use futures::future::try_join_all;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Ground, NODE, program};
use crate::bench::processes;
use crate::bench::sample::{Sample, round};
use crate::node::{Agent, Stage};

const REPLICAS: usize = 5;
/// A shell's five processes take less processor time than `/proc` can tell; so many together do not.
const SHELLS: u32 = 20;
/// What an agent does after a pod's end belongs to the pod.
const SETTLED: Duration = Duration::from_millis(500);

#[derive(Default)]
struct Kind {
    wall_ms: Sample,
    cpu_s: f64,
}

impl Kind {
    fn shown(&self, rounds: f64) -> Value {
        json!({"wall_ms": self.wall_ms.shown(), "cpu_ms": round(self.cpu_s * 1000.0 / rounds)})
    }
}

pub(super) async fn measure(stage: &Stage, agent: &Agent, rounds: usize) -> Result<Value> {
    let ground = Ground::open(stage, "replicas").await?;
    let (mut bound, mut scheduled, mut shell) = <(Kind, Kind, Kind)>::default();
    // The first pods pay for what the agent makes once.
    pods(&ground, agent, "first", &json!({"nodeName": NODE}), &mut Kind::default()).await?;
    for round in 0..rounds {
        shells(&mut shell).await?;
        let name = format!("bound-{round}");
        pods(&ground, agent, &name, &json!({"nodeName": NODE}), &mut bound).await?;
        let name = format!("scheduled-{round}");
        pods(&ground, agent, &name, &json!({}), &mut scheduled).await?;
    }
    let rounds = f64::from(u32::try_from(rounds)?);
    Ok(json!({
        "pods": REPLICAS,
        "bound": bound.shown(rounds),
        "scheduled": scheduled.shown(rounds),
        "shell": shell.shown(rounds * f64::from(SHELLS)),
    }))
}

/// From the first request to the moment that all are seen to have succeeded.
async fn pods(
    ground: &Ground,
    agent: &Agent,
    name: &str,
    more: &Value,
    kind: &mut Kind,
) -> Result<()> {
    let before = processes::cpu_s(agent.pid)?;
    let names: Vec<String> = (0..REPLICAS).map(|index| format!("{name}-{index}")).collect();
    let nothing = program(&["sh", "-c", "true"]);
    let begin = Instant::now();
    try_join_all(names.iter().map(|name| ground.pod(name, &nothing, more))).await?;
    let end = ground.phases.until(&names, "Succeeded").await?;
    kind.wall_ms.add_ms(end.duration_since(begin));
    tokio::time::sleep(SETTLED).await;
    kind.cpu_s += processes::cpu_s(agent.pid)? - before;
    Ok(())
}

async fn shells(kind: &mut Kind) -> Result<()> {
    let script = "for i in 1 2 3 4 5; do sh -c true & done; wait";
    let before = processes::own_children_s()?;
    for _ in 0..SHELLS {
        let begin = Instant::now();
        let status = Command::new("sh").args(["-c", script]).stdin(Stdio::null()).status().await?;
        kind.wall_ms.add_ms(begin.elapsed());
        ensure!(status.success(), "the shell ended with {status}");
    }
    kind.cpu_s += processes::own_children_s()? - before;
    Ok(())
}
