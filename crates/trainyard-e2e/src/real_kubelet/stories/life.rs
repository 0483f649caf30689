//! What people do to a job in its life: suspend, scale, limit and delete it; and what its replicas know of each other.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::check::{contains, equal, fields};
use crate::harness::{Case, cases};
use crate::real_kubelet::jobs::{TOLD, ending, job, worker};
use crate::real_kubelet::scene::condition;
use crate::real_kubelet::site::Scene;
use crate::seen::text;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["life":
        suspended_job_runs_nothing_until_it_is_resumed,
        running_job_is_suspended_and_resumed,
        job_is_scaled_up_and_down,
        deleted_job_takes_its_pods_and_services_along,
        finished_job_is_deleted_when_its_time_is_over,
        deadline_stops_what_runs_and_keeps_what_has_finished,
        replicas_find_each_other_by_name_on_both_nodes,
        start_time_out_names_the_pod_that_does_not_start,
        description_tells_the_events,
        change_after_the_end_is_answered_and_can_be_waited_for,
    ]
}

const SUSPEND: &str = r#"{"spec":{"runPolicy":{"suspend":true}}}"#;
const RESUME: &str = r#"{"spec":{"runPolicy":{"suspend":false}}}"#;

async fn patch(scene: &Scene, job: &str, patch: &str) -> Result<()> {
    scene.ok(&["patch", "tfjob", job, "--type=merge", "-p", patch]).await.map(drop)
}

async fn suspended_job_runs_nothing_until_it_is_resumed(scene: &Scene) -> Result<()> {
    scene.create(ending("a", "Never", 0).run_policy("suspend", true)).await?;
    scene.wait("tfjob/a", "condition=Suspended").await?;
    equal("pods", scene.pods("a").await?, Vec::<String>::new())?;
    let job = scene.get("tfjob/a").await?;
    ensure!(job["status"]["startTime"].is_null(), "{}", job["status"]);
    patch(scene, "a", RESUME).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

async fn running_job_is_suspended_and_resumed(scene: &Scene) -> Result<()> {
    scene.create(job("a", &[("Worker", 2, TOLD)])).await?;
    scene.runs("a").await?;
    let (uid, _) = scene.life("a-worker-0").await?;
    patch(scene, "a", SUSPEND).await?;
    scene.wait("tfjob/a", "condition=Suspended").await?;
    scene.pods_become("a", &[]).await?;
    let none = |told: &str| told.trim().is_empty();
    scene.until(&["get", "services", "-o", "name"], "no service", none).await?;
    patch(scene, "a", RESUME).await?;
    scene.runs("a").await?;
    let (again, _) = scene.life("a-worker-0").await?;
    ensure!(again != uid, "the pod was not stopped");
    fields("job", &scene.get("tfjob/a").await?, &[("/status/restarts", json!(null))])
}

async fn job_is_scaled_up_and_down(scene: &Scene) -> Result<()> {
    scene.create(job("a", &[("Worker", 1, TOLD)])).await?;
    scene.runs("a").await?;
    let first = scene.life("a-worker-0").await?;
    let told = scene.ok(&["scale", "tfjob/a", "--replicas=3"]).await?;
    equal("scale", told.trim(), "tfjob.kubeflow.org/a scaled")?;
    let three = ["a-worker-0 Running", "a-worker-1 Running", "a-worker-2 Running"];
    scene.pods_become("a", &three).await?;
    scene.ok(&["scale", "tfjob/a", "--replicas=1"]).await?;
    scene.pods_become("a", &three[..1]).await?;
    equal("the one that stays", scene.life("a-worker-0").await?, first)?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

async fn deleted_job_takes_its_pods_and_services_along(scene: &Scene) -> Result<()> {
    scene.create(job("a", &[("Worker", 2, TOLD), ("PS", 1, TOLD)])).await?;
    scene.runs("a").await?;
    let told = scene.ok(&["delete", "tfjob", "a", "--cascade=foreground", "--timeout=60s"]).await?;
    contains("delete", &told, &["\"a\" deleted"])?;
    let left = scene.ok(&["get", "pods,services,tfjobs", "-o", "name"]).await?;
    equal("what is left", left.trim(), "")
}

async fn finished_job_is_deleted_when_its_time_is_over(scene: &Scene) -> Result<()> {
    scene.create(ending("a", "Never", 0).run_policy("ttlSecondsAfterFinished", 8)).await?;
    scene.ends("a", "Succeeded").await?;
    let ended = Instant::now();
    scene.wait("tfjob/a", "delete").await?;
    // Times in a status have no fractions, and kubectl takes its time to tell of the end.
    ensure!(ended.elapsed().as_secs() >= 4, "it was there for {:?}", ended.elapsed());
    scene.wait("pod/a-worker-0", "delete").await
}

async fn deadline_stops_what_runs_and_keeps_what_has_finished(scene: &Scene) -> Result<()> {
    let all = job("a", &[("Chief", 1, TOLD), ("Worker", 1, "echo worked")])
        .restart("Never")
        .run_policy("activeDeadlineSeconds", 15);
    scene.create(all).await?;
    scene.runs("a").await?;
    let job = scene.ends("a", "Failed").await?;
    contains(
        "message",
        text(&condition(&job, "Failed")["message"]),
        &["longer than specified deadline"],
    )?;
    equal("kind", text(&job["status"]["failure"]["kind"]), "DeadlineExceeded")?;
    scene.pods_become("a", &["a-worker-0 Succeeded"]).await?;
    equal("log", scene.log("a-worker-0").await?.as_str(), "worked\n")
}

/// Two workers that must be on different nodes, and a parameter server: names of `TF_CONFIG` lead to the pods.
async fn replicas_find_each_other_by_name_on_both_nodes(scene: &Scene) -> Result<()> {
    let job = job("a", &[("Worker", 2, TOLD), ("PS", 1, TOLD)]).edit("Worker", |replica| {
        replica["template"]["spec"]["affinity"] = apart("a", "worker");
    });
    scene.create(job).await?;
    scene.runs("a").await?;
    let mut nodes = Vec::new();
    for pod in ["a-worker-0", "a-worker-1"] {
        nodes.push(text(&scene.get(&format!("pod/{pod}")).await?["spec"]["nodeName"]).to_owned());
    }
    ensure!(nodes[0] != nodes[1], "both are on {nodes:?}");
    let config = scene.ok(&["exec", "a-worker-1", "--", "sh", "-c", "echo \"$TF_CONFIG\""]).await?;
    let config: Value = serde_json::from_str(&config)?;
    let wanted = [("/task/type", json!("worker")), ("/task/index", json!(1))];
    fields("TF_CONFIG", &config, &wanted)?;
    for (pointer, pod) in [
        ("/cluster/worker/0", "a-worker-0"),
        ("/cluster/worker/1", "a-worker-1"),
        ("/cluster/ps/0", "a-ps-0"),
    ] {
        let host = text(config.pointer(pointer).context("no such task")?).to_owned();
        equal("host", host.as_str(), format!("{pod}.{}.svc:2222", scene.namespace))?;
        let serve = format!("echo {pod} > /tmp/page; httpd -p 2222 -h /tmp");
        scene.ok(&["exec", pod, "--", "sh", "-c", &serve]).await?;
        // From each node, by the names that TensorFlow is given.
        for from in ["a-worker-0", "a-worker-1"] {
            let get = format!("timeout 5 wget -qO- http://{host}/page");
            let words = ["exec", from, "--", "sh", "-c", &get];
            scene.until(&words, &host, |told| told.trim() == pod).await?;
        }
    }
    Ok(())
}

/// Keeps replicas of a type on different nodes.
pub(super) fn apart(job: &str, kind: &str) -> Value {
    json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {
            "training.kubeflow.org/job-name": job, "training.kubeflow.org/replica-type": kind,
        }},
    }]}})
}

async fn start_time_out_names_the_pod_that_does_not_start(scene: &Scene) -> Result<()> {
    let job =
        worker("a", "Never", TOLD).run_policy("startTimeoutSeconds", 6).edit("Worker", |replica| {
            replica["template"]["spec"]["nodeSelector"] = json!({"example.com/there-is": "none"});
        });
    scene.create(job).await?;
    let job = scene.ends("a", "Failed").await?;
    let message = text(&condition(&job, "Failed")["message"]);
    contains("message", message, &["a-worker-0", "0/2 nodes are available"])
}

async fn description_tells_the_events(scene: &Scene) -> Result<()> {
    scene.create(ending("a", "Never", 0)).await?;
    scene.ends("a", "Succeeded").await?;
    let told = scene
        .until(&["describe", "tfjob", "a"], "the end", |told| told.contains("TFJobSucceeded"))
        .await?;
    let parts =
        ["SuccessfulCreatePod", "Created pod: a-worker-0", "SuccessfulCreateService", "Events:"];
    contains("describe", &told, &parts)
}

async fn change_after_the_end_is_answered_and_can_be_waited_for(scene: &Scene) -> Result<()> {
    scene.create(ending("a", "Never", 0)).await?;
    scene.ends("a", "Succeeded").await?;
    scene.ok(&["scale", "tfjob/a", "--replicas=3"]).await?;
    scene.told("tfjob/a", &["TFJobAlreadyFinished"]).await?;
    // kubectl believes a condition only of the generation that is there.
    scene.wait("tfjob/a", "condition=Succeeded").await?;
    // The job's end is known before the kubelet has put all of the pod away.
    scene.pods_become("a", &["a-worker-0 Succeeded"]).await
}
