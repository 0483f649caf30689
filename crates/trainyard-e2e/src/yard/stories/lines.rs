//! The command lines of the tutorials that people learnt TFJob from, as they stand there.

use anyhow::{Result, ensure};

use super::Story;
use crate::check::contains;
use crate::harness::cases;
use crate::yard::bed::Bed;

const MNIST: &str = include_str!("../../../seeds/mnist.yaml");
const EXAMPLE: &str = include_str!("../../../seeds/example-tfjob.yaml");
const AZURE: &str = include_str!("../../../seeds/module6-ex2-gpu.yaml");

pub(super) fn all() -> Vec<Story> {
    cases!["kubectl/lines":
        of_the_operator, "-n kubeflow logs `kubectl get pods --selector=name=tf-job-operator …`", "the operator's own log";
        of_a_tutorial, "apply -f, get tfjobs -o yaml, describe tfjobs, describe pods, logs, delete", "a tutorial's job, line by line";
        as_it_stands, "apply -f, -n kubeflow get tfjob mnist -o yaml, delete", "an old manifest, unchanged, by a mapping of its image and a mount of its code";
        of_a_share, "create -f (a share of files), get pvc", "a claim of a class elsewhere serves the job";
    ]
}

/// A tutorial's image, for which the yard has a program of this machine.
fn with_image(manifest: &str, script: &str) -> String {
    let mut lines = Vec::new();
    for line in manifest.lines() {
        let indent = line.len() - line.trim_start().len();
        let field = line.trim_start().trim_start_matches("- ");
        let dash = if line.trim_start().starts_with("- ") { "- " } else { "" };
        if field.starts_with("image:") {
            let pad = " ".repeat(indent);
            let inner = " ".repeat(indent + dash.len());
            lines.push(format!("{pad}{dash}image: test"));
            lines.push(format!("{inner}command: [sh, -c, {script:?}]"));
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n")
}

async fn of_the_operator(bed: &Bed, _: &str) -> Result<()> {
    // As printed, the inner command names no namespace; its author stood in `kubeflow`.
    let selector = "--selector=name=tf-job-operator";
    let path = "jsonpath={.items[0].metadata.name}";
    let name = bed.ok(&["-n", "kubeflow", "get", "pods", selector, "-o", path]).await?;
    ensure!(!name.is_empty(), "no pod has the label");
    let words = ["-n", "kubeflow", "logs", &name];
    bed.until(&words, "a word of the operator", |log| !log.is_empty()).await?;
    let table = bed.ok(&["-n", "kubeflow", "get", "pod", &name]).await?;
    contains("get pod", &table, &["1/1", "Running"])
}

async fn of_a_tutorial(bed: &Bed, ns: &str) -> Result<()> {
    let manifest = with_image(EXAMPLE, "echo Train accuracy; sleep 600");
    bed.feed(&["-n", ns, "apply", "-f", "-"], &manifest).await?;
    let job = "example-tfjob";
    bed.ok(&["-n", ns, "wait", "--for=condition=Running", "--timeout=55s", "tfjob", job]).await?;
    let yaml = bed.ok(&["-n", ns, "get", "tfjobs", "-o", "yaml", job]).await?;
    contains("get -o yaml", &yaml, &["status:", "TFJobRunning", "startTime:"])?;
    let told = bed.ok(&["-n", ns, "describe", "tfjobs", job]).await?;
    contains(
        "describe",
        &told,
        &["SuccessfulCreatePod", "tf-operator", "Created pod: example-tfjob-"],
    )?;
    // `describe` has no `-o`, on no cluster; what it says is kubectl's.
    let refused = bed.kubectl.run(&["-n", ns, "describe", "tfjobs", "-o", "yaml", job]).await?;
    contains("describe -o", &refused.stderr_of_failure()?, &["unknown shorthand flag"])?;
    let pod = bed.ok(&["-n", ns, "get", "pod", "-o", "jsonpath={.items[0].metadata.name}"]).await?;
    let told = bed.ok(&["-n", ns, "describe", "pods", &pod]).await?;
    contains("describe pods", &told, &["Scheduled", "Pulled", "Created", "Started"])?;
    let words = ["-n", ns, "logs", &pod];
    bed.until(&words, "its words", |log| log == "Train accuracy\n").await?;
    bed.ok(&["-n", ns, "delete", "tfjob", job]).await.map(drop)
}

async fn of_a_share(bed: &Bed, ns: &str) -> Result<()> {
    let claim = serde_json::json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "azurefile"},
        "spec": {
            "accessModes": ["ReadWriteMany"], "storageClassName": "azurefile",
            "resources": {"requests": {"storage": "5Gi"}},
        },
    });
    bed.feed(&["-n", ns, "create", "-f", "-"], &claim.to_string()).await?;
    let manifest = with_image(AZURE, "ls -d /tmp/tensorflow && echo done");
    bed.feed(&["-n", ns, "create", "-f", "-"], &manifest).await?;
    let words =
        ["-n", ns, "wait", "--for=condition=Succeeded", "--timeout=55s", "tfjob/module6-ex2-gpu"];
    bed.ok(&words).await?;
    let table = bed.ok(&["-n", ns, "get", "pvc"]).await?;
    contains("get pvc", &table, &["azurefile", "Bound", "5Gi", "RWX"])
}

/// The yard has a mapping for this image, and the code that would be in it.
async fn as_it_stands(bed: &Bed, _: &str) -> Result<()> {
    let claim = serde_json::json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "tfevent-volume", "namespace": "kubeflow"},
        "spec": {
            "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}},
        },
    });
    bed.feed(&["apply", "-f", "-"], &claim.to_string()).await?;
    bed.feed(&["apply", "-f", "-"], MNIST).await?;
    let succeeded = "--for=condition=Succeeded";
    bed.ok(&["-n", "kubeflow", "wait", succeeded, "--timeout=55s", "tfjob/mnist"]).await?;
    let yaml = bed.ok(&["-n", "kubeflow", "get", "tfjob", "mnist", "-o", "yaml"]).await?;
    contains("get -o yaml", &yaml, &["TFJobSucceeded", "completionTime:", "cleanPodPolicy: None"])?;
    let log = bed.ok(&["-n", "kubeflow", "logs", "mnist-worker-0"]).await?;
    contains("logs", &log, &["--log_dir=/train", "--learning_rate=0.01"])?;
    bed.ok(&["-n", "kubeflow", "delete", "tfjob", "mnist"]).await.map(drop)
}
