//! Jobs of `batch/v1`. These cases are also played on the real kube-controller-manager.
//!
//! Their pods are on a node that nobody runs: each case is their kubelet.

mod end;
mod indexes;
mod life;
mod pods;
mod suspend;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use crate::check;
use crate::controllers::ground::{Ground, Place, second};
use crate::harness::Case;

/// Longer than the longest time between two looks at a job.
const PATIENCE: Duration = Duration::from_secs(40);

pub(super) fn all() -> Vec<Case<Arc<Ground>>> {
    [end::all(), indexes::all(), life::all(), pods::all(), suspend::all()].concat()
}

/// A job in a namespace of its own.
struct Work {
    place: Place,
    name: String,
}

/// The manifest of a job whose pods are on the node of `place`.
fn manifest(place: &Place, name: &str, spec: &Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"spec": {
            "nodeName": place.node, "restartPolicy": "Never", "terminationGracePeriodSeconds": 5,
            "containers": [{"name": "main", "image": "none"}],
        }}},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        match key.strip_prefix("template.") {
            Some(key) => job["spec"]["template"]["spec"][key] = value.clone(),
            None => job["spec"][key] = value.clone(),
        }
    }
    job
}

impl Work {
    /// Creates a job. Keys that begin with `template.` are fields of its pods.
    async fn start(ground: &Ground, name: &str, spec: &Value) -> Result<Self> {
        let place = ground.place(name).await?;
        place.make("batch/v1/jobs", &manifest(&place, name, spec)).await?;
        Ok(Self { place, name: name.to_owned() })
    }

    fn path(&self) -> String {
        format!("batch/v1/jobs/{}", self.name)
    }

    async fn job(&self) -> Result<Value> {
        self.place.look(&self.path()).await
    }

    async fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        self.place.until(&self.path(), what, holds).await
    }

    /// Waits until fields of the status have these values; what is absent is null.
    async fn until_status(&self, wanted: &[(&str, Value)]) -> Result<Value> {
        let holds = |job: &Value| wanted.iter().all(|(key, value)| job["status"][*key] == *value);
        self.until(&format!("with status {wanted:?}"), holds).await
    }

    /// Waits until a condition is true; answers it.
    async fn until_condition(&self, kind: &str) -> Result<Value> {
        let holds = |job: &Value| condition(job, kind)["status"] == "True";
        let job = self.until(&format!("with condition {kind}"), holds).await?;
        Ok(condition(&job, kind).clone())
    }

    /// All its pods, the first ones first.
    async fn pods(&self) -> Result<Vec<Value>> {
        let list = self.place.look(&format!("pods?labelSelector=job-name%3D{}", self.name)).await?;
        let mut pods = list["items"].as_array().cloned().unwrap_or_default();
        let age = |pod: &Value| pod["metadata"]["creationTimestamp"].as_str().map(str::to_owned);
        pods.sort_by_key(|pod| (age(pod), name(pod).to_owned()));
        Ok(pods)
    }

    /// Waits until so many of its pods have neither ended nor been told to.
    async fn until_active(&self, count: usize) -> Result<Vec<Value>> {
        let begun = Instant::now();
        loop {
            let mut pods = self.pods().await?;
            pods.retain(is_active);
            if pods.len() == count {
                return Ok(pods);
            }
            if begun.elapsed() > PATIENCE {
                let names: Vec<&str> = pods.iter().map(name).collect();
                bail!(
                    "not {count} active pods within {PATIENCE:?} but {names:?}: {:#}",
                    self.job().await?
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// The one pod that is active.
    async fn until_one(&self) -> Result<Value> {
        self.until_active(1).await?.pop().context("it was there")
    }

    /// The kubelet says that a pod runs.
    async fn runs(&self, pod: &Value, ready: bool) -> Result<()> {
        self.place.runs(name(pod), "10.7.77.7", ready).await
    }

    /// The kubelet says that a pod has ended.
    async fn ends(&self, pod: &Value, phase: &str) -> Result<()> {
        let code = i32::from(phase != "Succeeded");
        let now = second(jiff::Timestamp::now());
        let status = json!({"status": {"phase": phase, "containerStatuses": [{
            "name": "main", "image": "none", "imageID": "", "restartCount": 0, "ready": false,
            "state": {"terminated": {"exitCode": code, "startedAt": now, "finishedAt": now}},
        }]}});
        self.place.change(&format!("pods/{}/status", name(pod)), &status).await
    }

    /// The kubelet has ended a pod that was told to go.
    async fn gone(&self, pod: &Value) -> Result<()> {
        let going = |found: &Value| found["metadata"]["deletionTimestamp"].is_string();
        let path = format!("pods/{}", name(pod));
        self.place.until(&path, "told to go", going).await?;
        self.place.delete(&path, &json!({"gracePeriodSeconds": 0})).await?;
        self.place.until_gone(&path).await
    }

    async fn change(&self, spec: &Value) -> Result<()> {
        self.place.change(&self.path(), &json!({"spec": spec})).await
    }

    /// The messages of all events about it with that reason, in order.
    async fn told(&self, reason: &str) -> Result<Vec<String>> {
        let list = self.place.look("events").await?;
        let about = |event: &&Value| {
            event["involvedObject"]["name"] == *self.name && event["reason"] == reason
        };
        let all = list["items"].as_array().into_iter().flatten().filter(about);
        let mut told: Vec<String> =
            all.map(|event| event["message"].as_str().unwrap_or_default().to_owned()).collect();
        told.sort();
        Ok(told)
    }

    /// Waits for an event about it; its message must be this.
    async fn until_told(&self, reason: &str, message: &str) -> Result<()> {
        check::equal(reason, self.place.until_event(&self.name, reason).await?, message)
    }

    /// The kinds, reasons and messages of its conditions, once it has ended.
    async fn until_ended(&self, kind: &str, wanted: &[[&str; 4]]) -> Result<Value> {
        let holds = |job: &Value| condition(job, kind)["status"] == "True";
        let job = self.until(&format!("ended as {kind}"), holds).await?;
        let all = job["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let said: Vec<[&str; 4]> = all
            .iter()
            .map(|one| {
                ["type", "status", "reason", "message"].map(|key| one[key].as_str().unwrap_or(""))
            })
            .collect();
        check::equal("the conditions", said, wanted.to_vec())?;
        for one in &all {
            for time in ["lastProbeTime", "lastTransitionTime"] {
                check::equal(time, one[time].is_string(), true)?;
            }
        }
        check::fields(
            "the status of a job that has ended",
            &job["status"],
            &[
                ("/active", Value::Null),
                ("/ready", json!(0)),
                ("/terminating", json!(0)),
                ("/uncountedTerminatedPods", json!({})),
            ],
        )?;
        Ok(job)
    }

    async fn until_complete(&self) -> Result<Value> {
        let words = "Reached expected number of succeeded pods";
        let job = self
            .until_ended(
                "Complete",
                &[
                    ["SuccessCriteriaMet", "True", "CompletionsReached", words],
                    ["Complete", "True", "CompletionsReached", words],
                ],
            )
            .await?;
        // It may be a second before that of the condition.
        check::equal("completionTime", job["status"]["completionTime"].is_string(), true)?;
        self.until_told("Completed", "Job completed").await?;
        Ok(job)
    }

    async fn until_failed(&self, reason: &str, message: &str) -> Result<Value> {
        let conditions =
            [["FailureTarget", "True", reason, message], ["Failed", "True", reason, message]];
        let job = self.until_ended("Failed", &conditions).await?;
        check::equal("completionTime", &job["status"]["completionTime"], &Value::Null)?;
        self.until_told(reason, message).await?;
        Ok(job)
    }
}

fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn is_active(pod: &Value) -> bool {
    let ended = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
    !ended && pod["metadata"]["deletionTimestamp"].is_null()
}

fn condition<'a>(job: &'a Value, kind: &str) -> &'a Value {
    let all = job["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|one| one["type"] == kind).unwrap_or(&Value::Null)
}

/// The controller has had the time to do what it should not.
async fn a_while() {
    tokio::time::sleep(Duration::from_secs(3)).await;
}
