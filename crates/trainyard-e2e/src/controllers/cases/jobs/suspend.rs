//! Jobs that are suspended and resumed.

use std::sync::Arc;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Work, a_while, condition, name};
use crate::check;
use crate::controllers::ground::Ground;
use crate::harness::{Case, cases};

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    cases!(
        "jobs": begin_when_they_are_resumed,
        stop_when_they_are_suspended,
        may_be_suspended_again,
    )
}

fn said(job: &Value) -> [&str; 3] {
    let suspended = condition(job, "Suspended");
    ["status", "reason", "message"].map(|key| suspended[key].as_str().unwrap_or_default())
}

const HELD: [&str; 3] = ["True", "JobSuspended", "Job suspended"];
const FREE: [&str; 3] = ["False", "JobResumed", "Job resumed"];

async fn begin_when_they_are_resumed(ground: &Ground) -> Result<()> {
    let spec = json!({"suspend": true, "activeDeadlineSeconds": 100});
    let work = Work::start(ground, "held", &spec).await?;
    let job = work.until("suspended", |job| said(job) == HELD).await?;
    check::equal("startTime", &job["status"]["startTime"], &Value::Null)?;
    work.until_told("Suspended", "Job suspended").await?;
    a_while().await;
    check::equal("its pods", work.pods().await?.len(), 0)?;
    work.change(&json!({"suspend": false})).await?;
    let job = work.until("resumed", |job| said(job) == FREE).await?;
    ensure!(job["status"]["startTime"].is_string(), "{job:#}");
    work.until_told("Resumed", "Job resumed").await?;
    let pod = work.until_one().await?;
    work.ends(&pod, "Succeeded").await?;
    let job = work.until("complete", |job| condition(job, "Complete")["status"] == "True").await?;
    check::equal("what is left of it", said(&job), FREE)
}

async fn stop_when_they_are_suspended(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "stopped", &json!({"parallelism": 2, "completions": 2})).await?;
    let pods = work.until_active(2).await?;
    work.runs(&pods[0], true).await?;
    work.until_status(&[("ready", json!(1))]).await?;
    work.change(&json!({"suspend": true})).await?;
    let job = work.until("suspended", |job| said(job) == HELD).await?;
    check::equal("startTime", &job["status"]["startTime"], &Value::Null)?;
    for pod in &pods {
        work.gone(pod).await?;
    }
    let status = [("active", Value::Null), ("ready", json!(0)), ("terminating", json!(0))];
    let job = work.until_status(&status).await?;
    check::equal("failed", &job["status"]["failed"], &Value::Null)?;
    check::equal("the events", work.told("SuccessfulDelete").await?.len(), 2)?;
    work.change(&json!({"suspend": false})).await?;
    let again = work.until_active(2).await?;
    ensure!(pods.iter().all(|pod| name(pod) != name(&again[0])), "an old pod");
    Ok(())
}

async fn may_be_suspended_again(ground: &Ground) -> Result<()> {
    let work = Work::start(ground, "twice", &json!({"suspend": true})).await?;
    for _ in 0..2 {
        work.until("suspended", |job| said(job) == HELD).await?;
        work.change(&json!({"suspend": false})).await?;
        let pod = work.until_one().await?;
        work.until("resumed", |job| said(job) == FREE).await?;
        work.change(&json!({"suspend": true})).await?;
        work.gone(&pod).await?;
    }
    let job = work.until("suspended", |job| said(job) == HELD).await?;
    let all = job["status"]["conditions"].as_array().map_or(0, Vec::len);
    check::equal("the conditions", all, 1)
}
