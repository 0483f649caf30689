//! One worker with summaries, GPUs there and not there, a Secret, and the table of exit codes.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};

use super::super::{claim, ends, file, number_after, succeeds};
use crate::check::{contains, equal};
use crate::harness::{Case, cases};
use crate::yard::Bed;

pub(crate) fn all() -> Vec<Case<Arc<Bed>>> {
    cases!["seeds/003": restart_policies, secret, generated_name, mnist, with_a_gpu]
}

async fn mnist(bed: &Bed) -> Result<()> {
    let (volume, job) = (file("seeds/003/tfevent-volume.yaml"), file("seeds/003/mnist.yaml"));
    bed.ok(&["apply", "-f", &volume, "-f", &job]).await?;
    succeeds(bed, "kubeflow", "mnist").await?;
    let log = bed.ok(&["-n", "kubeflow", "logs", "mnist-worker-0"]).await?;
    let accuracy = number_after(&log, "Final accuracy: ")?;
    ensure!(accuracy > 0.9, "the accuracy is {accuracy}:\n{log}");
    let folder = claim(bed, "kubeflow", "tfevent-volume")?;
    for part in ["train", "test"] {
        let summaries = std::fs::read_dir(folder.join(part))?.count();
        ensure!(summaries > 0, "there are no summaries in {part}");
    }
    bed.ok(&["-n", "kubeflow", "delete", "tfjob", "mnist"]).await.map(drop)
}

async fn with_a_gpu(bed: &Bed) -> Result<()> {
    bed.ok(&["apply", "-f", &file("seeds/003/tf-smoke-gpu.yaml")]).await?;
    succeeds(bed, "default", "tf-smoke-gpu").await?;
    let log = bed.ok(&["logs", "tf-smoke-gpu-worker-0"]).await?;
    contains("the worker's log", &log, &["Device: gpu asked", "total images/sec"])?;
    bed.ok(&["delete", "tfjob", "tf-smoke-gpu"]).await.map(drop)
}

/// Without the resource nothing of the job starts, and the reason is told.
pub(crate) async fn without_a_gpu(bed: &Bed) -> Result<()> {
    bed.ok(&["apply", "-f", &file("seeds/003/tf-smoke-gpu.yaml")]).await?;
    let words = ["describe", "tfjob", "tf-smoke-gpu"];
    let short = "nvidia.com/gpu: 1 asked for, 0 free: 1 too little";
    let told = |text: &str| text.contains("PodGroupPending") && text.contains(short);
    bed.until(&words, "the reason", told).await?;
    for pod in ["tf-smoke-gpu-ps-0", "tf-smoke-gpu-worker-0"] {
        let told = |text: &str| text.contains("FailedScheduling") && text.contains(short);
        bed.until(&["describe", "pod", pod], "the pod's reason", told).await?;
    }
    bed.ok(&["delete", "tfjob", "tf-smoke-gpu"]).await.map(drop)
}

async fn secret(bed: &Bed) -> Result<()> {
    bed.ok(&["apply", "-f", &file("seeds/003/user-gcp-sa.yaml")]).await?;
    let log = generated(bed, "seeds/003/secret.yaml").await?;
    contains("the worker's log", &log, &["credentials of project your-project"])
}

async fn generated_name(bed: &Bed) -> Result<()> {
    generated(bed, "seeds/003/generated-name.yaml").await.map(drop)
}

/// Creates a job whose name is made up, waits for it, and gives the log of its first worker.
async fn generated(bed: &Bed, manifest: &str) -> Result<String> {
    let said = bed.ok(&["create", "-f", &file(manifest), "-o", "name"]).await?;
    let job = said.trim().rsplit('/').next().context("a name")?.to_owned();
    ensure!(job.starts_with("tfjob") && job.len() > "tfjob".len(), "the name is {job}");
    succeeds(bed, "kubeflow", &job).await?;
    let log = bed.ok(&["-n", "kubeflow", "logs", &format!("{job}-worker-0")]).await?;
    contains("the worker's log", &log, &["step 1000", "training is done"])?;
    bed.ok(&["-n", "kubeflow", "delete", "tfjob", &job]).await?;
    Ok(log)
}

/// The table of the README beside the manifest: how each job ends, and after how many restarts.
async fn restart_policies(bed: &Bed) -> Result<()> {
    let manifest = file("seeds/003/restart-policies.yaml");
    bed.ok(&["apply", "-f", &manifest]).await?;
    for job in ["exit-0", "on-failure-0"] {
        equal(job, ends(bed, "default", job).await?, "Succeeded".to_owned())?;
    }
    for job in ["exit-1", "exit-2", "exit-126", "exit-127", "exit-128", "exit-139", "never-1"] {
        equal(job, ends(bed, "default", job).await?, "Failed".to_owned())?;
        ensure!(!was_restarted(bed, job).await?, "{job} was restarted");
    }
    for job in ["exit-130", "exit-137", "exit-138", "exit-143", "on-failure-1", "always-0"] {
        equal(job, ends(bed, "default", job).await?, "Failed".to_owned())?;
        ensure!(was_restarted(bed, job).await?, "{job} was not restarted");
    }
    bed.ok(&["delete", "-f", &manifest]).await.map(drop)
}

/// Whether anything of a job was restarted, in place or by another in its stead.
async fn was_restarted(bed: &Bed, job: &str) -> Result<bool> {
    let count = bed.ok(&["get", "tfjob", job, "-o=jsonpath={.status.restarts}"]).await?;
    Ok(count.parse::<u32>().is_ok_and(|count| count > 0))
}
