//! What stories do in their namespace, by kubectl, and what they look at. That they have from the API itself: looking
//! is no part of any story, and a process for each look would be most of the machine's work.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use super::site::Scene;
use crate::kubectl::Outcome;
use crate::rest::Resource;
use crate::seen::{terminating, text};

/// As long as anything of busybox may take on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(100);
/// The same for kubectl.
const LONGEST: &str = "--timeout=100s";
/// The time between two looks.
const LOOK: Duration = Duration::from_millis(200);
/// The label with the name of a pod's job.
const JOB_NAME: &str = "training.kubeflow.org/job-name";

impl Scene {
    /// kubectl with these words in the namespace.
    pub(super) async fn run(&self, words: &[&str]) -> Result<Outcome> {
        self.site.kubectl.run(&[&["-n", &self.namespace], words].concat()).await
    }

    /// The same; it must do.
    pub(super) async fn ok(&self, words: &[&str]) -> Result<String> {
        self.run(words).await?.stdout_of_success()
    }

    /// The same with something on standard input.
    pub(super) async fn feed(&self, words: &[&str], input: &str) -> Result<String> {
        self.site.feed(&[&["-n", &self.namespace], words].concat(), input).await
    }

    /// `kubectl create -f -`.
    pub(super) async fn create(&self, object: impl Into<Value>) -> Result<()> {
        self.feed(&["create", "-f", "-"], &object.into().to_string()).await.map(drop)
    }

    /// Asks again and again until kubectl answers as wanted.
    pub(super) async fn until(
        &self,
        words: &[&str],
        what: &str,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<String> {
        self.site.until(&[&["-n", &self.namespace], words].concat(), what, wanted).await
    }

    /// `kubectl wait` until an object is there and has a condition, or another thing that it can wait for.
    pub(super) async fn wait(&self, target: &str, wanted: &str) -> Result<()> {
        let mut words = vec!["wait", LONGEST, target];
        if wanted != "delete" {
            words.push("--for=create");
        }
        let wanted = format!("--for={wanted}");
        words.push(&wanted);
        self.ok(&words).await.map(drop)
    }

    /// Waits until a job runs.
    pub(super) async fn runs(&self, job: &str) -> Result<()> {
        self.wait(&format!("tfjob/{job}"), "condition=Running").await
    }

    /// An object as JSON.
    pub(super) async fn get(&self, target: &str) -> Result<Value> {
        let (kind, name) = target.split_once('/').context("kind/name")?;
        let rest = self.site.rest(&self.namespace).await?;
        rest.get(resource(kind)?, name).await.with_context(|| target.to_owned())
    }

    /// All objects of a kind.
    async fn list(&self, resource: Resource) -> Result<Vec<Value>> {
        let mut list = self.site.rest(&self.namespace).await?.list(resource).await?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            other => bail!("not a list: {other}"),
        }
    }

    /// Looks again and again until it sees what it looks for.
    async fn see<T>(&self, what: &str, look: impl AsyncFn() -> Result<Result<T>>) -> Result<T> {
        let started = Instant::now();
        loop {
            match look().await? {
                Ok(seen) => return Ok(seen),
                Err(error) if started.elapsed() > PATIENCE => {
                    return Err(error.context(format!("{what} has not come")));
                }
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }

    /// Waits until a job has ended, which must be in this way, and gives it.
    pub(super) async fn ends(&self, job: &str, wanted: &str) -> Result<Value> {
        let target = format!("tfjob/{job}");
        self.wait(&target, "jsonpath={.status.completionTime}").await?;
        let object = self.get(&target).await?;
        let how = state(&object);
        ensure!(how == wanted, "{job} is {how}, not {wanted}: {}", object["status"]);
        Ok(object)
    }

    /// Waits until all jobs of the namespace have ended, in whatever way.
    pub(super) async fn all_end(&self) -> Result<()> {
        let ended = "--for=jsonpath={.status.completionTime}";
        self.ok(&["wait", LONGEST, "tfjobs", "--all", ended]).await.map(drop)
    }

    /// The pods of a job: `name phase` of each that is not being deleted, by name.
    pub(super) async fn pods(&self, job: &str) -> Result<Vec<String>> {
        let pods = self.list(Resource::Pods).await?;
        let of_job = |pod: &&Value| pod["metadata"]["labels"][JOB_NAME] == job;
        let there = pods.iter().filter(of_job).filter(|pod| !terminating(pod));
        let line = |pod: &Value| {
            format!("{} {}", text(&pod["metadata"]["name"]), text(&pod["status"]["phase"]))
        };
        Ok(there.map(line).collect())
    }

    /// Waits until the pods of a job are these: `name phase`, by name.
    pub(super) async fn pods_become(&self, job: &str, wanted: &[&str]) -> Result<()> {
        let look = async || {
            let pods = self.pods(job).await?;
            let are_there = pods == wanted;
            Ok(are_there.then_some(()).with_context(|| format!("the pods are {pods:?}")))
        };
        self.see(&format!("{wanted:?}"), look).await
    }

    /// The log of a pod's training container.
    pub(super) async fn log(&self, pod: &str) -> Result<String> {
        self.ok(&["logs", pod, "-c", "tensorflow"]).await
    }

    /// A pod's UID and how often its container was restarted in place.
    pub(super) async fn life(&self, pod: &str) -> Result<(String, i64)> {
        let pod = self.get(&format!("pod/{pod}")).await?;
        let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_i64();
        Ok((text(&pod["metadata"]["uid"]).to_owned(), restarts.unwrap_or(0)))
    }

    /// Waits until another pod of that name runs.
    pub(super) async fn is_replaced(&self, pod: &str, uid: &str) -> Result<()> {
        self.are_replaced(&[(pod.to_owned(), uid.to_owned())].into()).await
    }

    /// The pods of the namespace, with their UIDs.
    pub(super) async fn uids(&self) -> Result<BTreeMap<String, String>> {
        let words = |pod: &Value| ["name", "uid"].map(|key| text(&pod["metadata"][key]).to_owned());
        let pods = self.list(Resource::Pods).await?;
        Ok(pods.iter().map(words).map(|[name, uid]| (name, uid)).collect())
    }

    /// Waits until other pods run under all these names.
    pub(super) async fn are_replaced(&self, before: &BTreeMap<String, String>) -> Result<()> {
        let look = async || {
            let pods = self.list(Resource::Pods).await?;
            let is_other = |pod: &&Value| {
                let metadata = &pod["metadata"];
                let before = before.get(text(&metadata["name"]));
                before.is_some_and(|before| metadata["uid"] != before.as_str())
                    && pod["status"]["phase"] == "Running"
            };
            let others = pods.iter().filter(is_other).count();
            let all = (others == before.len()).then_some(());
            Ok(all.with_context(|| format!("of {before:?} there are {others} others")))
        };
        self.see("another pod", look).await
    }

    /// Has a pod that waits for a word, as those of [`jobs::TOLD`](super::jobs::TOLD), end with a code.
    pub(super) async fn end(&self, pod: &str, code: i32) -> Result<()> {
        let script = format!("echo {code} > /tmp/end.new; mv /tmp/end.new /tmp/end");
        self.ok(&["exec", pod, "-c", "tensorflow", "--", "sh", "-c", &script]).await.map(drop)
    }

    /// Waits until an event about an object says so.
    pub(super) async fn told(&self, target: &str, words: &[&str]) -> Result<String> {
        let (kind, name) = target.split_once('/').context("kind/name")?;
        let look = async || {
            let events = self.list(Resource::Events).await?;
            let about = events.iter().filter(|event| {
                let about = &event["involvedObject"];
                about["name"] == name && text(&about["kind"]).eq_ignore_ascii_case(kind)
            });
            let line =
                |event: &Value| format!("{}: {}", text(&event["reason"]), text(&event["message"]));
            let lines: Vec<_> = about.map(line).collect();
            let has = |line: &&String| words.iter().all(|word| line.contains(word));
            let found = lines.iter().find(has).cloned();
            Ok(found.with_context(|| format!("of {target} is told {lines:#?}")))
        };
        self.see(&format!("an event with {words:?}"), look).await
    }

    /// Everything that is known of the namespace, for a story that failed.
    pub(super) async fn about(&self) -> String {
        let mut about = String::new();
        let asked: [&[&str]; 5] = [
            &["get", "tfjobs,pods,services", "-o", "wide"],
            &["get", "tfjobs", "-o", "yaml"],
            &["get", "vcjobs,podgroups", "-o", "yaml"],
            &["get", "events", "--sort-by=.lastTimestamp"],
            &["logs", "-n", "kubeflow", "--tail=20", "--selector=app.kubernetes.io/name=trainyard"],
        ];
        for words in asked {
            if let Ok(outcome) = self.run(words).await {
                about.extend(["$ ", &outcome.command, "\n", &outcome.stdout, &outcome.stderr]);
            }
        }
        about
    }
}

/// A kind as kubectl names it.
fn resource(kind: &str) -> Result<Resource> {
    Ok(match kind {
        "tfjob" => Resource::Jobs,
        "pod" => Resource::Pods,
        "service" => Resource::Services,
        "pvc" => Resource::Claims,
        "job.batch.volcano.sh" => Resource::VolcanoJobs,
        "podgroup.scheduling.volcano.sh" => Resource::Groups,
        other => bail!("nobody has asked for a {other} yet"),
    })
}

/// The `State` of a job, as `kubectl get` shows it.
pub(super) fn state(job: &Value) -> &str {
    let conditions = job["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.last().map_or("", |last| text(&last["type"]))
}

/// The condition of a job of that type.
pub(super) fn condition<'a>(job: &'a Value, kind: &str) -> &'a Value {
    let conditions = job["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    conditions.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}
