//! The Python SDK that people submit jobs with, unchanged, against a yard: an environment with it is
//! made once, a Python file uses every method, and tells a line about each.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, ensure};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

use super::bed::Bed;
use crate::control_plane::cache_root;
use crate::suite::report::Report;

/// The last release that knows TFJob.
const SDK: &str = "kubeflow-training==1.9.4";
/// The client that it stands on.
const CLIENT: &str = "kubernetes==35.0.0";
const SCRIPT: &str = include_str!("sdk.py");
/// The SDK takes an image of its own unless told otherwise, which has no TensorFlow for today's
/// Pythons; people who use the SDK have no flags, so the mapping is in a file.
const CONFIG: &str = "[images]\n\"docker.io/tensorflow/tensorflow:2.9.1\" = \
    \"tensorflow/tensorflow:2.21.0\"\n\"test\" = \"python:3.11\"\n";
/// All methods together, two trainings among them.
const LONGEST: Duration = Duration::from_mins(12);

/// Runs the file and reports each of its lines.
pub(super) async fn run(binary: &Path, report: &Report) -> Result<()> {
    let python = provide().await.context("making the SDK's environment")?;
    let ground = tempfile::tempdir()?;
    let (config, script) = (ground.path().join("trainyard.toml"), ground.path().join("sdk.py"));
    std::fs::write(&config, CONFIG)?;
    std::fs::write(&script, SCRIPT)?;
    let config = format!("--config={}", config.display());
    let bed = Bed::start(binary, &["--nodes=1", &config]).await?;
    let played = play(&python, &script, &bed, report).await;
    report.tell("sdk/all_methods", &played, Duration::ZERO);
    bed.stop().await
}

async fn play(python: &Path, script: &Path, bed: &Bed, report: &Report) -> Result<()> {
    let mut child = Command::new(python)
        .arg(script)
        .env("KUBECONFIG", bed.kubectl.kubeconfig())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("its output")?).lines();
    let told = async {
        let mut last = Instant::now();
        while let Some(line) = lines.next_line().await? {
            match line.split_once(' ') {
                Some(("ok", name)) => report.tell(&format!("sdk/{name}"), &Ok(()), last.elapsed()),
                Some(("FAILED", rest)) => {
                    let (name, why) = rest.split_once(' ').unwrap_or((rest, ""));
                    let problem = Err(anyhow!("{why}"));
                    report.tell(&format!("sdk/{name}"), &problem, last.elapsed());
                }
                _ => continue,
            }
            last = Instant::now();
        }
        anyhow::Ok(child.wait().await?)
    };
    let status = tokio::time::timeout(LONGEST, told).await.context("the SDK takes too long")??;
    ensure!(status.success(), "the script ended with {status}; the yard says: {}", bed.log());
    Ok(())
}

/// An environment with the SDK, made once.
pub(crate) async fn provide() -> Result<PathBuf> {
    let name = format!("{SDK}-{CLIENT}").replace("==", "-");
    let home = cache_root()?.join("sdk").join(name);
    let python = home.join("bin/python");
    let complete = home.join("complete");
    if complete.is_file() {
        return Ok(python);
    }
    std::fs::create_dir_all(&home)?;
    succeeds(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home)).await?;
    succeeds(Command::new(&python).args(["-m", "pip", "install", "--quiet", SDK, CLIENT])).await?;
    std::fs::write(complete, "")?;
    Ok(python)
}

async fn succeeds(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().await?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}: {said}", output.status);
    Ok(())
}
