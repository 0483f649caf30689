//! The first job that people run: from one file to a trained model, and the TensorBoard beside it.

use anyhow::{Result, ensure};

use super::{board, claim, file, number_after, succeeds};
use crate::check::contains;
use crate::yard::Bed;

pub(super) async fn play(bed: &Bed) -> Result<()> {
    let manifest = file("digits/tfjob.yaml");
    bed.ok(&["apply", "-f", &manifest]).await?;
    // The board's page waits for the summaries, as a person's does.
    let board = board::address(bed, "default", "digits-tensorboard-0").await?;
    bed.ok(&["wait", "--for=condition=Running", "--timeout=600s", "tfjob/digits"]).await?;
    let log = bed.ok(&["logs", "-f", "digits-chief-0"]).await?;
    let accuracy = number_after(&log, "final accuracy ")?;
    ensure!(accuracy > 0.9, "the accuracy is {accuracy}:\n{log}");
    succeeds(bed, "default", "digits").await?;
    let folder = claim(bed, "default", "digits-model")?;
    for part in ["model/saved_model.pb", "checkpoints/checkpoint", "summaries/train", "done"] {
        ensure!(folder.join(part).exists(), "there is no {part} on the claim");
    }
    // The job is over, its board is not.
    board::shows(&board, &["train", "evaluation"], &["loss", "accuracy"]).await?;
    let told = bed.ok(&["describe", "pod", "digits-tensorboard-0"]).await?;
    contains("describe", &told, &["Reachable", &board])?;
    is_told(bed, "digits-model").await?;
    bed.ok(&["delete", "-f", &manifest]).await?;
    bed.until(&["get", "pod,service", "-o", "name"], "an end of its pods", |left| {
        !left.contains("digits")
    })
    .await?;
    ensure!(board::is_closed(&board), "{board} still answers after the job is deleted");
    Ok(())
}

/// The same job in pieces, as the README of the project has it: a claim, a `ConfigMap` made of the
/// script, and the job.
pub(super) async fn in_pieces(bed: &Bed) -> Result<()> {
    bed.ok(&["create", "-f", &file("digits/claim.yaml")]).await?;
    let script = format!("--from-file={}", file("digits/parameter_server.py"));
    bed.ok(&["create", "configmap", "digits", &script]).await?;
    bed.ok(&["create", "-f", &file("digits/parameter-server.yaml")]).await?;
    bed.ok(&["wait", "--for=condition=Running", "--timeout=600s", "tfjob/digits"]).await?;
    let log = bed.ok(&["logs", "-f", "digits-chief-0"]).await?;
    contains("the chief's log", &log, &["epoch 0 step 60", "training is done"])?;
    let accuracy = number_after(&log, "accuracy ")?;
    ensure!(accuracy > 0.9, "the accuracy is {accuracy}:\n{log}");
    succeeds(bed, "default", "digits").await?;
    is_told(bed, "model").await?;
    ensure!(claim(bed, "default", "model")?.join("done").exists(), "there is no done on the claim");
    bed.ok(&["delete", "tfjob", "digits"]).await?;
    bed.until(&["get", "pod,service", "-o", "name"], "an end of its pods", |left| {
        !left.contains("digits")
    })
    .await?;
    bed.ok(&["delete", "configmap/digits", "pvc/model"]).await.map(drop)
}

/// What kubectl tells of the job, its chief and its claim.
async fn is_told(bed: &Bed, claim: &str) -> Result<()> {
    contains("get tfjob", &bed.ok(&["get", "tfjob"]).await?, &["digits", "Succeeded"])?;
    let told = bed.ok(&["describe", "tfjob", "digits"]).await?;
    let parts = ["TFJobSucceeded", "Created pod: digits-chief-0", "Created service: digits-ps-0"];
    contains("describe", &told, &parts)?;
    let table = bed.ok(&["get", "pod", "digits-chief-0"]).await?;
    contains("the chief", &table, &["Completed"])?;
    let volume = bed.ok(&["get", "pvc", claim, "-o", "jsonpath={.status.phase}"]).await?;
    ensure!(volume == "Bound", "the claim is {volume}");
    Ok(())
}
