//! Signals: once to stop, twice to kill; and a yard that is kept.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use tokio::process::Command;

use super::desk::{Desk, job};
use crate::check::contains;
use crate::control_plane::{Binaries, Program};
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/stops": once, twice, while_it_starts, kept]
}

async fn once(desk: &Desk) -> Result<()> {
    let script = "trap 'echo told to end; exit 0' TERM; echo begins; sleep 100 & wait";
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 2, script, "Never")])])?;
    let mut running = desk.start(&[&file])?;
    running.until("worker-1 | begins").await?;
    running.until("worker-0 | begins").await?;
    running.signal(Signal::INT)?;
    let told = running.end().await?.with_code(130)?.stdout;
    let parts = [
        "stopping (SIGINT)",
        "worker-0 | told to end",
        "worker-1 | told to end",
        "mnist  interrupted after",
    ];
    contains("stopped", &told, &parts)
}

async fn twice(desk: &Desk) -> Result<()> {
    let script = "trap '' TERM; echo begins; while :; do sleep 1; done";
    let mut job = job("mnist", &[("Worker", 1, script, "Never")]);
    job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]["terminationGracePeriodSeconds"] =
        serde_json::json!(60);
    let file = desk.write("job.yaml", &[job])?;
    let mut running = desk.start(&[&file])?;
    running.until("worker-0 | begins").await?;
    running.signal(Signal::INT)?;
    running.until("again to kill").await?;
    running.signal(Signal::INT)?;
    let asked = Instant::now();
    running.end().await?.with_code(130)?;
    ensure!(asked.elapsed() < Duration::from_secs(20), "it took {:?}", asked.elapsed());
    Ok(())
}

async fn while_it_starts(desk: &Desk) -> Result<()> {
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, "sleep 100", "Never")])])?;
    let running = desk.start(&[&file])?;
    tokio::time::sleep(Duration::from_millis(150)).await;
    running.signal(Signal::TERM)?;
    let ended = running.end().await?;
    // The very first moments belong to nobody: there the signal ends it by itself.
    ensure!([Some(130), None].contains(&ended.code), "{ended:?}");
    Ok(())
}

async fn kept(desk: &Desk) -> Result<()> {
    let programs = Binaries::provide(&[Program::Kubectl]).await?;
    let file = desk.write("job.yaml", &[job("mnist", &[("Worker", 1, "echo ran", "Never")])])?;
    let mut running = desk.start(&["--keep", &file])?;
    running.until("the yard stays until Ctrl-C").await?;
    let kubeconfig = desk.path("data/trainyard/runs/mnist/kubeconfig");
    let output = Command::new(programs.path(Program::Kubectl))
        .args(["get", "tfjob,pod", "--kubeconfig"])
        .arg(&kubeconfig)
        .env("HOME", desk.path("home"))
        .output()
        .await
        .context("kubectl")?;
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    contains("kubectl", &table, &["mnist", "Succeeded", "mnist-worker-0", "Completed"])?;
    running.signal(Signal::INT)?;
    running.end().await?.with_code(0)?;
    ensure!(!kubeconfig.exists(), "the kubeconfig of a yard that is gone is left");
    Ok(())
}
