//! Jobs that go well: their pods, their numbers, their end.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Work, a_while, condition, name};
use crate::check;
use crate::controllers::ground::Ground;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!(
        "jobs": make_a_pod_and_complete,
        count_ready_pods,
        keep_to_their_parallelism,
        end_with_the_first_success_without_completions,
        of_no_completions_are_complete_at_once,
        of_no_parallelism_wait,
        grow_when_told,
        shrink_when_told,
        tell_when_pods_cannot_be_made,
        stay_as_they_ended,
    )
}

async fn make_a_pod_and_complete(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "simple", &json!({})).await?;
    let pod = work.until_one().await?;
    let job = work.job().await?;
    let uid = &job["metadata"]["uid"];
    ensure!(name(&pod).starts_with("simple-"), "{}", name(&pod));
    check::equal("the length of its name", name(&pod).len(), "simple-".len() + 5)?;
    check::fields(
        "the pod",
        &pod,
        &[
            ("/metadata/generateName", json!("simple-")),
            ("/metadata/finalizers", json!(["batch.kubernetes.io/job-tracking"])),
            (
                "/metadata/ownerReferences",
                json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "simple", "uid": uid,
                    "controller": true, "blockOwnerDeletion": true}]),
            ),
            (
                "/metadata/labels",
                json!({"job-name": "simple", "controller-uid": uid,
                    "batch.kubernetes.io/job-name": "simple",
                    "batch.kubernetes.io/controller-uid": uid}),
            ),
            ("/metadata/annotations", Value::Null),
            ("/spec/hostname", Value::Null),
            ("/spec/containers/0/env", Value::Null),
        ],
    )?;
    work.until_told("SuccessfulCreate", &format!("Created pod: {}", name(&pod))).await?;
    let job = work.until_status(&[("active", json!(1))]).await?;
    let mut status = job["status"].clone();
    ensure!(status["startTime"].is_string(), "{status}");
    status["startTime"] = Value::Null;
    let begun = json!({"active": 1, "ready": 0, "terminating": 0, "startTime": null,
        "uncountedTerminatedPods": {}});
    check::equal("the status", &status, &begun)?;
    work.ends(&pod, "Succeeded").await?;
    let job = work.until_complete().await?;
    check::fields(
        "the status",
        &job["status"],
        &[("/succeeded", json!(1)), ("/failed", Value::Null), ("/completedIndexes", Value::Null)],
    )?;
    let pod = work.place.look(&format!("pods/{}", name(&pod))).await?;
    check::equal("its finalizers", &pod["metadata"]["finalizers"], &Value::Null)?;
    check::equal("its pods", work.pods().await?.len(), 1)
}

async fn count_ready_pods(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "ready", &json!({"parallelism": 2, "completions": 2})).await?;
    let pods = work.until_active(2).await?;
    work.runs(&pods[0], true).await?;
    work.until_status(&[("active", json!(2)), ("ready", json!(1))]).await?;
    work.runs(&pods[1], true).await?;
    work.until_status(&[("ready", json!(2))]).await?;
    work.runs(&pods[0], false).await?;
    work.until_status(&[("ready", json!(1))]).await?;
    for pod in &pods {
        work.ends(pod, "Succeeded").await?;
    }
    let job = work.until_complete().await?;
    check::equal("succeeded", &job["status"]["succeeded"], &json!(2))
}

async fn keep_to_their_parallelism(ground: &Ground) -> Result<()> {
    let work =
        Work::start(ground, "parallel", &json!({"parallelism": 2, "completions": 3})).await?;
    let pods = work.until_active(2).await?;
    a_while().await;
    check::equal("its pods", work.pods().await?.len(), 2)?;
    work.ends(&pods[0], "Succeeded").await?;
    work.until_status(&[("succeeded", json!(1)), ("active", json!(2))]).await?;
    check::equal("its pods", work.pods().await?.len(), 3)?;
    // One is missing and one runs: no other is begun.
    work.ends(&pods[1], "Succeeded").await?;
    work.until_status(&[("succeeded", json!(2)), ("active", json!(1))]).await?;
    a_while().await;
    check::equal("its pods", work.pods().await?.len(), 3)?;
    let last = work.until_one().await?;
    work.ends(&last, "Succeeded").await?;
    let job = work.until_complete().await?;
    check::equal("succeeded", &job["status"]["succeeded"], &json!(3))
}

async fn end_with_the_first_success_without_completions(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "queue", &json!({"parallelism": 2})).await?;
    let job = work.job().await?;
    check::equal("completions", &job["spec"]["completions"], &Value::Null)?;
    let pods = work.until_active(2).await?;
    work.ends(&pods[0], "Succeeded").await?;
    work.until_status(&[("succeeded", json!(1)), ("active", json!(1))]).await?;
    a_while().await;
    check::equal("its pods", work.pods().await?.len(), 2)?;
    let job = work.job().await?;
    check::equal("complete", condition(&job, "Complete"), &Value::Null)?;
    work.ends(&pods[1], "Succeeded").await?;
    let job = work.until_complete().await?;
    check::equal("succeeded", &job["status"]["succeeded"], &json!(2))
}

async fn of_no_completions_are_complete_at_once(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "none", &json!({"completions": 0})).await?;
    let job = work.until_complete().await?;
    check::equal("succeeded", &job["status"]["succeeded"], &Value::Null)?;
    check::equal("its pods", work.pods().await?.len(), 0)
}

async fn of_no_parallelism_wait(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "still", &json!({"parallelism": 0, "completions": 1})).await?;
    let status = [("ready", json!(0)), ("active", Value::Null), ("terminating", json!(0))];
    let job = work.until_status(&status).await?;
    ensure!(job["status"]["startTime"].is_string(), "{job:#}");
    a_while().await;
    check::equal("its pods", work.pods().await?.len(), 0)?;
    work.change(&json!({"parallelism": 1})).await?;
    let pod = work.until_one().await?;
    work.ends(&pod, "Succeeded").await?;
    work.until_complete().await.map(|_| ())
}

async fn grow_when_told(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "grow", &json!({"parallelism": 1, "completions": 4})).await?;
    work.until_active(1).await?;
    work.change(&json!({"parallelism": 3})).await?;
    work.until_active(3).await?;
    let job = work.until_status(&[("active", json!(3))]).await?;
    check::equal("generation", &job["metadata"]["generation"], &json!(2))
}

async fn shrink_when_told(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "shrink", &json!({"parallelism": 3, "completions": 5})).await?;
    let pods = work.until_active(3).await?;
    // The one that has got furthest stays.
    work.runs(&pods[1], true).await?;
    work.until_status(&[("ready", json!(1))]).await?;
    work.change(&json!({"parallelism": 1})).await?;
    let kept = work.until_one().await?;
    check::equal("the pod that stays", name(&kept), name(&pods[1]))?;
    work.until_status(&[("active", json!(1)), ("terminating", json!(2))]).await?;
    for pod in [&pods[0], &pods[2]] {
        work.gone(pod).await?;
    }
    let job = work.until_status(&[("active", json!(1)), ("terminating", json!(0))]).await?;
    check::equal("failed", &job["status"]["failed"], &Value::Null)?;
    let mut wanted = [0, 2].map(|at| format!("Deleted pod: {}", name(&pods[at])));
    wanted.sort();
    check::equal("the events", work.told("SuccessfulDelete").await?, wanted.to_vec())
}

async fn tell_when_pods_cannot_be_made(ground: &Ground) -> Result<()> {
    let spec = json!({"parallelism": 4, "completions": 4,
        "template.priorityClassName": "of-nobody"});
    let work = Work::start(ground, "refused", &spec).await?;
    let message = work.place.until_event("refused", "FailedCreate").await?;
    let words = "no PriorityClass with name of-nobody was found";
    check::contains("the event", &message, &["Error creating: pods \"refused-", words])?;
    let job = work.until_status(&[("ready", json!(0))]).await?;
    check::equal("active", &job["status"]["active"], &Value::Null)
}

/// What happens to pods afterwards changes nothing.
async fn stay_as_they_ended(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "over", &json!({})).await?;
    let pod = work.until_one().await?;
    work.ends(&pod, "Succeeded").await?;
    let before = work.until_complete().await?;
    work.place.delete(&format!("pods/{}", name(&pod)), &json!({"gracePeriodSeconds": 0})).await?;
    work.place.until_gone(&format!("pods/{}", name(&pod))).await?;
    work.change(&json!({"parallelism": 3})).await?;
    a_while().await;
    check::equal("its pods", work.pods().await?.len(), 0)?;
    check::equal("the status", &work.job().await?["status"], &before["status"])
}
