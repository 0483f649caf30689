//! An environment that has to be made first: how far it is, in a pipe and on a terminal; nothing the second
//! time.

use std::sync::Arc;

use anyhow::{Result, ensure};

use super::desk::{Desk, job};
use super::terminal::Screen;
use crate::check::contains;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/making": in_a_pipe_and_silent_when_cached, a_bar_on_a_terminal]
}

/// Any Python of this machine; it needs no network.
const IMAGE: &str = "--image=plain=python:3";

fn file(desk: &Desk) -> Result<String> {
    let mut job = job("mnist", &[("Worker", 2, "exec python -c 'print(40 + 2)'", "Never")]);
    let pod = &mut job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"];
    pod["containers"][0]["image"] = "plain".into();
    desk.write("job.yaml", &[job])
}

async fn in_a_pipe_and_silent_when_cached(desk: &Desk) -> Result<()> {
    let file = file(desk)?;
    let cache = [("XDG_CACHE_HOME", desk.path("cache"))];
    let told = desk.run_with(&[IMAGE, &file], &cache).await?.with_code(0)?.stdout;
    let parts =
        ["* [0%] making an environment with ", "* [90%] checking the environment", "* [100%] "];
    contains("the making", &told, &parts)?;
    for part in parts {
        ensure!(told.matches(part).count() == 1, "{part:?} is told twice: {told}");
    }
    let places: Vec<Option<usize>> = parts.iter().map(|part| told.find(part)).collect();
    ensure!(places.is_sorted(), "in another order: {told}");
    contains("both replicas", &told, &["worker-0 | 42\n", "worker-1 | 42\n"])?;
    let told = desk.run_with(&[IMAGE, &file], &cache).await?.with_code(0)?.stdout;
    ensure!(!told.contains('%'), "something is made again: {told}");
    Ok(())
}

async fn a_bar_on_a_terminal(desk: &Desk) -> Result<()> {
    let file = file(desk)?;
    let cache = desk.path("cache").display().to_string();
    let words = [IMAGE, &file];
    let (code, shown) = Screen::open(desk, &words, &[("XDG_CACHE_HOME", &cache)])?.end().await?;
    ensure!(code == Some(0), "exit code {code:?}: {shown}");
    contains("the bar", &shown, &["▕", "▏ 90% checking", "worker-1 |"])?;
    ensure!(!shown.contains("* [90%]"), "steps are lines as well: {shown}");
    Ok(())
}
