//! Two workers in step: one is killed on the way, both come again and go on from the checkpoint.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::{PATIENCE, claim, file, number_after, succeeds};
use crate::yard::Bed;

const WORKERS: [&str; 2] = ["multiworker-worker-0", "multiworker-worker-1"];

pub(super) async fn play(bed: &Bed) -> Result<()> {
    let manifest = file("multiworker/tfjob.yaml");
    bed.ok(&["apply", "-f", &manifest]).await?;
    says(bed, WORKERS[0], "step 40").await?;
    // The container's init is the first process there.
    bed.ok(&["exec", WORKERS[1], "--", "sh", "-c", "kill -9 2"]).await?;
    for worker in WORKERS {
        says(bed, worker, "goes on from step").await?;
    }
    succeeds(bed, "default", "multiworker").await?;
    let log = bed.ok(&["logs", WORKERS[0]]).await?;
    let accuracy = number_after(&log, "accuracy ")?;
    ensure!(accuracy > 0.9, "the accuracy is {accuracy}:\n{log}");
    let checkpoint = claim(bed, "default", "multiworker-model")?.join("checkpoints/checkpoint");
    ensure!(checkpoint.exists(), "there is no checkpoint on the claim");
    bed.ok(&["delete", "-f", &manifest]).await.map(drop)
}

async fn says(bed: &Bed, pod: &str, words: &str) -> Result<()> {
    let started = Instant::now();
    loop {
        let log = bed.kubectl.run(&["logs", pod]).await?;
        if log.stdout.contains(words) {
            return Ok(());
        }
        ensure!(
            started.elapsed() < PATIENCE / 3,
            "{pod} never said {words:?}: {}{}",
            log.stdout,
            log.stderr
        );
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}
