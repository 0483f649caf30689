//! Real TensorFlow through `trainyard up`, as the README tells it: the example with a chief, a
//! parameter server, two workers and an evaluator, from `kubectl create` to `kubectl delete`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};

use super::bed::Bed;
use crate::check::contains;

/// Five replicas import TensorFlow on two cores; once, an environment is made.
const PATIENCE: Duration = Duration::from_mins(12);
/// Both that and the training itself.
pub(super) const LONGEST: Duration = Duration::from_mins(20);

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/digits").join(name)
}

/// Trains, looks, and deletes.
pub(super) async fn run(binary: &Path) -> Result<()> {
    let mut bed = Bed::start(binary, &["--nodes=1"]).await?;
    bed.kubectl = bed.kubectl.clone().with_patience(PATIENCE);
    let trained = train(&bed).await;
    let stopped = bed.stop().await;
    trained.and(stopped)
}

async fn train(bed: &Bed) -> Result<()> {
    let claim = example("claim.yaml").display().to_string();
    bed.ok(&["create", "-f", &claim]).await?;
    let script = format!("--from-file={}", example("parameter_server.py").display());
    bed.ok(&["create", "configmap", "digits", &script]).await?;
    let manifest = example("parameter-server.yaml").display().to_string();
    bed.ok(&["create", "-f", &manifest]).await?;
    bed.ok(&["wait", "--for=condition=Running", "--timeout=600s", "tfjob/digits"]).await?;
    let followed = bed.ok(&["logs", "-f", "digits-chief-0"]).await?;
    contains("the chief's log", &followed, &["epoch 0", "accuracy"])?;
    bed.ok(&["wait", "--for=condition=Succeeded", "--timeout=300s", "tfjob/digits"]).await?;
    let table = bed.ok(&["get", "tfjob"]).await?;
    contains("get tfjob", &table, &["digits", "Succeeded"])?;
    let told = bed.ok(&["describe", "tfjob", "digits"]).await?;
    let parts = ["TFJobSucceeded", "Created pod: digits-chief-0", "Created service: digits-ps-0"];
    contains("describe", &told, &parts)?;
    let table = bed.ok(&["get", "pod", "digits-chief-0"]).await?;
    contains("the chief", &table, &["Completed"])?;
    let volume = bed.ok(&["get", "pvc", "model", "-o", "jsonpath={.status.phase}"]).await?;
    ensure!(volume == "Bound", "the claim is {volume}");
    bed.ok(&["delete", "tfjob", "digits"]).await?;
    bed.until(&["get", "pod,service", "-o", "name"], "an end of its pods", |left| {
        !left.contains("digits")
    })
    .await
    .map(drop)
}
