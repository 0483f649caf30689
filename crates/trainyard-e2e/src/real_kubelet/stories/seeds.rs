//! The manifests of the tutorials, as printed, on a real cluster. Something small stands in for what was in their
//! images, under the images' names.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check::{contains, equal};
use crate::harness::{Case, cases, within};
use crate::real_kubelet::devices::offer;
use crate::real_kubelet::site::{NODES, Scene};
use crate::real_kubelet::stand_in;

/// Some wait for a grace period.
const LONGEST: Duration = Duration::from_mins(4);

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    let all = cases!["seeds":
        seed_000_names_the_image_that_is_to_be_filled_in_and_then_runs,
        seed_002_runs_one_job_on_each_machine,
        seed_003_mnist_keeps_its_events_on_the_claim,
        seed_003_generated_names_and_a_secret,
        seed_003_benchmark_runs_on_a_gpu,
        seed_004_keeps_the_model_on_the_share,
    ];
    within(LONGEST, all)
}

/// A shell that is process 1 takes its whole grace period to stop.
pub(super) fn slow() -> Vec<Case<Arc<Scene>>> {
    within(LONGEST, cases!["seeds": seed_001_restarts_as_a_whole_and_completes])
}

const FIRST: &str = include_str!("../../../seeds/module6-ex1-gpu.yaml");
const FIRST_AGAIN: &str = include_str!("../../../seeds/module6-ex1-gpu-4.yaml");
const VOLCANO: &str = include_str!("../../../seeds/tftest.yaml");
const TEMPLATE: &str = include_str!("../../../../trainyard-render/tests/data/mnist.yaml");
const MNIST: &str = include_str!("../../../seeds/mnist.yaml");
const GENERATED: &str = include_str!("../../../seeds/generated-name.yaml");
const SECRET: &str = include_str!("../../../seeds/secret.yaml");
const SMOKE: &str = include_str!("../../../seeds/tf-smoke-gpu.yaml");
const EXAMPLE: &str = include_str!("../../../seeds/example-tfjob.yaml");
const SHARE: &str = include_str!("../../../seeds/module6-ex2-gpu.yaml");

/// Gives both nodes GPUs, as a device plugin would.
async fn gpus(scene: &Scene) -> Result<()> {
    let offer = |node| offer(scene, node, "nvidia.com/gpu", 4);
    futures::future::try_join_all(NODES.map(offer)).await.map(drop)
}

/// A folder as a volume that is bound to a claim of that name.
async fn claim(
    scene: &Scene,
    namespace: &str,
    name: &str,
    more: Value,
) -> Result<std::path::PathBuf> {
    let volume = format!("{}-{name}", scene.namespace);
    let folder = scene.site.folder(&volume)?;
    let mut spec = json!({
        "accessModes": ["ReadWriteMany"], "storageClassName": "",
        "resources": {"requests": {"storage": "1Gi"}}, "volumeName": volume,
    });
    if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
        spec.extend(more);
    }
    let all = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume}, "spec": {
            "capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteMany"],
            "storageClassName": spec["storageClassName"], "hostPath": {"path": folder},
        }},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim",
         "metadata": {"name": name, "namespace": namespace}, "spec": spec},
    ]});
    scene.site.feed(&["create", "-f", "-"], &all.to_string()).await?;
    Ok(folder)
}

/// Waits for the success of a job in any namespace, and gives the log of one of its pods.
async fn succeeds(scene: &Scene, namespace: &str, job: &str, pod: &str) -> Result<String> {
    let (job, pod) = (format!("tfjob/{job}"), format!("{job}-{pod}"));
    let words = ["-n", namespace, "wait", "--for=condition=Succeeded", "--timeout=90s", &job];
    scene.site.ok(&words).await?;
    scene.site.ok(&["-n", namespace, "logs", &pod]).await
}

async fn seed_000_names_the_image_that_is_to_be_filled_in_and_then_runs(
    scene: &Scene,
) -> Result<()> {
    gpus(scene).await?;
    scene.feed(&["create", "-f", "-"], FIRST).await?;
    let invalid = |told: &str| told.contains("InvalidImageName");
    scene.until(&["get", "pod", "module6-ex1-gpu-master-0"], "the mistake", invalid).await?;
    scene.feed(&["delete", "-f", "-"], FIRST).await?;
    scene.wait("pod/module6-ex1-gpu-master-0", "delete").await?;
    let image = stand_in::image(scene, "docker.io/me/tf-mnist:gpu").await?;
    let filled = FIRST.replace("<DOCKER_USERNAME>/tf-mnist:gpu", &image);
    scene.feed(&["create", "-f", "-"], &filled).await?;
    let log = succeeds(scene, &scene.namespace, "module6-ex1-gpu", "master-0").await?;
    equal("log", log.as_str(), "python /app/main.py\n")?;
    let table = scene.ok(&["get", "tfjob"]).await?;
    contains("table", &table, &["module6-ex1-gpu", "Succeeded"])
}

async fn seed_001_restarts_as_a_whole_and_completes(scene: &Scene) -> Result<()> {
    stand_in::image(scene, "docker.io/volcanosh/dist-mnist-tf-example:0.0.1").await?;
    scene.feed(&["apply", "-f", "-"], VOLCANO).await?;
    let all = ["ps-0", "worker-0", "worker-1"].map(|pod| format!("tensorflow-dist-mnist-{pod}"));
    for pod in &all {
        let runs = |log: &str| log.contains("python /var/tf_dist_mnist/dist_mnist.py");
        scene.until(&["logs", pod], "its program", runs).await?;
    }
    let log = scene.ok(&["logs", &all[2]]).await?;
    let host = "tensorflow-dist-mnist-worker-0.tensorflow-dist-mnist:2222";
    contains("TF_CONFIG", &log, &[host, "\"type\":\"worker\",\"index\":1"])?;
    // The policy PodEvicted.
    let mut uids = Vec::new();
    for pod in &all {
        uids.push(scene.life(pod).await?.0);
    }
    // What follows waits for the whole grace period anyway.
    scene.ok(&["delete", "pod", "--grace-period=1", &all[1]]).await?;
    let count = ["get", "vcjob", "tensorflow-dist-mnist", "-o=jsonpath={.status.retryCount}"];
    scene.until(&count, "all start again", |count| count == "1").await?;
    for (pod, uid) in all.iter().zip(&uids) {
        scene.is_replaced(pod, uid).await?;
    }
    for pod in &all[1..] {
        scene.ok(&["exec", pod, "--", "touch", "/tmp/end"]).await?;
    }
    let done = "jsonpath={.status.state.phase}=Completed";
    scene.wait("job.batch.volcano.sh/tensorflow-dist-mnist", done).await
}

async fn seed_002_runs_one_job_on_each_machine(scene: &Scene) -> Result<()> {
    stand_in::image(scene, "docker.io/tensorflow/tensorflow:1.13.1-py3").await?;
    claim(scene, &scene.namespace, "nfs-pvc", json!({})).await?;
    let template = scene.site.folder(&scene.namespace)?.join("mnist.yaml");
    std::fs::write(&template, TEMPLATE)?;
    let template = template.display().to_string();
    let rendered = scene.site.trainyard(&["render", &template, "-N", "2", "-o", "-"]).await?;
    scene.feed(&["apply", "-f", "-"], &rendered).await?;
    let words = ["get", "pods", "-l", "job-name=mnist-worker-0", "-o", "name"];
    scene.until(&words, "its pod", |told| told.starts_with("pod/")).await?;
    let runs = |log: &str| log.contains("python mnist_cnn.py --strategy=ps --steps=5000");
    let log = scene.until(&["logs", "job/mnist-worker-0"], "its program", runs).await?;
    contains("TF_CONFIG", &log, &[r#""ps": ["node0:2222"]"#, r#""worker": ["node1:2222"]"#])?;
    let nodes = "-o=jsonpath={range .items[*]}{.metadata.labels.job-name} {.spec.nodeName},{end}";
    let told = scene.ok(&["get", "pods", nodes]).await?;
    contains("nodes", &told, &["mnist-ps-0 node0,", "mnist-worker-0 node1,"])?;
    scene.ok(&["exec", "job/mnist-worker-0", "--", "touch", "/tmp/end"]).await?;
    scene.wait("job.batch/mnist-worker-0", "condition=Complete").await?;
    scene.ok(&["delete", "jobs.batch", "--all", "--cascade=foreground"]).await.map(drop)
}

async fn seed_003_mnist_keeps_its_events_on_the_claim(scene: &Scene) -> Result<()> {
    stand_in::image(scene, "gcr.io/kubeflow-ci/tf-mnist-with-summaries:1.0").await?;
    let folder = claim(scene, "kubeflow", "tfevent-volume", json!({})).await?;
    scene.site.feed(&["create", "-f", "-"], MNIST).await?;
    let log = succeeds(scene, "kubeflow", "mnist", "worker-0").await?;
    let words =
        "python /var/tf_mnist/mnist_with_summaries.py --log_dir=/train --learning_rate=0.01";
    contains("log", &log, &[words, "--batch_size=150"])?;
    ensure!(folder.join("events").exists(), "there are no events in {}", folder.display());
    let told = scene.site.ok(&["-n", "kubeflow", "describe", "tfjobs", "mnist"]).await?;
    contains("describe", &told, &["Clean Pod Policy:  None", "Created pod: mnist-worker-0"])?;
    scene.site.feed(&["delete", "-f", "-", "--cascade=foreground"], MNIST).await?;
    scene.site.ok(&["-n", "kubeflow", "delete", "pvc", "tfevent-volume"]).await.map(drop)
}

/// Creates a job whose name is made up, and gives the log of its first worker.
async fn generated(scene: &Scene, manifest: &str) -> Result<String> {
    // Without a tag it would be pulled anew each time, from where there is nothing.
    let image = "image: gcr.io/your-project/your-image";
    let manifest =
        manifest.replace(image, &format!("{image}\n            imagePullPolicy: IfNotPresent"));
    let said = scene.site.feed(&["create", "-f", "-", "-o", "name"], &manifest).await?;
    let job = said.trim().rsplit('/').next().unwrap_or_default().to_owned();
    ensure!(job.starts_with("tfjob") && job.len() > "tfjob".len(), "the name is {job}");
    let log = succeeds(scene, "kubeflow", &job, "worker-0").await?;
    contains("log", &log, &["python -m trainer.task --batch_size=32 --training_steps=1000"])?;
    scene.site.ok(&["-n", "kubeflow", "delete", "tfjob", &job, "--cascade=foreground"]).await?;
    Ok(log)
}

async fn seed_003_generated_names_and_a_secret(scene: &Scene) -> Result<()> {
    stand_in::image(scene, "gcr.io/your-project/your-image:latest").await?;
    let log = generated(scene, GENERATED).await?;
    for pod in ["ps-0", "worker-0", "worker-1", "worker-2"] {
        contains("TF_CONFIG", &log, &[&format!("-{pod}.kubeflow.svc:2222")])?;
    }
    let words =
        ["create", "secret", "generic", "user-gcp-sa", "--from-literal=user-gcp-sa.json={}"];
    scene.site.ok(&[&["-n", "kubeflow"][..], &words].concat()).await?;
    let log = generated(scene, SECRET).await?;
    contains("log", &log, &["credentials: {}"])?;
    scene.site.ok(&["-n", "kubeflow", "delete", "secret", "user-gcp-sa"]).await.map(drop)
}

async fn seed_003_benchmark_runs_on_a_gpu(scene: &Scene) -> Result<()> {
    gpus(scene).await?;
    for kind in ["cpu", "gpu"] {
        let name = format!("gcr.io/kubeflow/tf-benchmarks-{kind}:v20171202-bdab599-dirty-284af3");
        stand_in::image(scene, &name).await?;
    }
    scene.feed(&["create", "-f", "-"], SMOKE).await?;
    let log = succeeds(scene, &scene.namespace, "tf-smoke-gpu", "worker-0").await?;
    contains("log", &log, &["python tf_cnn_benchmarks.py --batch_size=32", "--device=gpu"])?;
    let worker = scene.get("pod/tf-smoke-gpu-worker-0").await?;
    let limits = &worker["spec"]["containers"][0]["resources"]["limits"];
    equal("limits", limits, &json!({"nvidia.com/gpu": "1"}))
}

async fn seed_004_keeps_the_model_on_the_share(scene: &Scene) -> Result<()> {
    gpus(scene).await?;
    let image = stand_in::image(scene, "docker.io/me/tf-mnist:gpu").await?;
    for (manifest, job) in [(FIRST_AGAIN, "module6-ex1-gpu"), (EXAMPLE, "example-tfjob")] {
        let filled = manifest.replace("<DOCKER_USERNAME>/tf-mnist:gpu", &image);
        scene.feed(&["create", "-f", "-"], &filled).await?;
        let log = succeeds(scene, &scene.namespace, job, "master-0").await?;
        equal("log", log.as_str(), "python /app/main.py\n")?;
    }
    let folder =
        claim(scene, &scene.namespace, "azurefile", json!({"storageClassName": "azurefile"}))
            .await?;
    let bound = |table: &str| table.contains("Bound");
    scene.until(&["get", "pvc"], "the claim", bound).await?;
    scene.feed(&["create", "-f", "-"], &SHARE.replace("<IMAGE>", &image)).await?;
    succeeds(scene, &scene.namespace, "module6-ex2-gpu", "master-0").await?;
    let model = folder.join("module6-ex2-gpu/model");
    ensure!(model.exists(), "there is no {}", model.display());
    Ok(())
}
