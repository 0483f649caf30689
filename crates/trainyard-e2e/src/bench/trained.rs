//! A fixed amount of real TensorFlow training, started by hand, and what it says it took.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use super::sample::{Sample, round};

pub(super) const PROGRAM: &str = include_str!("trained.py");
pub(super) const IMAGE: &str = "tensorflow/tensorflow:2.21.0";
/// About ten seconds of one core.
pub(super) const STEPS: &str = "300";
/// Two processes on few cores must not differ by how their threads were placed.
pub(super) const ENVIRONMENT: [(&str, &str); 4] = [
    ("TF_NUM_INTRAOP_THREADS", "1"),
    ("TF_NUM_INTEROP_THREADS", "1"),
    ("TF_CPP_MIN_LOG_LEVEL", "3"),
    ("CUDA_VISIBLE_DEVICES", "-1"),
];

/// The same variables as a container has them.
pub(super) fn environment() -> Vec<Value> {
    ENVIRONMENT.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// What the program says of itself.
#[derive(Debug, Deserialize)]
pub(super) struct Said {
    pub(super) wall_s: f64,
    pub(super) cpu_s: f64,
    pub(super) import_s: f64,
    pub(super) import_cpu_s: f64,
    pub(super) loss: f64,
    pub(super) python: String,
}

#[derive(Default)]
pub(super) struct Seconds {
    pub(super) wall: Sample,
    pub(super) cpu: Sample,
    pub(super) import: Sample,
    pub(super) import_cpu: Sample,
}

impl Seconds {
    pub(super) fn add(&mut self, said: &Said) {
        self.wall.add(said.wall_s);
        self.cpu.add(said.cpu_s);
        self.import.add(said.import_s);
        self.import_cpu.add(said.import_cpu_s);
    }

    pub(super) fn shown(&self) -> Value {
        json!({
            "wall_s": round(self.wall.median()),
            "cpu_s": round(self.cpu.median()),
            "import_s": round(self.import.median()),
            "import_cpu_s": round(self.import_cpu.median()),
        })
    }
}

pub(super) async fn by_hand(python: &str, steps: &str) -> Result<Said> {
    // A session of its own, as a pod has: the kernel may share a busy machine by sessions.
    let output = Command::new("setsid")
        .args(["--wait", python, "-c", PROGRAM, steps])
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/tmp")
        .envs(ENVIRONMENT)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("running {python}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "by hand it ended with {}: {errors}", output.status);
    said(&String::from_utf8_lossy(&output.stdout))
}

pub(super) fn said(text: &str) -> Result<Said> {
    let line = text.lines().find(|line| line.starts_with('{'));
    let line = line.with_context(|| format!("the program said only {text:?}"))?;
    Ok(serde_json::from_str(line)?)
}

/// Fails where two did not do the same.
pub(super) fn alike(one: &Said, other: &Said) -> Result<()> {
    let same = (one.loss - other.loss).abs() < 1e-3 && one.python == other.python;
    ensure!(same, "these did not do the same: {one:?}, {other:?}");
    Ok(())
}
