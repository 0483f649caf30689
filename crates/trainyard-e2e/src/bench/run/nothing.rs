//! Five replicas that do nothing, against a shell that starts the same five processes; and what the yard
//! itself holds in memory while five replicas sleep.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::process::Command;

use super::errand::{Errand, job};
use crate::bench::processes;
use crate::bench::sample::{Sample, round};

const ROLES: [(&str, u32); 4] = [("Chief", 1), ("PS", 1), ("Worker", 2), ("Evaluator", 1)];
const SCRIPT: &str = "for i in 1 2 3 4 5; do sh -c true & done; wait";
/// The first runs pay for what is only made once.
const WARM_UP: usize = 2;
/// Until what was only needed to start has been given back.
const SETTLED: Duration = Duration::from_secs(3);
/// How long five replicas may take to run, on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// A pod's sleep, known among all processes by its odd length.
const SLEEP: &str = "8639.25";

pub(super) async fn measure(errand: &Errand, pairs: usize) -> Result<Value> {
    let nothing = json!({"name": "tensorflow", "image": "test", "command": ["sh", "-c", "true"]});
    let file = errand.write("nothing.yaml", &job("nothing", &ROLES, &nothing))?;
    let (mut run_ms, mut shell_ms, mut first_ms, mut more_ms) =
        <(Sample, Sample, Sample, Sample)>::default();
    for pair in 0..pairs + WARM_UP {
        let done = errand.run(&file, &[]).await?;
        let shell = shell().await?;
        if pair < WARM_UP {
            continue;
        }
        run_ms.add_ms(done.whole);
        first_ms.add_ms(done.first_line);
        shell_ms.add_ms(shell);
        more_ms.add_ms(done.whole.saturating_sub(shell));
    }
    Ok(json!({
        "replicas": 5,
        "run_ms": run_ms.shown(),
        "shell_ms": shell_ms.shown(),
        "first_line_ms": first_ms.shown(),
        "more_than_shell_ms": round(more_ms.median()),
        "more_than_shell": more_ms.shown(),
    }))
}

async fn shell() -> Result<Duration> {
    let begin = Instant::now();
    let status = Command::new("sh").args(["-c", SCRIPT]).stdin(Stdio::null()).status().await?;
    ensure!(status.success(), "the shell ended with {status}");
    Ok(begin.elapsed())
}

pub(super) async fn memory(errand: &Errand) -> Result<Value> {
    let sleeps = json!({"name": "tensorflow", "image": "test", "command": ["sleep", SLEEP]});
    let file = errand.write("sleeps.yaml", &job("sleeps", &ROLES, &sleeps))?;
    let mut child = errand.start(&file, &[])?;
    let pid = child.id().context("the run ended at once")?;
    let begin = Instant::now();
    while processes::running(pid, SLEEP)? < 5 {
        ensure!(begin.elapsed() < PATIENCE, "five replicas did not come up");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    tokio::time::sleep(SETTLED).await;
    let memories = processes::memories(pid)?;
    let sum = |of: fn(&processes::Memory) -> f64| {
        round(of(&memories.agent) + of(&memories.holder) + of(&memories.beside_pods))
    };
    let shown = json!({
        "rss_mb": sum(|memory| memory.rss),
        "pss_mb": sum(|memory| memory.pss),
        "yard": memories.agent.shown(),
        "holder": memories.holder.shown(),
        "inits": memories.beside_pods.shown(),
    });
    // Its pods end with it.
    child.kill().await.context("ending the run")?;
    Ok(shown)
}
