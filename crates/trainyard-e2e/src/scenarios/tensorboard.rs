//! The TensorBoard beside a job.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check::equal;
use crate::harness::{Case, cases};
use crate::manifest::tfjob;
use crate::world::World;

pub(super) fn all() -> Vec<Case<World>> {
    cases!["tensorboard":
        the_five_pods_of_a_distributed_job,
        its_pod_and_service,
        volumes_of_its_own,
        outlives_the_training,
        has_no_say,
        goes_with_the_time_to_live,
        taken_away,
    ]
}

fn board() -> Value {
    json!({"logDir": "/logs"})
}

async fn the_five_pods_of_a_distributed_job(world: World) -> Result<()> {
    world
        .submit(tfjob("a").replicas("MASTER", 1).workers(2).ps(1).spec("tensorBoard", board()))
        .await?;
    let names = ["a-master-0", "a-ps-0", "a-tensorboard-0", "a-worker-0", "a-worker-1"];
    world.wait_pods(&names).await?;
    world.wait_services(&names).await?;
    // It is not waited for.
    world.kubelet.start_all(&["a-master-0", "a-ps-0", "a-worker-0", "a-worker-1"]).await?;
    world.wait_conditions("a", &["Created=True", "Running=True"]).await?;
    Ok(())
}

async fn its_pod_and_service(world: World) -> Result<()> {
    let job = tfjob("a")
        .workers(1)
        .edit("Worker", |spec| {
            let pod = &mut spec["template"]["spec"];
            pod["volumes"] = json!([{"name": "logs", "emptyDir": {}}]);
            pod["containers"][0]["volumeMounts"] = json!([{"name": "logs", "mountPath": "/logs"}]);
        })
        .spec("tensorBoard", json!({"logDir": "/logs", "serviceType": "NodePort"}));
    let job = world.submit(job).await?;
    let seen = world.wait_pods(&["a-tensorboard-0", "a-worker-0"]).await?;
    let pod = seen.pod("a-tensorboard-0");
    let container = &pod["spec"]["containers"][0];
    equal("image of the training", &container["image"], "example.com/train:1")?;
    let words = container["command"].to_string() + &container["args"].to_string();
    ensure!(words.contains("tensorboard") && words.contains("/logs"), "command: {words}");
    equal("mounts of the training", &container["volumeMounts"][0]["mountPath"], "/logs")?;
    equal("volumes of the training", &pod["spec"]["volumes"][0]["name"], "logs")?;
    equal("it is kept alive", &pod["spec"]["restartPolicy"], "Always")?;
    let asked = &pod["metadata"]["annotations"]["trainyard.dev/expose"];
    equal("a node's machine may reach it", asked, "6006")?;
    let owner = &pod["metadata"]["ownerReferences"][0]["uid"];
    equal("owner", owner, &job["metadata"]["uid"])?;
    let labels = &pod["metadata"]["labels"];
    equal("type", &labels["training.kubeflow.org/replica-type"], "tensorboard")?;
    ensure!(labels["training.kubeflow.org/job-role"].is_null(), "no master: {labels}");
    let seen = world.wait_services(&["a-tensorboard-0", "a-worker-0"]).await?;
    let service = &seen.service("a-tensorboard-0")["spec"];
    equal("service type", &service["type"], "NodePort")?;
    equal("port", &service["ports"][0]["targetPort"], 6006)?;
    equal("selector", &service["selector"], labels)
}

async fn volumes_of_its_own(world: World) -> Result<()> {
    let tensorboard = json!({
        "logDir": "/mnt/logs", "image": "tensorflow/tensorflow:2.21.0",
        "volumes": [{"name": "share", "emptyDir": {}}],
        "volumeMounts": [{"name": "share", "mountPath": "/mnt"}],
    });
    world.submit(tfjob("a").workers(1).spec("tensorBoard", tensorboard)).await?;
    let seen = world.wait_pods(&["a-tensorboard-0", "a-worker-0"]).await?;
    let pod = seen.pod("a-tensorboard-0");
    let container = &pod["spec"]["containers"][0];
    equal("image", &container["image"], "tensorflow/tensorflow:2.21.0")?;
    equal("mount", &container["volumeMounts"][0]["mountPath"], "/mnt")?;
    equal("volume", &pod["spec"]["volumes"][0]["name"], "share")
}

async fn outlives_the_training(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job =
        tfjob("a").workers(2).spec("tensorBoard", board()).run_policy("cleanPodPolicy", "All");
    world.submit(job).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world
        .wait_until("TensorBoard runs", |seen| {
            seen.pod("a-tensorboard-0")["status"]["phase"] == "Running"
        })
        .await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world.wait_until("the job succeeds", |seen| seen.is("a", "Succeeded")).await?;
    world.wait_services(&["a-tensorboard-0"]).await?;
    world.wait_pods(&["a-tensorboard-0"]).await?;
    world
        .never_within(300, "TensorBoard goes", |seen| seen.live_pods() != ["a-tensorboard-0"])
        .await?;
    world.delete("a").await?;
    world.wait_pods(&[]).await?;
    world.wait_services(&[]).await?;
    Ok(())
}

async fn has_no_say(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).spec("tensorBoard", board())).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    let before = world
        .wait_until("TensorBoard runs", |seen| {
            seen.pod("a-tensorboard-0")["status"]["phase"] == "Running"
        })
        .await?;
    world.kubelet.evict("a-tensorboard-0", true).await?;
    let seen = world.wait_successor("a-tensorboard-0", &before.uid("a-tensorboard-0")).await?;
    equal("the job goes on", seen.conditions("a"), ["Created=True", "Running=True"])?;
    equal("no restart of the job", seen.restarts("a"), 0)
}

async fn goes_with_the_time_to_live(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    let job =
        tfjob("a").workers(1).spec("tensorBoard", board()).run_policy("ttlSecondsAfterFinished", 1);
    world.submit(job).await?;
    world.wait_until("the job runs", |seen| seen.is("a", "Running")).await?;
    world.kubelet.exit("a-worker-0", 0).await?;
    world
        .wait_until("all is gone", |seen| {
            seen.job("a").is_null() && seen.pods().is_empty() && seen.services().is_empty()
        })
        .await?;
    Ok(())
}

async fn taken_away(world: World) -> Result<()> {
    let _auto = world.kubelet.auto();
    world.submit(tfjob("a").workers(1).spec("tensorBoard", board())).await?;
    world.wait_pods(&["a-tensorboard-0", "a-worker-0"]).await?;
    world.patch_spec("a", json!({"tensorBoard": null})).await?;
    world.wait_services(&["a-worker-0"]).await?;
    world.wait_pods(&["a-worker-0"]).await?;
    Ok(())
}
