//! Nodes that are drained, lost and found; operators that are killed, frozen and away. One after the other.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::check::{contains, equal, fields};
use crate::harness::{Case, cases};
use crate::manifest::Manifest;
use crate::real_kubelet::jobs::{TOLD, ending, job};
use crate::real_kubelet::site::{NODES, Scene};
use crate::seen::text;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["outages":
        killed_operator_goes_on_where_it_was,
        operator_that_was_away_finds_what_has_happened,
        frozen_leader_is_replaced_and_ends_when_it_wakes,
        drained_node_gives_its_replicas_to_the_other,
        drain_that_takes_the_operator_along_loses_nothing,
        replica_of_a_lost_node_is_made_again_on_the_other,
        node_that_comes_back_runs_its_replicas_again,
    ]
}

const OPERATOR: &str = "--selector=name=tf-job-operator";

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

async fn operators(scene: &Scene) -> Result<Vec<String>> {
    let names = "-o=jsonpath={range .items[*]}{.metadata.name} {end}";
    let listed = scene.site.ok(&["-n", "kubeflow", "get", "pods", OPERATOR, names]).await?;
    Ok(listed.split_whitespace().map(str::to_owned).collect())
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

/// Two workers that go to different nodes if they can, and stay on a lost one as long as pods do by default.
fn spread(name: &str) -> Manifest {
    let mut affinity = super::life::apart(name, "worker");
    let rule = "requiredDuringSchedulingIgnoredDuringExecution";
    let term = affinity["podAntiAffinity"][rule][0].take();
    affinity = json!({"podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution":
            [{"weight": 100, "podAffinityTerm": term}],
    }});
    job(name, &[("Worker", 2, TOLD)]).edit("Worker", |replica| {
        let spec = &mut replica["template"]["spec"];
        spec["affinity"] = affinity;
        // Whichever scheduler the tier has: the story is about nodes.
        spec["schedulerName"] = "default-scheduler".into();
    })
}

async fn node_of(scene: &Scene, pod: &str) -> Result<String> {
    Ok(text(&scene.get(&format!("pod/{pod}")).await?["spec"]["nodeName"]).to_owned())
}

/// The worker on the second node, and the other one.
async fn on_each(scene: &Scene, job: &str) -> Result<(String, String)> {
    let workers = [0, 1].map(|index| format!("{job}-worker-{index}"));
    let nodes = [node_of(scene, &workers[0]).await?, node_of(scene, &workers[1]).await?];
    ensure!(nodes[0] != nodes[1], "both are on {}", nodes[0]);
    let [first, second] = workers;
    Ok(if nodes[0] == NODES[1] { (first, second) } else { (second, first) })
}

async fn drained_node_gives_its_replicas_to_the_other(scene: &Scene) -> Result<()> {
    scene.create(spread("a").restart("Never").run_policy("backoffLimit", 0)).await?;
    scene.runs("a").await?;
    let (moved, stays) = on_each(scene, "a").await?;
    let (uid, before) = (scene.life(&moved).await?.0, scene.life(&stays).await?);
    let words =
        ["drain", NODES[1], "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=100s"];
    let told = scene.site.ok(&words).await?;
    contains(
        "drain",
        &told,
        &["node/node1 cordoned", &format!("pod/{moved} evicted"), "node/node1 drained"],
    )?;
    scene.is_replaced(&moved, &uid).await?;
    equal("node", node_of(scene, &moved).await?.as_str(), NODES[0])?;
    scene.site.ok(&["uncordon", NODES[1]]).await?;
    equal("the other worker", scene.life(&stays).await?, before)?;
    fields("job", &scene.get("tfjob/a").await?, &[("/status/restarts", json!(null))])?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

/// The operator's pod and a worker are evicted together; the operator finds out elsewhere.
async fn drain_that_takes_the_operator_along_loses_nothing(scene: &Scene) -> Result<()> {
    scene.create(spread("a").restart("Never").run_policy("backoffLimit", 0)).await?;
    scene.runs("a").await?;
    let (moved, stays) = on_each(scene, "a").await?;
    let (uid, before) = (scene.life(&moved).await?.0, scene.life(&stays).await?);
    operator_goes_to(scene, NODES[1]).await?;
    let words =
        ["drain", NODES[1], "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=100s"];
    let told = scene.site.ok(&words).await?;
    contains("drain", &told, &["pod/trainyard-operator", &format!("pod/{moved} evicted")])?;
    scene.is_replaced(&moved, &uid).await?;
    scene.site.ok(&["uncordon", NODES[1]]).await?;
    equal("the other worker", scene.life(&stays).await?, before)?;
    scene.runs("a").await?;
    fields("job", &scene.get("tfjob/a").await?, &[("/status/restarts", json!(null))])?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await.map(drop)
}

/// Has the operator run on a node, which it may leave.
async fn operator_goes_to(scene: &Scene, node: &str) -> Result<()> {
    let others = NODES.into_iter().filter(|other| *other != node);
    for other in others.clone() {
        scene.site.ok(&["cordon", other]).await?;
    }
    let deleted = ["-n", "kubeflow", "delete", "pods", OPERATOR];
    let mut moved = scene.site.ok(&deleted).await.map(drop);
    if moved.is_ok() {
        moved = scene.site.is_rolled_out("trainyard-operator").await;
    }
    for other in others {
        scene.site.ok(&["uncordon", other]).await?;
    }
    moved?;
    let path = "-o=jsonpath={.items[*].spec.nodeName}";
    let there = scene.site.ok(&["-n", "kubeflow", "get", "pods", OPERATOR, path]).await?;
    equal("the operator's node", there.trim(), node)
}

/// The operator gives up a lost node's pod after a time that is a flag of it.
async fn lost_pod_timeout(scene: &Scene, timeout: &str) -> Result<()> {
    let path = "-o=jsonpath={.spec.template.spec.containers[0].args}";
    let words = ["-n", "kubeflow", "get", "deployment", "trainyard-operator", path];
    let mut args: Vec<Value> = serde_json::from_str(&scene.site.ok(&words).await?)?;
    args.retain(|arg| !text(arg).starts_with("--lost-pod-timeout"));
    args.push(format!("--lost-pod-timeout={timeout}").into());
    let change = json!([{
        "op": "replace", "path": "/spec/template/spec/containers/0/args", "value": args,
    }]);
    let change = change.to_string();
    let words = [
        "-n",
        "kubeflow",
        "patch",
        "deployment",
        "trainyard-operator",
        "--type=json",
        "-p",
        &change,
    ];
    scene.site.ok(&words).await?;
    scene.site.is_rolled_out("trainyard-operator").await
}

/// Keeps what is not this story's away from the node that it loses.
async fn only_here(scene: &Scene, operator: bool) -> Result<()> {
    let node = if operator { json!({"kubernetes.io/hostname": NODES[0]}) } else { Value::Null };
    let patch = json!({"spec": {"template": {"spec": {"nodeSelector": node}}}}).to_string();
    for deployment in ["trainyard-operator", "trainyard-scheduler"] {
        let words = ["-n", "kubeflow", "patch", "deployment", deployment, "-p", &patch];
        if scene.site.kubectl.run(&words).await?.success() {
            scene.site.is_rolled_out(deployment).await?;
        }
    }
    Ok(())
}

async fn node_becomes(scene: &Scene, status: &str) -> Result<()> {
    let wanted = format!("--for=condition=Ready={status}");
    let words = ["wait", "--timeout=60s", &wanted, "node/node1"];
    scene.site.ok(&words).await.map(drop)
}

async fn replica_of_a_lost_node_is_made_again_on_the_other(scene: &Scene) -> Result<()> {
    only_here(scene, true).await?;
    lost_pod_timeout(scene, "5s").await?;
    let quick = spread("a").restart("Never").run_policy("backoffLimit", 0);
    scene.create(quick.run_policy("nodeLossTolerationSeconds", 2)).await?;
    scene.runs("a").await?;
    let (lost, stays) = on_each(scene, "a").await?;
    let (uid, before) = (scene.life(&lost).await?.0, scene.life(&stays).await?);
    scene.site.stop_node(1).await?;
    node_becomes(scene, "Unknown").await?;
    scene.is_replaced(&lost, &uid).await?;
    equal("node", node_of(scene, &lost).await?.as_str(), NODES[0])?;
    equal("the other worker", scene.life(&stays).await?, before)?;
    fields("job", &scene.get("tfjob/a").await?, &[("/status/restarts", json!(null))])?;
    scene.site.start_node(1).await?;
    node_becomes(scene, "True").await?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await?;
    lost_pod_timeout(scene, "5m").await?;
    only_here(scene, false).await
}

/// Away for less time than its pods may miss it, it starts them again in place, as after a power cut.
async fn node_that_comes_back_runs_its_replicas_again(scene: &Scene) -> Result<()> {
    only_here(scene, true).await?;
    scene.create(spread("a").restart("OnFailure")).await?;
    scene.runs("a").await?;
    let (lost, stays) = on_each(scene, "a").await?;
    let (uid, before) = (scene.life(&lost).await?.0, scene.life(&stays).await?);
    scene.site.stop_node(1).await?;
    node_becomes(scene, "Unknown").await?;
    let replica = lost.trim_start_matches("a-");
    let told = |row: &str| row.contains("Restarting") && row.contains(replica);
    scene.until(&["get", "tfjob", "a", "-o", "wide"], "which replica is away", told).await?;
    let job = scene.get("tfjob/a").await?;
    let away = &job["status"]["unavailableReplicas"];
    equal("replicas that are away", away.as_array().map_or(0, Vec::len), 1)?;
    fields("the one", away, &[("/0/replica", json!(replica))])?;
    ensure!(away[0]["since"].is_string(), "{away}");
    scene.site.start_node(1).await?;
    let again = |told: &str| told == "1 true";
    let path = "-o=jsonpath={.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}";
    scene.until(&["get", "pod", &lost, path], "its next run", again).await?;
    equal("pod", scene.life(&lost).await?.0, uid)?;
    equal("the other worker", scene.life(&stays).await?, before)?;
    scene.runs("a").await?;
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await?;
    only_here(scene, false).await
}
