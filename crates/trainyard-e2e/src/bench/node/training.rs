//! Real TensorFlow training in a pod against the same program started by hand, in turns.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::process::Command;

use super::{
    Ground, NODE,
    sample::{Sample, round},
};
use crate::node::Stage;

const PROGRAM: &str = include_str!("training.py");
const IMAGE: &str = "tensorflow/tensorflow:2.21.0";
/// About ten seconds of one core.
const STEPS: &str = "300";
/// Two processes on few cores must not differ by how their threads were placed.
const ENVIRONMENT: [(&str, &str); 4] = [
    ("TF_NUM_INTRAOP_THREADS", "1"),
    ("TF_NUM_INTEROP_THREADS", "1"),
    ("TF_CPP_MIN_LOG_LEVEL", "3"),
    ("CUDA_VISIBLE_DEVICES", "-1"),
];

/// What the program says of itself.
#[derive(Debug, Deserialize)]
struct Said {
    wall_s: f64,
    cpu_s: f64,
    import_s: f64,
    import_cpu_s: f64,
    loss: f64,
    python: String,
}

#[derive(Default)]
struct Seconds {
    wall: Sample,
    cpu: Sample,
    import: Sample,
    import_cpu: Sample,
}

impl Seconds {
    fn add(&mut self, said: &Said) {
        self.wall.add(said.wall_s);
        self.cpu.add(said.cpu_s);
        self.import.add(said.import_s);
        self.import_cpu.add(said.import_cpu_s);
    }

    fn shown(&self) -> Value {
        json!({
            "wall_s": round(self.wall.median()),
            "cpu_s": round(self.cpu.median()),
            "import_s": round(self.import.median()),
            "import_cpu_s": round(self.import_cpu.median()),
        })
    }
}

pub(super) async fn measure(stage: &Stage, rounds: usize) -> Result<Value> {
    let ground = Ground::open(stage, "training").await?;
    // The first pod has its environment made, and brings its files into memory.
    let first = in_pod(&ground, "first", "1").await?;
    by_hand(&first.python, "1").await?;
    let (mut pods, mut bare) = <(Seconds, Seconds)>::default();
    for round in 0..rounds {
        let name = format!("round-{round}");
        // Whatever drifts on the machine falls on both alike.
        let (pod, hand) = if round % 2 == 0 {
            let pod = in_pod(&ground, &name, STEPS).await?;
            (pod, by_hand(&first.python, STEPS).await?)
        } else {
            let hand = by_hand(&first.python, STEPS).await?;
            (in_pod(&ground, &name, STEPS).await?, hand)
        };
        let same = (pod.loss - hand.loss).abs() < 1e-3 && pod.python == hand.python;
        ensure!(same, "these did not do the same: {pod:?}, {hand:?}");
        pods.add(&pod);
        bare.add(&hand);
    }
    let ratio = |of: fn(&Seconds) -> &Sample| round(of(&pods).median() / of(&bare).median());
    Ok(json!({
        "cpu_over_bare": ratio(|kind| &kind.cpu),
        "wall_over_bare": ratio(|kind| &kind.wall),
        "import_cpu_over_bare": ratio(|kind| &kind.import_cpu),
        "pod": pods.shown(),
        "bare": bare.shown(),
    }))
}

async fn in_pod(ground: &Ground, name: &str, steps: &str) -> Result<Said> {
    let environment: Vec<Value> =
        ENVIRONMENT.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    let container = json!({
        "name": "main", "image": IMAGE, "env": environment,
        "command": ["python", "-c", PROGRAM, steps],
    });
    ground.pod(name, &container, &json!({"nodeName": NODE})).await?;
    let ended = ground.phases.until(&[name.to_owned()], "Succeeded").await;
    let log = ground.log(name).await.unwrap_or_default();
    ended.with_context(|| format!("its log: {log}"))?;
    said(&log)
}

async fn by_hand(python: &str, steps: &str) -> Result<Said> {
    let output = Command::new(python)
        .args(["-c", PROGRAM, steps])
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

fn said(text: &str) -> Result<Said> {
    let line = text.lines().find(|line| line.starts_with('{'));
    let line = line.with_context(|| format!("the program said only {text:?}"))?;
    Ok(serde_json::from_str(line)?)
}
