//! A single master with a GPU: its model is lost with it, or stays on a share.

use anyhow::{Result, ensure};

use super::super::{claim, file, number_after, succeeds};
use crate::check::contains;
use crate::yard::Bed;

pub(crate) async fn of_the_first(bed: &Bed) -> Result<()> {
    trains(bed, "seeds/000/module6-ex1-gpu.yaml", "module6-ex1-gpu").await
}

pub(crate) async fn alone(bed: &Bed) -> Result<()> {
    trains(bed, "seeds/004/example-tfjob.yaml", "example-tfjob").await
}

pub(crate) async fn of_the_second(bed: &Bed) -> Result<()> {
    trains(bed, "seeds/004/module6-ex1-gpu.yaml", "module6-ex1-gpu").await
}

/// Model and summaries are on the share, in the folder that the manifest names, after the job is gone.
pub(crate) async fn on_a_share(bed: &Bed) -> Result<()> {
    bed.ok(&["create", "-f", &file("seeds/004/azurefile.yaml")]).await?;
    trains(bed, "seeds/004/module6-ex2-gpu.yaml", "module6-ex2-gpu").await?;
    let table = bed.ok(&["get", "pvc"]).await?;
    contains("get pvc", &table, &["azurefile", "Bound", "5Gi"])?;
    let folder = claim(bed, "default", "azurefile")?.join("module6-ex2-gpu");
    ensure!(folder.join("model/checkpoint").exists(), "there is no model on the share");
    let logs = std::fs::read_dir(folder.join("logs"))?.count();
    ensure!(logs > 0, "there are no summaries on the share");
    Ok(())
}

async fn trains(bed: &Bed, manifest: &str, job: &str) -> Result<()> {
    bed.ok(&["create", "-f", &file(manifest)]).await?;
    succeeds(bed, "default", job).await?;
    let log = bed.ok(&["logs", &format!("{job}-master-0")]).await?;
    let accuracy = number_after(&log, "Final test accuracy = ")?;
    ensure!(accuracy > 85.0, "the accuracy is {accuracy}:\n{log}");
    bed.ok(&["delete", "tfjob", job]).await.map(drop)
}
