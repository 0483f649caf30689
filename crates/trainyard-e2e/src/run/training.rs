//! Real TensorFlow through `trainyard run`: the example with a chief, a parameter server, two workers
//! and an evaluator, from one command to a trained model.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};

use super::desk::Desk;
use crate::check::contains;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Desk>>> {
    cases!["run/training": digits]
}

/// README.md's first command.
async fn digits(desk: &Desk) -> Result<()> {
    let job = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/digits/tfjob.yaml");
    let told = desk.run(&[&job.display().to_string()]).await?.with_code(0)?.stdout;
    let parts = [
        "digits  TFJob · 1 chief · 1 ps · 2 workers · 1 evaluator · TensorBoard",
        "* tensorboard-0 is at http://127.0.0.1:",
        "chief-0       | epoch 0",
        "ps-0          | ps 0 serves",
        "digits  succeeded in ",
        "peak ",
    ];
    contains("a training", &told, &parts)?;
    ensure!(!told.contains("oneDNN"), "TensorFlow's own messages are shown: {told}");
    let done = desk.path("data/trainyard/runs/digits/claims/default/digits-model/done");
    let done = std::fs::read_to_string(&done).with_context(|| done.display().to_string())?;
    let accuracy: f64 = done.trim().parse().with_context(|| format!("the accuracy {done:?}"))?;
    ensure!(accuracy > 0.9, "accuracy {accuracy}");
    Ok(())
}
