//! One pod after the other, bound as it is made: from its creation to the first act of its program,
//! over what the API server takes to show a pod to whoever watches.

use std::{
    collections::BTreeMap,
    process::Stdio,
    time::{Duration, Instant, SystemTime},
};

use anyhow::{Context as _, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{Ground, NODE, program};
use crate::bench::processes;
use crate::bench::sample::{Sample, round};
use crate::node::{Agent, Stage};

/// What the program does first is to say when that is.
const TELL_TIME: [&str; 2] = ["date", "+%s%N"];
/// Samples before the agent and the API server have warmed up do not count.
const WARM_UP: usize = 3;

/// Pods of one kind.
#[derive(Default)]
struct Kind {
    /// From the request to the program's first act.
    to_program_ms: Sample,
    /// From the agent's first sight to the program's start, by the agent's own log.
    inside_ms: Sample,
    uids: Vec<String>,
}

impl Kind {
    fn read_log(&mut self, started: &BTreeMap<String, f64>) {
        for uid in &self.uids {
            if let Some(ms) = started.get(&format!("{uid}-main-0")) {
                self.inside_ms.add(*ms);
            }
        }
    }

    fn shown(&self, floor_ms: f64) -> Value {
        json!({
            "created_to_program_ms": self.to_program_ms.shown(),
            "over_floor_ms": {
                "median": round(self.to_program_ms.median() - floor_ms),
                "p95": round(self.to_program_ms.at(0.95) - floor_ms),
            },
            "inside_agent_ms": self.inside_ms.shown(),
        })
    }
}

pub(super) async fn measure(stage: &Stage, agent: &Agent, pods: usize) -> Result<Value> {
    let ground = Ground::open(stage, "binding").await?;
    let (mut usual, mut bare) = <(Kind, Kind)>::default();
    let (mut floor_ms, mut program_ms) = <(Sample, Sample)>::default();
    let mut cpu_s = 0.0;
    for index in 0..pods + WARM_UP {
        if index == WARM_UP {
            (usual, bare, floor_ms, program_ms) = Default::default();
            cpu_s = processes::cpu_s(agent.pid)?;
        }
        floor_ms.add_ms(shown_to_nobody(&ground, index).await?);
        program_ms.add_ms(by_hand().await?);
        run(&ground, &format!("usual-{index}"), &json!({"nodeName": NODE}), &mut usual).await?;
        let alone = json!({"nodeName": NODE, "automountServiceAccountToken": false});
        run(&ground, &format!("bare-{index}"), &alone, &mut bare).await?;
    }
    cpu_s = processes::cpu_s(agent.pid)? - cpu_s;
    let started = started(&agent.log_text());
    usual.read_log(&started);
    bare.read_log(&started);
    let floor = floor_ms.median();
    // Two kinds of each.
    let run = f64::from(u32::try_from(2 * pods)?);
    Ok(json!({
        "pods": pods,
        "per_pod_ms": round(usual.inside_ms.median()),
        "per_pod_p95_ms": round(usual.inside_ms.at(0.95)),
        "cpu_ms_per_pod": round(cpu_s * 1000.0 / run),
        "floor_ms": floor_ms.shown(),
        "program_by_hand_ms": program_ms.shown(),
        "with_account_token": usual.shown(floor),
        "without_account_token": bare.shown(floor),
    }))
}

async fn run(ground: &Ground, name: &str, more: &Value, kind: &mut Kind) -> Result<()> {
    let created = SystemTime::now();
    let pod = ground.pod(name, &program(&TELL_TIME), more).await?;
    ground.phases.until(&[name.to_owned()], "Succeeded").await?;
    let acted = told(&ground.log(name).await?)?;
    kind.to_program_ms.add_ms(acted.duration_since(created)?);
    kind.uids.extend(pod.metadata.uid);
    Ok(())
}

/// The time from the request to the news of the pod, for a node that does not exist.
async fn shown_to_nobody(ground: &Ground, index: usize) -> Result<Duration> {
    let name = format!("nobody-{index}");
    let begin = Instant::now();
    ground.pod(&name, &program(&TELL_TIME), &json!({"nodeName": "nobody"})).await?;
    let seen = ground.phases.until(std::slice::from_ref(&name), "Pending").await?;
    ground.remove(&name).await?;
    Ok(seen.duration_since(begin))
}

/// The time until the same program has acted, started by this process.
async fn by_hand() -> Result<Duration> {
    let begin = SystemTime::now();
    let [program, format] = TELL_TIME;
    let output = Command::new(program).arg(format).stdin(Stdio::null()).output().await?;
    Ok(told(&String::from_utf8_lossy(&output.stdout))?.duration_since(begin)?)
}

fn told(text: &str) -> Result<SystemTime> {
    let nanoseconds = text.trim().parse().with_context(|| format!("no time: {text:?}"))?;
    Ok(SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds))
}

#[derive(Deserialize)]
struct Line {
    container: String,
    micros: f64,
}

/// Milliseconds from first sight to the program's start by run, if the agent's log tells them: that
/// takes `RUST_LOG=trainyard_node::pod=debug`.
fn started(log: &str) -> BTreeMap<String, f64> {
    let lines = log.lines().filter(|line| line.contains("the program was started"));
    let lines = lines.filter_map(|line| serde_json::from_str::<Line>(line).ok());
    lines.map(|line| (line.container, line.micros / 1000.0)).collect()
}
