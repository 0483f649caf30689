//! `trainyard run` as a whole, each part against the same processes without it: a shell that starts five
//! processes, a training started by hand. In turns, so that whatever drifts falls on both alike.
//!
//! Works with any `trainyard` binary. Must not know how a run is conducted.

mod errand;
mod nothing;
mod training;

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::processes;
use errand::Errand;

/// What to measure.
#[derive(Debug, Clone)]
pub struct RunBench {
    /// The product.
    pub binary: PathBuf,
    /// Pairs of runs that do nothing.
    pub pairs: usize,
    /// Pairs of trainings.
    pub rounds: usize,
}

/// Runs the benchmark; the result is one JSON object.
pub async fn run(options: RunBench) -> Result<Value> {
    ensure!(options.pairs > 0, "--pairs must be at least 1");
    ensure!(options.rounds > 0, "--rounds must be at least 1");
    let busy = processes::load()?;
    let errand = Errand::new(&options.binary)?;
    let nothing = nothing::measure(&errand, options.pairs).await.context("five replicas")?;
    let memory = nothing::memory(&errand).await.context("memory")?;
    let training = training::measure(&errand, options.rounds).await.context("training")?;
    Ok(json!({
        "bench": "run",
        "pairs": options.pairs,
        "rounds": options.rounds,
        "load_before": busy,
        "nothing": nothing,
        "memory": memory,
        "training": training,
        "goals": {
            "more_than_shell_ms": {"at_most": 150.0, "is": nothing["more_than_shell_ms"]},
            "first_line_ms": {"at_most": 300.0, "is": nothing["first_line_ms"]["median"]},
            "yard_rss_mb": {"at_most": 40.0, "is": memory["rss_mb"]},
            "training_wall_over_bare": {"at_most": 1.05, "is": training["wall_over_bare"]},
            "training_cpu_over_bare": {"at_most": 1.05, "is": training["cpu_over_bare"]},
        },
    }))
}
