//! `cargo xtask cluster`: a cluster for people, which outlives the command that has started it, beside the tier's own.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;
use trainyard_testbed::cluster::Started;

use crate::check::{contains, equal};
use crate::harness::{Case, cases, within};
use crate::real_kubelet::leftovers::leftovers;
use crate::real_kubelet::site::Scene;

/// A whole cluster starts and ends beside others' work.
const LONGEST: Duration = Duration::from_mins(4);
/// The program that `cargo xtask test` is.
const VARIABLE: &str = "TRAINYARD_XTASK";
/// The cluster's name, which is not the tier's.
const NAME: &str = "passing";

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    within(LONGEST, cases!["developer": cluster_lasts_until_it_is_taken_down_and_leaves_nothing])
}

/// `cargo xtask cluster` with these words.
async fn cluster(words: &[&str]) -> Result<std::process::Output> {
    let own = std::env::var_os(VARIABLE);
    let mut command = Command::new(own.as_deref().unwrap_or("cargo".as_ref()));
    if own.is_none() {
        command.args(["run", "--quiet", "--package", "xtask", "--"]);
    }
    command.args(["cluster", "--name", NAME]).args(words).kill_on_drop(true);
    command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    command.output().await.context("running cargo xtask cluster")
}

/// The same; it must do, and what it says is given.
async fn says(words: &[&str]) -> Result<String> {
    let output = cluster(words).await?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`cluster {}`: {errors}", words.join(" "));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The tier's own cluster is not asked for anything.
async fn cluster_lasts_until_it_is_taken_down_and_leaves_nothing(_: &Scene) -> Result<()> {
    // One of a tier that was killed.
    says(&["down"]).await?;
    let played = comes_and_goes().await;
    if played.is_err() {
        says(&["down"]).await.context("and it cannot be taken down")?;
    }
    played
}

async fn comes_and_goes() -> Result<()> {
    let said = says(&["up", "--nodes", "1"]).await?;
    contains("up", &said, &["1 nodes ready after", "export KUBECONFIG="])?;
    let started = Started::find(NAME)?.context("there is no such cluster")?;
    let (folder, group) = (started.folder().to_owned(), format!("trainyard-{NAME}-node"));
    let there = leftovers(&folder, &group)?;
    ensure!(there.len() > 5, "a cluster that runs is more than {there:?}");
    contains("status", &says(&["status"]).await?, &["node0: runs, first process", "Ready"])?;
    let nodes = says(&["sh", "kubectl", "get", "nodes", "-o", "name"]).await?;
    equal("nodes", nodes.as_str(), "node/node0\n")?;
    let inside = says(&["sh", "--node", "0", "cat", "/proc/sys/kernel/hostname"]).await?;
    equal("a command inside", inside.as_str(), "node0\n")?;
    says(&["down"]).await?;
    let left = leftovers(&folder, &group)?;
    ensure!(left.is_empty(), "the cluster left behind: {}", left.join(", "));
    let none = cluster(&["status"]).await?;
    ensure!(!none.status.success(), "there is one still");
    contains("status", &String::from_utf8_lossy(&none.stderr), &["no cluster `passing` runs"])
}
