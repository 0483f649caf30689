//! Real TensorFlow through `trainyard run`: the example with a chief, a parameter server, two workers
//! and an evaluator, from one command to a trained model; and a second run that goes on from it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::desk::Desk;
use crate::check::contains;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/training": digits]
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/digits").join(name)
}

async fn digits(desk: &Desk) -> Result<()> {
    // The script as the ConfigMap that the example names.
    let script = std::fs::read_to_string(example("parameter_server.py"))?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "digits"},
        "data": {"parameter_server.py": script}});
    let map = desk.write("code.yaml", &[map])?;
    let (claim, job) = (example("claim.yaml"), example("parameter-server.yaml"));
    let words = [map, claim.display().to_string(), job.display().to_string()];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let told = desk.run(&words).await?.with_code(0)?.stdout;
    let parts = [
        "digits  TFJob · 1 chief · 1 ps · 2 workers · 1 evaluator",
        "chief-0     | epoch 0",
        "ps-0        | ps 0 serves",
        "digits  succeeded in ",
        "peak ",
    ];
    contains("a training", &told, &parts)?;
    ensure!(!told.contains("oneDNN"), "TensorFlow's own messages are shown: {told}");
    let done = desk.path("data/trainyard/runs/digits/claims/default/model/done");
    let done: Value = serde_json::from_str(&std::fs::read_to_string(done)?)?;
    let accuracy = done["accuracy"].as_f64().context("the accuracy")?;
    ensure!(accuracy > 0.9, "accuracy {accuracy}");
    Ok(())
}
