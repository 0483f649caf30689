//! Operators that are killed, frozen and away. One after the other.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::check::{contains, fields};
use crate::harness::{Case, cases};
use crate::real_kubelet::jobs::{TOLD, ending, job};
use crate::real_kubelet::site::Scene;
use crate::seen::{terminating, text};

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["outages":
        killed_operator_goes_on_where_it_was,
        operator_that_was_away_finds_what_has_happened,
        frozen_leader_is_replaced_and_ends_when_it_wakes,
    ]
}

/// Finds the operator's pods.
pub(super) const OPERATOR: &str = "--selector=name=tf-job-operator";

/// The processes of Trainyard in a pod, as this machine knows them.
fn processes(uid: &str) -> Result<Vec<Pid>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let read = |file: &str| std::fs::read(entry.path().join(file)).unwrap_or_default();
        let is_of_pod = String::from_utf8_lossy(&read("cgroup")).contains(&format!("pod{uid}"));
        let number = entry.file_name().to_string_lossy().parse().ok();
        if let Some(pid) = number.and_then(Pid::from_raw)
            && is_of_pod
            && read("cmdline").starts_with(b"/trainyard")
        {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Sends a signal to the operator in a pod of `kubeflow`.
async fn signal(scene: &Scene, pod: &str, signal: Signal) -> Result<()> {
    let path = "-o=jsonpath={.metadata.uid}";
    let uid = scene.site.ok(&["-n", "kubeflow", "get", "pod", pod, path]).await?;
    let all = processes(&uid)?;
    ensure!(!all.is_empty(), "no process of pod {pod}");
    all.into_iter().try_for_each(|pid| Ok(kill_process(pid, signal)?))
}

/// Names of the operator's pods that are to stay.
async fn operators(scene: &Scene) -> Result<Vec<String>> {
    let words = ["-n", "kubeflow", "get", "pods", OPERATOR, "-o", "json"];
    let listed: Value = serde_json::from_str(&scene.site.ok(&words).await?)?;
    let pods = listed["items"].as_array().context("a list of pods")?.iter();
    let stay = pods.filter(|pod| !terminating(pod));
    Ok(stay.map(|pod| text(&pod["metadata"]["name"]).to_owned()).collect())
}

async fn scale_operator(scene: &Scene, replicas: u32) -> Result<()> {
    let count = format!("--replicas={replicas}");
    let words = ["-n", "kubeflow", "scale", "deployment", "trainyard-operator", &count];
    scene.site.ok(&words).await?;
    scene.site.is_rolled_out("trainyard-operator").await
}

/// The program dies in the middle of a job, and again while one fails.
async fn killed_operator_goes_on_where_it_was(scene: &Scene) -> Result<()> {
    scene.create(job("a", &[("Worker", 2, TOLD)]).restart("ExitCode")).await?;
    scene.runs("a").await?;
    let (uid, _) = scene.life("a-worker-1").await?;
    let [operator] = &operators(scene).await?[..] else { bail!("not one operator") };
    scene.end("a-worker-1", 138).await?;
    signal(scene, operator, Signal::KILL).await?;
    scene.is_replaced("a-worker-1", &uid).await?;
    scene.site.is_rolled_out("trainyard-operator").await?;
    signal(scene, operator, Signal::KILL).await?;
    scene.end("a-worker-0", 0).await?;
    let job = scene.ends("a", "Succeeded").await?;
    // Neither counted twice nor forgotten.
    fields("job", &job, &[("/status/restarts", json!(1))])
}

async fn operator_that_was_away_finds_what_has_happened(scene: &Scene) -> Result<()> {
    scene.create(job("done", &[("Worker", 1, TOLD)]).restart("Never")).await?;
    scene.create(job("lost", &[("Worker", 1, TOLD)]).restart("Never")).await?;
    scene.runs("done").await?;
    scene.runs("lost").await?;
    scale_operator(scene, 0).await?;
    scene
        .site
        .until(&["-n", "kubeflow", "get", "pods", OPERATOR, "-o", "name"], "none", |told| {
            told.trim().is_empty()
        })
        .await?;
    scene.end("done-worker-0", 0).await?;
    scene.ok(&["delete", "pod", "lost-worker-0"]).await?;
    scene.create(ending("new", "Never", 0)).await?;
    scene.wait("pod/done-worker-0", "jsonpath={.status.phase}=Succeeded").await?;
    scale_operator(scene, 1).await?;
    scene.ends("done", "Succeeded").await?;
    scene.ends("new", "Succeeded").await?;
    scene.wait("pod/lost-worker-0", "condition=Ready").await?;
    fields("lost", &scene.get("tfjob/lost").await?, &[("/status/restarts", json!(null))])
}

async fn leader(scene: &Scene) -> Result<String> {
    let lease = "lease/1ca428e5.training-operator.kubeflow.org";
    let path = "-o=jsonpath={.spec.holderIdentity}";
    let holder = scene.site.ok(&["-n", "kubeflow", "get", lease, path]).await?;
    let pods = operators(scene).await?;
    let pod = pods.into_iter().find(|pod| holder.contains(pod.as_str()));
    pod.with_context(|| format!("the lease is held by {holder:?}"))
}

async fn frozen_leader_is_replaced_and_ends_when_it_wakes(scene: &Scene) -> Result<()> {
    scale_operator(scene, 2).await?;
    scene.create(job("old", &[("Worker", 1, TOLD)]).restart("Never")).await?;
    scene.runs("old").await?;
    let first = leader(scene).await?;
    signal(scene, &first, Signal::STOP).await?;
    scene.create(ending("new", "Never", 0)).await?;
    scene.ends("new", "Succeeded").await?;
    let second = leader(scene).await?;
    ensure!(second != first, "{first} is frozen and still leads");
    signal(scene, &first, Signal::CONT).await?;
    let path = "-o=jsonpath={.status.containerStatuses[0].restartCount}";
    let words = ["-n", "kubeflow", "get", "pod", &first, path];
    scene.site.until(&words, "the end of the one that woke", |count| count == "1").await?;
    let log = scene.site.ok(&["-n", "kubeflow", "logs", &first, "--previous"]).await?;
    contains("its last words", &log, &["lease"])?;
    scene.end("old-worker-0", 0).await?;
    scene.ends("old", "Succeeded").await?;
    scale_operator(scene, 1).await
}
