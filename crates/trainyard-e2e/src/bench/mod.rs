//! The operator under load on a real control plane, and the floor that the same writes cost a bare
//! client in the same run.
//!
//! Works with any TFJob operator that can be started by a command line. Must not know what the
//! operator under test does inside.

pub mod apiserver;
mod audit;
mod crowd;
mod floor;
mod load;
pub mod node;
pub(crate) mod process;
mod processes;
pub mod run;
mod sample;
pub mod scheduler;
mod trained;

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::{
    control_plane::{ControlPlane, Identity, Options as PlaneOptions},
    suite,
};
use crowd::Crowd;
use process::Watched;

/// Replicas of each job: one parameter server and four workers.
pub(super) const REPLICAS: usize = 5;
/// Namespace of the load.
pub(super) const NAMESPACE: &str = "bench";
/// Requests that the load and the kubelets keep under way.
pub(super) const WIDTH: usize = 32;
/// No phase takes longer than this.
const PATIENCE: Duration = Duration::from_mins(20);

/// What to measure.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// How many jobs.
    pub jobs: usize,
    /// The operator to put under load.
    pub command: OperatorCommand,
}

/// An operator that can be started.
#[derive(Debug, Clone)]
pub enum OperatorCommand {
    /// Our own binary.
    Ours(std::path::PathBuf),
    /// Any other, as a line for `sh -c` with `KUBECONFIG` set.
    Other(String),
}

/// Runs the benchmark; the result is one JSON object.
pub async fn operator(options: BenchOptions) -> Result<Value> {
    ensure!(options.jobs > 0, "--jobs must be at least 1");
    let floor_before = floor::run(&plane().await?, options.jobs).await?;
    let measured = under_load(&plane().await?, &options).await?;
    let floor_after = floor::run(&plane().await?, options.jobs).await?;
    let floor = f64::midpoint(floor_before.as_secs_f64(), floor_after.as_secs_f64());
    let running = measured["running_s"].as_f64().unwrap_or(f64::NAN);
    let mut result = json!({
        "bench": "operator",
        "operator": match &options.command {
            OperatorCommand::Ours(_) => "trainyard operator",
            OperatorCommand::Other(line) => line,
        },
        "jobs": options.jobs,
        "replicas": REPLICAS,
        "floor_s": round(floor),
        "floor_runs_s": [round(floor_before.as_secs_f64()), round(floor_after.as_secs_f64())],
        "running_over_floor": round(running / floor),
    });
    if let (Some(result), Value::Object(measured)) = (result.as_object_mut(), measured) {
        result.extend(measured);
    }
    Ok(result)
}

/// A control plane of its own for each part, so that none finds what another left.
async fn plane() -> Result<ControlPlane> {
    let options =
        PlaneOptions { controller_manager: false, audit: true, ..PlaneOptions::default() };
    let mut plane = ControlPlane::start(options).await?;
    suite::install::install(&mut plane).await?;
    Ok(plane)
}

async fn under_load(plane: &ControlPlane, options: &BenchOptions) -> Result<Value> {
    let namespace = NAMESPACE;
    let client = plane.client(Identity::Admin)?;
    load::make_namespace(&client, namespace).await?;
    let command = match &options.command {
        OperatorCommand::Ours(binary) => process::ours(binary, "operator"),
        OperatorCommand::Other(line) => process::other(line),
    };
    let mut operator = Watched::start(plane, "operator", Identity::Operator, command)?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    operator.check()?;
    let idle = operator.usage()?;
    let mut crowd = Crowd::start(plane.client(Identity::Kubelet)?, namespace, true);
    let begin = Instant::now();
    load::submit(&client, namespace, options.jobs).await?;
    let pods = options.jobs * REPLICAS;
    let exist = crowd.until(PATIENCE, |seen| seen.pods >= pods).await.context("all pods exist")?;
    let exist = exist.duration_since(begin);
    let running =
        load::until_condition(&client, namespace, "Running", options.jobs, PATIENCE).await?;
    let running = running.duration_since(begin);
    operator.check()?;
    let at_running = operator.usage()?;
    let finish = Instant::now();
    crowd.complete_workers().await?;
    let done =
        load::until_condition(&client, namespace, "Succeeded", options.jobs, PATIENCE).await?;
    // Events are written behind the jobs; they belong to the count.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let at_end = operator.usage()?;
    operator.stop().await?;
    let writes = audit::writes(plane, Identity::Operator, Some(namespace))?;
    let jobs = f64::from(u32::try_from(options.jobs).unwrap_or(u32::MAX));
    Ok(json!({
        "pods_exist_s": round(exist.as_secs_f64()),
        "running_s": round(running.as_secs_f64()),
        "succeeded_s": round(done.duration_since(finish).as_secs_f64()),
        "cpu_ms_per_job_to_running": round((at_running.cpu_ms - idle.cpu_ms) / jobs),
        "cpu_ms_per_job": round((at_end.cpu_ms - idle.cpu_ms) / jobs),
        "rss_mb_idle": round(idle.rss_mb),
        "rss_mb_running": round(at_running.rss_mb),
        "rss_mb_peak": round(at_end.peak_mb),
        "writes_per_job": audit::per(writes, options.jobs),
    }))
}

fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}
