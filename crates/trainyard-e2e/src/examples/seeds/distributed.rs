//! One master, two workers, one parameter server and a TensorBoard, programmed as for TensorFlow 1.

use anyhow::{Result, ensure};

use super::super::{board, claim, file, number_after, succeeds};
use crate::check::{contains, equal};
use crate::yard::Bed;

pub(crate) async fn play(bed: &Bed) -> Result<()> {
    let manifest = file("seeds/000/distributed-mnist.yaml");
    bed.ok(&["create", "-f", &manifest]).await?;
    let board = board::address(bed, "default", "distributed-mnist-tensorboard-0").await?;
    let pods = bed.ok(&["get", "pods", "-o", "name"]).await?;
    let names = ["master-0", "ps-0", "tensorboard-0", "worker-0", "worker-1"];
    equal("pods", pods.lines().count(), names.len())?;
    let names = names.map(|name| format!("distributed-mnist-{name}"));
    contains("get pods", &pods, &names.each_ref().map(String::as_str))?;
    succeeds(bed, "default", "distributed-mnist").await?;
    let log = bed.ok(&["logs", "distributed-mnist-master-0"]).await?;
    contains("the master's log", &log, &["master 0 is here", "Cross entropy"])?;
    let accuracy = number_after(&log, "Final test accuracy = ")?;
    ensure!(accuracy > 85.0, "the accuracy is {accuracy}:\n{log}");
    let folder = claim(bed, "default", "distributed-mnist")?;
    ensure!(folder.join("model/checkpoint").exists(), "there is no model on the claim");
    board::shows(&board, &["."], &["cross_entropy", "accuracy"]).await?;
    bed.ok(&["delete", "-f", &manifest]).await.map(drop)
}
