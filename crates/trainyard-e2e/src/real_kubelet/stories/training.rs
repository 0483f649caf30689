//! Real TensorFlow in containers: parameter servers with chief and evaluator, and workers in step on two nodes.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;
use trainyard_testbed::cluster::image;

use crate::check::{contains, equal, fields};
use crate::harness::{Case, cases, within};
use crate::manifest::{Manifest, tfjob};
use crate::real_kubelet::site::{NODES, Scene};
use crate::seen::text;

/// An import of TensorFlow takes its time where several do it.
const LONGEST: Duration = Duration::from_mins(5);

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    let all = cases!["training":
        parameter_server_chief_and_evaluator_train_together,
        workers_in_step_on_two_nodes_go_on_after_one_was_killed,
    ];
    within(LONGEST, all)
}

const PARAMETER_SERVER: &str = include_str!("training/parameter_server.py");
const IN_STEP: &str = include_str!("training/in_step.py");

/// Replicas that each run a program with a folder that all of them see.
async fn submit(
    scene: &Scene,
    program: &str,
    replicas: &[(&str, i64)],
    adjust: impl FnOnce(Manifest) -> Manifest,
) -> Result<std::path::PathBuf> {
    scene.site.with_tensorflow().await?;
    let share = scene.site.folder(&format!("{}-share", scene.namespace))?;
    let code = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "code"},
        "data": {"main.py": program},
    });
    scene.create(code).await?;
    // A shell is process 1, so that the program below it can be killed as the kernel does it.
    let script = "python3 /code/main.py & echo $! > /tmp/pid; wait $!; exit $?";
    let job = replicas.iter().fold(tfjob("a"), |job, (kind, count)| {
        job.replicas(kind, *count).edit(kind, |replica| {
            replica["template"]["spec"] = json!({
                "terminationGracePeriodSeconds": 2,
                "containers": [{
                    "name": "tensorflow", "image": image::TENSORFLOW,
                    "command": ["sh", "-c", script],
                    "env": [
                        {"name": "TF_CPP_MIN_LOG_LEVEL", "value": "2"},
                        {"name": "TF_NUM_INTRAOP_THREADS", "value": "1"},
                        {"name": "CUDA_VISIBLE_DEVICES", "value": "-1"},
                    ],
                    "volumeMounts": [
                        {"name": "code", "mountPath": "/code"},
                        {"name": "share", "mountPath": "/share"},
                    ],
                }],
                "volumes": [
                    {"name": "code", "configMap": {"name": "code"}},
                    {"name": "share", "hostPath": {"path": share}},
                ],
            });
        })
    });
    scene.create(adjust(job)).await?;
    Ok(share)
}

/// Waits for success with the patience that it needs; the logs tell why not.
async fn succeeds(scene: &Scene) -> Result<()> {
    let path = "--for=jsonpath={.status.completionTime}";
    let waited = scene.run(&["wait", "--timeout=170s", path, "tfjob/a"]).await?;
    let job = scene.get("tfjob/a").await?;
    let how = crate::real_kubelet::scene::state(&job);
    if !waited.success() || how != "Succeeded" {
        let selector = "--selector=training.kubeflow.org/job-name=a";
        let logs = scene.run(&["logs", "--prefix", "--tail=15", selector]).await?.stdout;
        anyhow::bail!("the training is {how}:\n{logs}");
    }
    Ok(())
}

async fn parameter_server_chief_and_evaluator_train_together(scene: &Scene) -> Result<()> {
    let replicas = [("Chief", 1), ("Worker", 1), ("PS", 1), ("Evaluator", 1)];
    let share = submit(scene, PARAMETER_SERVER, &replicas, |job| job.restart("OnFailure")).await?;
    // The job ends with its chief, and what runs then is stopped: the chief waits for a word.
    let evaluated = "--for=jsonpath={.status.phase}=Succeeded";
    scene.ok(&["wait", "--timeout=170s", "--for=create", evaluated, "pod/a-evaluator-0"]).await?;
    std::fs::write(share.join("end"), "")?;
    succeeds(scene).await?;
    let log = scene.log("a-chief-0").await?;
    contains("the chief's log", &log, &["chief 0 is here", "counted 20", "training is done"])?;
    scene.pods_become("a", &["a-chief-0 Succeeded", "a-evaluator-0 Succeeded"]).await?;
    let log = scene.log("a-evaluator-0").await?;
    contains("the evaluator's log", &log, &["evaluator 0 is here", "evaluated 20"])
}

async fn workers_in_step_on_two_nodes_go_on_after_one_was_killed(scene: &Scene) -> Result<()> {
    let share = submit(scene, IN_STEP, &[("Worker", 2)], |job| {
        // The second worker ends when the job has.
        let job = job.restart("ExitCode").run_policy("cleanPodPolicy", "None");
        job.run_policy("restartScope", "Job").edit("Worker", |replica| {
            replica["template"]["spec"]["affinity"] = super::life::apart("a", "worker");
        })
    })
    .await?;
    let trains = |log: &str| log.contains("step 3 ");
    scene.until(&["logs", "a-worker-0"], "some steps", trains).await?;
    let nodes = "-o=jsonpath={range .items[*]}{.spec.nodeName} {end}";
    equal(
        "nodes",
        scene
            .ok(&["get", "pods", nodes])
            .await?
            .trim()
            .split(' ')
            .collect::<std::collections::BTreeSet<_>>(),
        NODES.into(),
    )?;
    let before = std::fs::read_to_string(share.join("step"))?;
    let kill = "kill -9 $(cat /tmp/pid)";
    scene.ok(&["exec", "a-worker-1", "--", "sh", "-c", kill]).await?;
    succeeds(scene).await?;
    let job = scene.get("tfjob/a").await?;
    let wanted = [("/status/restarts", json!(1)), ("/status/attempt", json!(1))];
    fields("job", &job, &wanted)?;
    scene.pods_become("a", &["a-worker-0 Succeeded", "a-worker-1 Succeeded"]).await?;
    for pod in ["a-worker-0", "a-worker-1"] {
        let log = scene.log(pod).await?;
        contains(pod, &log, &["goes on from step", "the sum over 2 workers is right"])?;
    }
    ensure!(!before.is_empty() && text(&job["metadata"]["name"]) == "a", "no step was saved");
    Ok(())
}
