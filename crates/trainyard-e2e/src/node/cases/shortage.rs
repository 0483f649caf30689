//! A machine that cannot give a pod what it needs just now: the pod says what and where, the node goes
//! on, and the pod runs when it can be had.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use rustix::process::geteuid;
use serde_json::{Value, json};

use super::machine::{descendants, groups, with_variable};
use super::objects::{hindered, said};
use crate::check::contains;
use crate::harness::{Case, cases, within};
use crate::node::{Agent, AgentOptions, Pods, Stage, Who};

pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    within(
        Duration::from_mins(2),
        cases!["shortage":
            processes,
            processes_of_a_user,
            control_groups,
        ],
    )
}

fn options(who: Who) -> AgentOptions {
    AgentOptions { nodes: vec!["spruce".to_owned()], who, ..AgentOptions::default() }
}

fn here() -> Value {
    json!({"nodeName": "spruce", "automountServiceAccountToken": false})
}

/// What becomes of a pod when its program cannot be forked, and when it can again.
async fn starved(pods: &Pods<'_>, end: impl FnOnce() -> Result<()>) -> Result<()> {
    pods.shell("starved", "echo it runs", here()).await?;
    let words = hindered(pods, "starved", "main", "CreateContainerError").await?;
    contains("message", &words, &["starting container", "resource temporarily unavailable"])?;
    pods.until_event("starved", "Failed: Error: starting container").await?;
    end()?;
    ensure!(said(pods, "starved").await? == "it runs\n");
    Ok(())
}

/// A control group for processes that this test limits, gone with it.
struct Narrow {
    folder: PathBuf,
    above: PathBuf,
}

impl Narrow {
    /// Takes processes in and lets them have no more children.
    fn with(processes: &[u32]) -> Result<Option<Self>> {
        let above = PathBuf::from("/sys/fs/cgroup/pids");
        if !above.join("cgroup.procs").exists() {
            return Ok(None);
        }
        let folder = above.join(format!("trainyard-narrow-{}", std::process::id()));
        fs::create_dir(&folder)?;
        let narrow = Self { folder, above };
        for process in processes {
            fs::write(narrow.folder.join("cgroup.procs"), process.to_string())?;
        }
        fs::write(narrow.folder.join("pids.max"), "1")?;
        Ok(Some(narrow))
    }

    fn widen(&self) -> Result<()> {
        Ok(fs::write(self.folder.join("pids.max"), "max")?)
    }
}

impl Drop for Narrow {
    fn drop(&mut self) {
        // What has ended meanwhile needs no other place.
        let inside = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        for process in inside.lines() {
            let _ = fs::write(self.above.join("cgroup.procs"), process);
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

async fn processes(stage: &Stage) -> Result<()> {
    if !geteuid().is_root() {
        // Only root can limit others so.
        return Ok(());
    }
    let agent = Agent::start(stage, options(Who::Me)).await?;
    let pods = Pods::open(stage, "starved").await?;
    let holder: Vec<u32> = descendants(agent.pid).iter().map(|process| process.pid).collect();
    if let Some(narrow) = Narrow::with(&holder)? {
        starved(&pods, || narrow.widen()).await?;
    }
    agent.check()?;
    agent.stop().await
}

/// Whoever is not root has a number of processes.
async fn processes_of_a_user(stage: &Stage) -> Result<()> {
    let who = if geteuid().is_root() { Who::User } else { Who::Me };
    let agent = Agent::start(stage, options(who)).await?;
    let pods = Pods::open(stage, "limited").await?;
    // Whoever runs it may limit it, and give back what was taken below what it never had.
    let allow = |most: &str| -> Result<()> {
        for process in descendants(agent.pid) {
            let mut command = who.command(Path::new("prlimit"));
            let process = format!("--pid={}", process.pid);
            let status =
                command.as_std_mut().arg(process).arg(format!("--nproc={most}:")).status()?;
            ensure!(status.success(), "prlimit ended with {status}");
        }
        Ok(())
    };
    allow("1")?;
    starved(&pods, || allow("4096")).await?;
    agent.check()?;
    agent.stop().await
}

/// Somebody has removed the groups under which those of pods are made.
async fn control_groups(stage: &Stage) -> Result<()> {
    let agent = Agent::start(stage, options(Who::Me)).await?;
    let pods = Pods::open(stage, "groups").await?;
    let mark = format!("{}-marked", pods.namespace);
    let mut more = here();
    more["containers"] = json!([{"env": [{"name": "MARK", "value": mark}]}]);
    pods.shell("first", "exec sleep 600", more).await?;
    pods.until_phase("first", "Running").await?;
    let marked = with_variable(&format!("MARK={mark}"));
    let found = groups(*marked.first().context("its process is not found")?);
    pods.delete("first", Some(0)).await?;
    pods.until_gone("first").await?;
    // Where limits cannot be enforced there are none.
    if let Some(group) = found.first() {
        removed(group).await?;
        pods.shell("second", "echo it runs", here()).await?;
        let event = pods.until_event("second", "FailedCreatePodSandBox: ").await?;
        let place = group.display().to_string();
        contains("event", &event, &["making the pod's cgroup", &place, "no such file"])?;
        fs::create_dir(group)?;
        ensure!(said(&pods, "second").await? == "it runs\n");
    }
    agent.check()?;
    agent.stop().await
}

/// The kernel lets go of a group a moment after the last of it has ended.
async fn removed(group: &Path) -> Result<()> {
    for _ in 0..100 {
        if fs::remove_dir(group).is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    fs::remove_dir(group).with_context(|| format!("removing {}", group.display()))
}
