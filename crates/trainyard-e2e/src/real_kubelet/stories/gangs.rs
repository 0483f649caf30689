//! TFJobs as gangs of Trainyard's own scheduler, on two nodes. Each story has a device of its own, so that none takes
//! another's room.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::check::{contains, equal, fields};
use crate::harness::{Case, cases};
use crate::manifest::Manifest;
use crate::real_kubelet::devices::devices;
use crate::real_kubelet::jobs::{TOLD, ending, job};
use crate::real_kubelet::scene::condition;
use crate::real_kubelet::site::{NODES, Scene};
use crate::seen::text;

pub(super) fn all() -> Vec<Case<Arc<Scene>>> {
    cases!["gangs":
        gang_spreads_over_both_nodes_and_its_group_goes_at_the_end,
        gang_that_does_not_fit_has_pending_pods_that_say_what_is_short,
        two_gangs_never_hold_half_each,
        higher_priority_takes_the_place_of_a_whole_gang,
        queue_holds_back_what_is_above_its_capability,
        pod_that_fits_nowhere_is_told_on_pod_and_job,
        failed_replica_of_a_gang_is_restarted,
        gang_that_a_quota_holds_back_says_so_and_runs_when_it_is_raised,
        user_of_one_namespace_is_told_why_a_gang_waits,
    ]
}

/// Workers with a device each.
pub(super) fn gang(name: &str, workers: i64, device: &str) -> Manifest {
    job(name, &[("Worker", workers, TOLD)]).container("Worker", |container| {
        container["resources"] = json!({"limits": {device: 1}});
    })
}

async fn gang_spreads_over_both_nodes_and_its_group_goes_at_the_end(scene: &Scene) -> Result<()> {
    let device = devices(scene, [2, 2]).await?;
    scene.create(gang("a", 4, &device)).await?;
    scene.runs("a").await?;
    let group = scene.get("podgroup.scheduling.volcano.sh/a").await?;
    let wanted = [("/spec/minMember", json!(4)), ("/status/phase", json!("Running"))];
    fields("group", &group, &wanted)?;
    let nodes = "-o=jsonpath={range .items[*]}{.spec.nodeName} {.spec.schedulerName},{end}";
    let told = scene.ok(&["get", "pods", nodes]).await?;
    for node in NODES {
        equal(node, told.matches(&format!("{node} trainyard,")).count(), 2)?;
    }
    scene.end("a-worker-0", 0).await?;
    scene.ends("a", "Succeeded").await?;
    scene.wait("podgroup.scheduling.volcano.sh/a", "delete").await
}

async fn gang_that_does_not_fit_has_pending_pods_that_say_what_is_short(
    scene: &Scene,
) -> Result<()> {
    let device = devices(scene, [2, 2]).await?;
    scene.create(gang("first", 2, &device)).await?;
    scene.runs("first").await?;
    scene.create(gang("large", 3, &device)).await?;
    let short = format!("2 of 3 pods fit; {device}: 3 asked for, 2 free: 1 too little");
    scene.told("tfjob/large", &["PodGroupPending", &short]).await?;
    scene.told("pod/large-worker-0", &["FailedScheduling", &short]).await?;
    let waiting = ["large-worker-0 Pending", "large-worker-1 Pending", "large-worker-2 Pending"];
    equal("pods", scene.pods("large").await?, waiting)?;
    let kubeconfig = scene.site.kubectl.kubeconfig().display().to_string();
    let words = ["explain", "large", "-n", &scene.namespace, "--kubeconfig", &kubeconfig];
    let why = scene.site.trainyard(&words).await?;
    contains("explain", &why, &[&device, "1 too little", "first"])?;
    scene.end("first-worker-0", 0).await?;
    scene.ends("first", "Succeeded").await?;
    scene.runs("large").await
}

async fn two_gangs_never_hold_half_each(scene: &Scene) -> Result<()> {
    let device = devices(scene, [2, 2]).await?;
    let both: Value = json!({
        "apiVersion": "v1", "kind": "List",
        "items": [gang("a", 3, &device).json(), gang("b", 3, &device).json()],
    });
    scene.create(both).await?;
    let running = "-o=jsonpath={range .items[*]}{.metadata.name} {.status.conditions[?(@.type==\"Running\")].status},{end}";
    let one = |told: &str| told.contains("a True") || told.contains("b True");
    let told = scene.until(&["get", "tfjobs", running], "one of them runs", one).await?;
    let (first, second) = if told.contains("a True") { ("a", "b") } else { ("b", "a") };
    ensure!(!told.contains(&format!("{second} True")), "both run: {told}");
    let of_second = format!("--selector=training.kubeflow.org/job-name={second}");
    let nodes = "-o=jsonpath={.items[*].spec.nodeName}";
    let held = scene.ok(&["get", "pods", &of_second, nodes]).await?;
    equal("nodes of the other's pods", held.trim(), "")?;
    scene.end(&format!("{first}-worker-0"), 0).await?;
    scene.ends(first, "Succeeded").await?;
    scene.runs(second).await
}

async fn higher_priority_takes_the_place_of_a_whole_gang(scene: &Scene) -> Result<()> {
    let device = devices(scene, [1, 1]).await?;
    let classes = ["low", "high"].map(|name| format!("{}-{name}", scene.namespace));
    for (class, value) in classes.iter().zip(["--value=5", "--value=900"]) {
        scene.site.ok(&["create", "priorityclass", class, value]).await?;
    }
    let of_class = |job: Manifest, class: &str| {
        job.edit("Worker", |replica| {
            replica["template"]["spec"]["priorityClassName"] = class.into();
        })
    };
    scene.create(of_class(gang("small", 2, &device), &classes[0])).await?;
    scene.runs("small").await?;
    let (uid, _) = scene.life("small-worker-0").await?;
    scene.create(of_class(gang("urgent", 2, &device), &classes[1])).await?;
    scene.runs("urgent").await?;
    scene.told("pod/small-worker-0", &["Evict"]).await?;
    scene.end("urgent-worker-0", 0).await?;
    scene.ends("urgent", "Succeeded").await?;
    scene.is_replaced("small-worker-0", &uid).await?;
    scene.runs("small").await?;
    // Whoever had to make room has not failed.
    fields("small", &scene.get("tfjob/small").await?, &[("/status/restarts", json!(null))])?;
    scene.end("small-worker-0", 0).await?;
    scene.ends("small", "Succeeded").await?;
    for class in &classes {
        scene.site.ok(&["delete", "priorityclass", class]).await?;
    }
    Ok(())
}

async fn queue_holds_back_what_is_above_its_capability(scene: &Scene) -> Result<()> {
    let device = devices(scene, [2, 2]).await?;
    let queue = &scene.namespace;
    let limit = |count: u32| json!({"spec": {"capability": {&device: count.to_string()}}});
    let mut object = limit(2);
    object["apiVersion"] = "scheduling.volcano.sh/v1beta1".into();
    object["kind"] = "Queue".into();
    object["metadata"] = json!({"name": queue});
    scene.create(object).await?;
    let in_queue = |job: Manifest| job.run_policy("schedulingPolicy", json!({"queue": queue}));
    scene.create(in_queue(gang("fits", 2, &device))).await?;
    scene.runs("fits").await?;
    scene.create(in_queue(gang("above", 1, &device))).await?;
    for waits in [["tfjob/above", "PodGroupPending"], ["pod/above-worker-0", "FailedScheduling"]] {
        scene.told(waits[0], &[waits[1], "queue resource quota insufficient"]).await?;
    }
    equal("pods", scene.pods("above").await?, ["above-worker-0 Pending"])?;
    let more = limit(3).to_string();
    scene.ok(&["patch", "queue.scheduling.volcano.sh", queue, "--type=merge", "-p", &more]).await?;
    scene.runs("above").await?;
    let shown = |told: &str| told == "3";
    let path = format!("-o=jsonpath={{.status.allocated.{}}}", device.replace('.', "\\."));
    let words = ["get", "queue.scheduling.volcano.sh", queue, &path];
    scene.until(&words, "what is used", shown).await?;
    scene.ok(&["delete", "tfjobs", "--all", "--cascade=foreground"]).await?;
    scene.ok(&["delete", "queue.scheduling.volcano.sh", queue]).await.map(drop)
}

async fn pod_that_fits_nowhere_is_told_on_pod_and_job(scene: &Scene) -> Result<()> {
    let job = job("a", &[("Worker", 1, TOLD)]).edit("Worker", |replica| {
        replica["template"]["spec"]["nodeSelector"] = json!({"example.com/there-is": "none"});
    });
    scene.create(job).await?;
    let refused = |told: &str| told.contains("0/2 nodes are unavailable");
    let words = ["describe", "pod", "a-worker-0"];
    let told = scene.until(&words, "the reason on the pod", refused).await?;
    contains(
        "describe",
        &told,
        &["FailedScheduling", "didn't match Pod's node affinity/selector"],
    )?;
    scene.told("tfjob/a", &["PodGroupPending", "0/2 nodes are unavailable"]).await?;
    let table = scene.ok(&["get", "pods"]).await?;
    contains("table", &table, &["a-worker-0", "Pending"])
}

async fn failed_replica_of_a_gang_is_restarted(scene: &Scene) -> Result<()> {
    let device = devices(scene, [1, 1]).await?;
    scene.create(gang("a", 2, &device).restart("ExitCode")).await?;
    scene.runs("a").await?;
    let (uid, _) = scene.life("a-worker-1").await?;
    scene.end("a-worker-1", 138).await?;
    scene.is_replaced("a-worker-1", &uid).await?;
    fields("job", &scene.get("tfjob/a").await?, &[("/status/restarts", json!(1))])?;
    // A pod that is no part of a gang is left to the cluster's scheduler.
    let other = ending("other", "Never", 0).edit("Worker", |replica| {
        replica["template"]["spec"]["schedulerName"] = "default-scheduler".into();
    });
    scene.create(other).await?;
    scene.ends("other", "Succeeded").await?;
    let pod = scene.get("pod/other-worker-0").await?;
    equal("scheduler", text(&pod["spec"]["schedulerName"]), "default-scheduler")
}

async fn gang_that_a_quota_holds_back_says_so_and_runs_when_it_is_raised(
    scene: &Scene,
) -> Result<()> {
    scene.ok(&["create", "quota", "small", "--hard=pods=1"]).await?;
    scene.wait("quota/small", "jsonpath={.status.used.pods}=0").await?;
    scene.create(job("a", &[("Worker", 2, TOLD)])).await?;
    let refused = |table: &str| table.contains("ReplicaFailure");
    scene.until(&["get", "tfjob", "a"], "the refusal", refused).await?;
    let held = scene.get("tfjob/a").await?;
    let message = text(&condition(&held, "ReplicaFailure")["message"]);
    contains("message", message, &["exceeded quota: small"])?;
    // What is there of it does not start alone.
    let nodes = scene.ok(&["get", "pods", "-o=jsonpath={.items[*].spec.nodeName}"]).await?;
    equal("nodes", nodes.trim(), "")?;
    scene.ok(&["patch", "quota", "small", "-p", r#"{"spec":{"hard":{"pods":"2"}}}"#]).await?;
    scene.runs("a").await?;
    let now = scene.get("tfjob/a").await?;
    ensure!(condition(&now, "ReplicaFailure").is_null(), "{}", now["status"]);
    Ok(())
}

async fn user_of_one_namespace_is_told_why_a_gang_waits(scene: &Scene) -> Result<()> {
    let device = devices(scene, [1, 1]).await?;
    scene.create(gang("first", 2, &device)).await?;
    scene.runs("first").await?;
    scene.create(gang("second", 1, &device)).await?;
    scene.told("pod/second-worker-0", &["FailedScheduling", "1 too little"]).await?;
    let ns = scene.namespace.as_str();
    let user = super::users::as_account(scene, "dave").await?;
    let account = format!("--serviceaccount={ns}:dave");
    scene.ok(&["create", "rolebinding", "view", "--clusterrole=view", &account]).await?;
    let kubeconfig = user.kubeconfig().display().to_string();
    let place = ["-n", ns, "--kubeconfig", &kubeconfig];
    let why = scene.site.trainyard(&[&["explain", "second"], &place[..]].concat()).await?;
    let parts = [&device, "1 too little", "not seen", "nodes", "trainyard-explain"];
    contains("explain", &why, &parts)?;
    let log = scene.site.trainyard(&[&["logs", "first"], &place[..]].concat()).await?;
    contains("logs", &log, &["worker-0", "worker-1", "up"])?;
    // With the role that an administrator may give, the whole answer.
    let binding = format!("explain-{ns}");
    let words =
        ["create", "clusterrolebinding", &binding, "--clusterrole=trainyard-explain", &account];
    scene.site.ok(&words).await?;
    let why = scene.site.trainyard(&[&["explain", "second"], &place[..]].concat()).await?;
    scene.site.ok(&["delete", "clusterrolebinding", &binding]).await?;
    contains("explain", &why, &[&device, "1 too little", "first"])?;
    ensure!(!why.contains("not seen") && !why.contains("may not list"), "{why}");
    scene.end("first-worker-0", 0).await?;
    scene.ends("first", "Succeeded").await?;
    scene.runs("second").await
}
