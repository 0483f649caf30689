//! A real browser without a window: what a page looks like once its scripts have run.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tokio::process::Command;

const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
const LONGEST: Duration = Duration::from_mins(2);

/// The page's elements after its scripts have run; none where there is no browser.
pub(super) async fn page(url: &str) -> Result<Option<String>> {
    let Some(program) = find() else { return Ok(None) };
    let home = tempfile::tempdir()?;
    let mut command = Command::new(&program);
    command
        .args(["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-extensions", "--mute-audio"])
        .args(["--window-size=1400,1800", "--virtual-time-budget=30000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", home.path().display()));
    if rustix::process::geteuid().is_root() {
        // Its own sandbox refuses root; the page is this machine's.
        command.arg("--no-sandbox");
    }
    command.arg(url).env("HOME", home.path()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(LONGEST, command.output()).await;
    let output = output.context("the browser does not end")??;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} ended with {}: {said}", program.display(), output.status);
    Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut files = NAMES.iter().flat_map(|name| folders.iter().map(move |f| f.join(name)));
    files.find(|file| file.is_file())
}
