//! Jobs that fail, and jobs that go.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Work, a_while, name};
use crate::check;
use crate::controllers::ground::{Ground, propagated};
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!(
        "jobs": fail_at_their_backoff_limit,
        stop_what_runs_when_they_fail,
        count_restarts_in_place,
        wait_before_they_try_again,
        wait_longer_each_time,
        end_at_their_deadline,
        go_when_their_time_is_over,
        of_a_longer_life_stay,
        take_their_pods_along,
        go_after_their_pods,
        leave_their_pods_behind,
        leave_their_pods_behind_unless_told,
    )
}

const LIMIT: [&str; 2] = ["BackoffLimitExceeded", "Job has reached the specified backoff limit"];

async fn fail_at_their_backoff_limit(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "fails", &json!({"backoffLimit": 0})).await?;
    let pod = work.until_one().await?;
    work.ends(&pod, "Failed").await?;
    let job = work.until_failed(LIMIT[0], LIMIT[1]).await?;
    let wanted = [("/failed", json!(1)), ("/succeeded", Value::Null)];
    check::fields("the status", &job["status"], &wanted)?;
    let pod = work.place.look(&format!("pods/{}", name(&pod))).await?;
    check::equal("its finalizers", &pod["metadata"]["finalizers"], &Value::Null)
}

async fn stop_what_runs_when_they_fail(ground: &Ground) -> Result<()> {
    let spec = json!({"backoffLimit": 0, "parallelism": 2, "completions": 2});
    let work = Work::start(ground, "stops", &spec).await?;
    let pods = work.until_active(2).await?;
    work.runs(&pods[1], true).await?;
    work.until_status(&[("ready", json!(1))]).await?;
    work.ends(&pods[0], "Failed").await?;
    let target = work.until_condition("FailureTarget").await?;
    check::equal("the reason", &target["reason"], LIMIT[0])?;
    let status = [("failed", json!(2)), ("terminating", json!(1)), ("active", Value::Null)];
    let job = work.until_status(&status).await?;
    // Not before the last one has ended.
    check::equal("failed", super::condition(&job, "Failed"), &Value::Null)?;
    a_while().await;
    check::equal("failed", super::condition(&work.job().await?, "Failed"), &Value::Null)?;
    work.gone(&pods[1]).await?;
    work.until_failed(LIMIT[0], LIMIT[1]).await?;
    let words = format!("Deleted pod: {}", name(&pods[1]));
    check::equal("the events", work.told("SuccessfulDelete").await?, vec![words])
}

async fn count_restarts_in_place(ground: &Ground) -> Result<()> {
    let spec = json!({"backoffLimit": 2, "template.restartPolicy": "OnFailure"});
    let work = Work::start(ground, "restarts", &spec).await?;
    let pod = work.until_one().await?;
    let restarted = |times: u32| {
        json!({"status": {"phase": "Running", "containerStatuses": [{
            "name": "main", "image": "none", "imageID": "", "ready": false,
            "restartCount": times, "state": {"running": {}}}]}})
    };
    let path = format!("pods/{}/status", name(&pod));
    work.place.change(&path, &restarted(1)).await?;
    a_while().await;
    check::equal(
        "it goes on",
        super::condition(&work.job().await?, "FailureTarget"),
        &Value::Null,
    )?;
    work.place.change(&path, &restarted(2)).await?;
    work.until_condition("FailureTarget").await?;
    work.gone(&pod).await?;
    let job = work.until_failed(LIMIT[0], LIMIT[1]).await?;
    check::equal("failed", &job["status"]["failed"], &json!(1))
}

/// Times are kept in whole seconds, hence the second less.
async fn wait_before_they_try_again(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "retries", &json!({"backoffLimit": 2})).await?;
    let first = work.until_one().await?;
    work.ends(&first, "Failed").await?;
    let begun = Instant::now();
    work.until_status(&[("failed", json!(1)), ("active", Value::Null)]).await?;
    let second = work.until_one().await?;
    let waited = begun.elapsed();
    let few = Duration::from_secs(9)..Duration::from_secs(25);
    ensure!(few.contains(&waited), "the second pod came after {waited:?}");
    ensure!(name(&second) != name(&first), "the same pod");
    work.ends(&second, "Succeeded").await?;
    let job = work.until_complete().await?;
    let counts = [("/failed", json!(1)), ("/succeeded", json!(1))];
    check::fields("the status", &job["status"], &counts)
}

async fn wait_longer_each_time(ground: &Ground) -> Result<()> {
    let spec = json!({"backoffLimit": 5, "parallelism": 2, "completions": 2});
    let work = Work::start(ground, "slower", &spec).await?;
    let pods = work.until_active(2).await?;
    for pod in &pods {
        work.ends(pod, "Failed").await?;
    }
    let begun = Instant::now();
    work.until_status(&[("failed", json!(2))]).await?;
    work.until_active(2).await?;
    let waited = begun.elapsed();
    // Two have failed: twice ten seconds.
    let few = Duration::from_secs(18)..Duration::from_secs(40);
    ensure!(few.contains(&waited), "the next pods came after {waited:?}");
    Ok(())
}

async fn end_at_their_deadline(ground: &Ground) -> Result<()> {
    let spec = json!({"activeDeadlineSeconds": 2});
    let work = Work::start(ground, "deadline", &spec).await?;
    let pod = work.until_one().await?;
    work.runs(&pod, true).await?;
    let target = work.until_condition("FailureTarget").await?;
    check::equal("the reason", &target["reason"], "DeadlineExceeded")?;
    work.gone(&pod).await?;
    let words = "Job was active longer than specified deadline";
    let job = work.until_failed("DeadlineExceeded", words).await?;
    check::equal("failed", &job["status"]["failed"], &json!(1))
}

async fn go_when_their_time_is_over(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "brief", &json!({"ttlSecondsAfterFinished": 1})).await?;
    let pod = work.until_one().await?;
    work.ends(&pod, "Succeeded").await?;
    work.place.until_gone(&work.path()).await?;
    work.place.until_gone(&format!("pods/{}", name(&pod))).await
}

async fn of_a_longer_life_stay(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "longer", &json!({"ttlSecondsAfterFinished": 600})).await?;
    let pod = work.until_one().await?;
    work.ends(&pod, "Succeeded").await?;
    work.until_complete().await?;
    a_while().await;
    ensure!(!work.job().await?.is_null(), "it is gone before its time");
    work.change(&json!({"ttlSecondsAfterFinished": 0})).await?;
    work.place.until_gone(&work.path()).await
}

async fn take_their_pods_along(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "along", &json!({"parallelism": 2, "completions": 2})).await?;
    let pods = work.until_active(2).await?;
    work.ends(&pods[0], "Succeeded").await?;
    work.until_status(&[("succeeded", json!(1))]).await?;
    work.place.delete(&work.path(), &propagated("Background")).await?;
    work.place.until_gone(&work.path()).await?;
    // What has ended needs no kubelet; what runs does, but nothing else holds it.
    work.gone(&pods[1]).await?;
    work.place.until_gone(&format!("pods/{}", name(&pods[0]))).await
}

async fn go_after_their_pods(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "after", &json!({})).await?;
    let pod = work.until_one().await?;
    work.runs(&pod, true).await?;
    work.until_status(&[("ready", json!(1))]).await?;
    work.place.delete(&work.path(), &propagated("Foreground")).await?;
    a_while().await;
    ensure!(!work.job().await?.is_null(), "gone before its pod");
    work.gone(&pod).await?;
    work.place.until_gone(&work.path()).await
}

async fn left_behind(work: &Work, options: &Value) -> Result<()> {
    let pod = work.until_one().await?;
    work.until_status(&[("active", json!(1))]).await?;
    work.place.delete(&work.path(), options).await?;
    work.place.until_gone(&work.path()).await?;
    let free = |pod: &Value| {
        pod["metadata"]["ownerReferences"].is_null() && pod["metadata"]["finalizers"].is_null()
    };
    let path = format!("pods/{}", name(&pod));
    work.place.until(&path, "nobody's", free).await?;
    a_while().await;
    let pod = work.place.look(&path).await?;
    check::equal("deletionTimestamp", &pod["metadata"]["deletionTimestamp"], &Value::Null)
}

async fn leave_their_pods_behind(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "behind", &json!({})).await?;
    left_behind(&work, &propagated("Orphan")).await
}

/// So it has always been with this kind.
async fn leave_their_pods_behind_unless_told(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "untold", &json!({})).await?;
    left_behind(&work, &json!({})).await
}
