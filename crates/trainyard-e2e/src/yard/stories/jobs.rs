//! TFJobs with small programs, from submission to deletion.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Story;
use super::pods::last_row;
use crate::check::{contains, equal};
use crate::harness::cases;
use crate::manifest::tfjob;
use crate::yard::bed::Bed;

pub(super) fn all() -> Vec<Story> {
    cases!["kubectl/jobs":
        to_success, "create -f, wait --for=condition=Succeeded tfjob/X", "pods run, the job succeeds, finished pods stay for their logs";
        to_failure, "get tfjob, describe tfjob (failed)", "`Failed`, and which container ended how, with its last words";
        scaled, "scale tfjob/X --replicas=N", "workers come and go";
        suspended, "patch tfjob X --type=merge (suspend)", "its pods end; resumed, it starts anew";
        deleted, "delete tfjob X", "its pods and services go with it";
        events, "events --for tfjob/X, get events --sort-by", "what happened, in order";
        too_large, "describe tfjob (does not fit)", "`PodGroupPending`, with the resource that is short and by how much; so does each pod, Pending meanwhile";
        batch_job, "wait --for=condition=Complete job/X, logs job/X", "a plain Job runs to its end, and its pod stays for its log";
    ]
}

/// A job whose workers run a shell.
fn job(name: &str, workers: i64, script: &str) -> Value {
    tfjob(name)
        .workers(workers)
        .edit("Worker", |spec| spec["template"]["spec"]["terminationGracePeriodSeconds"] = 1.into())
        .container("Worker", |container| {
            container["image"] = "test".into();
            container["command"] = json!(["sh", "-c", script]);
        })
        .json()
}

async fn submit(bed: &Bed, ns: &str, job: &Value) -> Result<()> {
    bed.feed(&["-n", ns, "create", "-f", "-"], &job.to_string()).await.map(drop)
}

async fn until(bed: &Bed, ns: &str, condition: &str) -> Result<()> {
    let condition = format!("--for=condition={condition}");
    bed.ok(&["-n", ns, "wait", &condition, "--timeout=55s", "tfjob/j"]).await.map(drop)
}

async fn to_success(bed: &Bed, ns: &str) -> Result<()> {
    submit(bed, ns, &job("j", 2, "echo $TF_CONFIG; sleep 1")).await?;
    until(bed, ns, "Succeeded").await?;
    let table = bed.ok(&["-n", ns, "get", "tfjob", "j"]).await?;
    ensure!(last_row(&table)[..2] == ["j", "Succeeded"], "{table}");
    let log = bed.ok(&["-n", ns, "logs", "j-worker-0"]).await?;
    contains("TF_CONFIG", &log, &["j-worker-1.", ":2222", "\"index\":0"])?;
    let table = bed.ok(&["-n", ns, "get", "pod", "j-worker-0"]).await?;
    ensure!(last_row(&table)[..3] == ["j-worker-0", "0/1", "Completed"], "{table}");
    Ok(())
}

async fn to_failure(bed: &Bed, ns: &str) -> Result<()> {
    submit(bed, ns, &job("j", 1, "echo my last words; exit 3")).await?;
    until(bed, ns, "Failed").await?;
    let table = bed.ok(&["-n", ns, "get", "tfjob", "j"]).await?;
    ensure!(last_row(&table)[..2] == ["j", "Failed"], "{table}");
    let told = bed.ok(&["-n", ns, "describe", "tfjob", "j"]).await?;
    contains("describe", &told, &["j-worker-0", "exited with code 3", "my last words"])
}

async fn scaled(bed: &Bed, ns: &str) -> Result<()> {
    submit(bed, ns, &job("j", 1, "sleep 600")).await?;
    until(bed, ns, "Running").await?;
    let told = bed.ok(&["-n", ns, "scale", "tfjob/j", "--replicas=3"]).await?;
    equal("scale", told.trim(), "tfjob.kubeflow.org/j scaled")?;
    let running = |count: usize| move |table: &str| table.matches("Running").count() == count;
    bed.until(&["-n", ns, "get", "pod"], "three workers", running(3)).await?;
    bed.ok(&["-n", ns, "scale", "tfjob", "j", "--current-replicas=3", "--replicas=1"]).await?;
    let words = ["-n", ns, "get", "pod", "-o", "name"];
    bed.until(&words, "one worker", |names| names.trim() == "pod/j-worker-0").await.map(drop)
}

async fn suspended(bed: &Bed, ns: &str) -> Result<()> {
    submit(bed, ns, &job("j", 1, "sleep 600")).await?;
    until(bed, ns, "Running").await?;
    let set = async |value: bool| {
        let patch = json!({"spec": {"runPolicy": {"suspend": value}}}).to_string();
        bed.ok(&["-n", ns, "patch", "tfjob", "j", "--type=merge", "-p", &patch]).await
    };
    set(true).await?;
    until(bed, ns, "Suspended").await?;
    bed.until(&["-n", ns, "get", "pod", "-o", "name"], "an end", str::is_empty).await?;
    set(false).await?;
    until(bed, ns, "Running").await
}

async fn deleted(bed: &Bed, ns: &str) -> Result<()> {
    submit(bed, ns, &job("j", 2, "sleep 600")).await?;
    until(bed, ns, "Running").await?;
    let told = bed.ok(&["-n", ns, "delete", "tfjob", "j"]).await?;
    contains("delete", &told, &["tfjob.kubeflow.org \"j\" deleted"])?;
    let words = ["-n", ns, "get", "pod,service,endpointslice", "-o", "name"];
    bed.until(&words, "an empty namespace", str::is_empty).await.map(drop)
}

async fn events(bed: &Bed, ns: &str) -> Result<()> {
    submit(bed, ns, &job("j", 1, "true")).await?;
    until(bed, ns, "Succeeded").await?;
    let words = ["-n", ns, "events", "--for", "tfjob/j"];
    let told = bed.until(&words, "the end", |told| told.contains("TFJobSucceeded")).await?;
    let heads: Vec<&str> = told.lines().next().unwrap_or_default().split_whitespace().collect();
    equal("heads", heads, ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"])?;
    contains("events", &told, &["SuccessfulCreatePod", "TFJob/j", "Created pod: j-worker-0"])?;
    let words = ["-n", ns, "get", "events", "--sort-by=.lastTimestamp", "-o", "wide"];
    let told = bed.ok(&words).await?;
    contains("get events", &told, &["tf-operator", "tfjob/j", "pod/j-worker-0", "Started"])?;
    let words =
        ["-n", ns, "get", "events", "--field-selector", "involvedObject.kind=Pod,type=Normal"];
    let told = bed.ok(&words).await?;
    ensure!(told.contains("pod/j-worker-0") && !told.contains("tfjob/j"), "{told}");
    Ok(())
}

async fn too_large(bed: &Bed, ns: &str) -> Result<()> {
    let mut large = job("j", 2, "sleep 600");
    let spec = &mut large["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"];
    // Two nodes with two each: six are more than there are, and each pod says so.
    spec["containers"][0]["resources"] = json!({"limits": {"nvidia.com/gpu": 3}});
    submit(bed, ns, &large).await?;
    let words = ["-n", ns, "describe", "tfjob", "j"];
    let is_told = |told: &str| told.contains("PodGroupPending") && says_what_is_short(told);
    bed.until(&words, "an explanation", is_told).await?;
    let pods = bed.ok(&["-n", ns, "get", "pod", "-o", "name"]).await?;
    equal("pods", pods.trim(), "pod/j-worker-0\npod/j-worker-1")?;
    let words = ["-n", ns, "describe", "pod", "j-worker-1"];
    let is_told = |told: &str| told.contains("FailedScheduling") && says_what_is_short(told);
    bed.until(&words, "the pod's reason", is_told).await.map(drop)
}

/// Is it said how many of six devices are free and how many are missing? Of the four that there are, other
/// stories may have some.
fn says_what_is_short(told: &str) -> bool {
    let numbers = |told: &str| -> Option<(u32, u32)> {
        let (free, missing) = told.split_once(" free: ")?;
        let (missing, _) = missing.split_once(" too little")?;
        Some((free.parse().ok()?, missing.parse().ok()?))
    };
    told.split("nvidia.com/gpu: 6 asked for, ")
        .skip(1)
        .filter_map(numbers)
        .any(|(free, missing)| free <= 4 && free + missing == 6)
}

async fn batch_job(bed: &Bed, ns: &str) -> Result<()> {
    let object = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "plain"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "test", "command": ["echo", "done"]}],
        }}},
    });
    bed.feed(&["-n", ns, "create", "-f", "-"], &object.to_string()).await?;
    let complete = "--for=condition=Complete";
    bed.ok(&["-n", ns, "wait", complete, "--timeout=60s", "job/plain"]).await?;
    let table = bed.ok(&["-n", ns, "get", "job", "plain"]).await?;
    contains("get job", &table, &["plain", "Complete", "1/1"])?;
    equal("its log", bed.ok(&["-n", ns, "logs", "job/plain"]).await?.as_str(), "done\n")?;
    bed.ok(&["-n", ns, "delete", "job", "plain"]).await?;
    bed.until(&["-n", ns, "get", "pods", "-o", "name"], "an end of its pod", str::is_empty)
        .await
        .map(drop)
}
