//! One `trainyard run` after the other, in a folder of their own.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};

/// Where runs are sent off.
pub(super) struct Errand {
    binary: PathBuf,
    dir: TempDir,
}

/// What a run gave.
pub(super) struct Done {
    /// From its start to its first line.
    pub(super) first_line: Duration,
    /// From its start to its end.
    pub(super) whole: Duration,
    pub(super) stdout: String,
}

/// A job of so many replicas of each type, all of which run this container.
pub(super) fn job(name: &str, roles: &[(&str, u32)], container: &Value) -> Value {
    let replicas: Value = roles
        .iter()
        .map(|(role, count)| {
            let spec = json!({
                "replicas": count, "restartPolicy": "Never",
                "template": {"spec": {"containers": [container]}},
            });
            ((*role).to_owned(), spec)
        })
        .collect();
    json!({"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": replicas}})
}

impl Errand {
    pub(super) fn new(binary: &Path) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("trainyard-bench-").tempdir()?;
        Ok(Self { binary: binary.to_owned(), dir })
    }

    /// Writes a job down, for many runs.
    pub(super) fn write(&self, name: &str, job: &Value) -> Result<PathBuf> {
        let path = self.dir.path().join(name);
        std::fs::write(&path, job.to_string())?;
        Ok(path)
    }

    /// Starts a run.
    pub(super) fn start(&self, job: &Path, words: &[&str]) -> Result<Child> {
        let mut command = Command::new(&self.binary);
        command.args(["run", "--image=test=host"]).args(words).arg(job);
        command.current_dir(self.dir.path()).env("XDG_DATA_HOME", self.dir.path().join("data"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true).spawn().context("starting `trainyard run`")
    }

    /// A run to its end, which must be a good one.
    pub(super) async fn run(&self, job: &Path, words: &[&str]) -> Result<Done> {
        let begin = Instant::now();
        let mut child = self.start(job, words)?;
        let mut stdout = child.stdout.take().context("no pipe to the run")?;
        let mut text = Vec::new();
        stdout.read_buf(&mut text).await?;
        let first_line = begin.elapsed();
        stdout.read_to_end(&mut text).await?;
        let output = child.wait_with_output().await?;
        let whole = begin.elapsed();
        let stdout = String::from_utf8_lossy(&text).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "it ended with {}: {stdout}{errors}", output.status);
        Ok(Done { first_line, whole, stdout })
    }
}
