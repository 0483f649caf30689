//! What stories do and look at in their namespace, by kubectl.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::site::Scene;
use crate::kubectl::Outcome;
use crate::seen::text;

/// As long as anything of busybox may take on a loaded machine.
const LONGEST: &str = "--timeout=100s";

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

    /// `kubectl wait` until an object has a condition, or another thing that it can wait for.
    pub(super) async fn wait(&self, target: &str, wanted: &str) -> Result<()> {
        self.ok(&["wait", LONGEST, &format!("--for={wanted}"), target]).await.map(drop)
    }

    /// Waits until a job runs.
    pub(super) async fn runs(&self, job: &str) -> Result<()> {
        self.wait(&format!("tfjob/{job}"), "condition=Running").await
    }

    /// An object as JSON.
    pub(super) async fn get(&self, target: &str) -> Result<Value> {
        Ok(serde_json::from_str(&self.ok(&["get", target, "-o", "json"]).await?)?)
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

    /// The pods of a job: `name phase` of each that is not being deleted, by name.
    pub(super) async fn pods(&self, job: &str) -> Result<Vec<String>> {
        let selector = format!("--selector=training.kubeflow.org/job-name={job}");
        let listed = self.ok(&["get", "pods", &selector, "-o", "json"]).await?;
        let listed: Value = serde_json::from_str(&listed)?;
        let pods = listed["items"].as_array().context("a list of pods")?.iter();
        let there = pods.filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        let line = |pod: &Value| {
            format!("{} {}", text(&pod["metadata"]["name"]), text(&pod["status"]["phase"]))
        };
        Ok(there.map(line).collect())
    }

    /// Waits until the pods of a job are these: `name phase`, by name.
    pub(super) async fn pods_become(&self, job: &str, wanted: &[&str]) -> Result<()> {
        let mut pods = Vec::new();
        for _ in 0..120 {
            pods = self.pods(job).await?;
            if pods == wanted {
                return Ok(());
            }
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        }
        anyhow::bail!("the pods are {pods:?}, not {wanted:?}")
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
        let path = "-o=jsonpath={.metadata.uid} {.status.phase}";
        let other = |told: &str| !told.starts_with(uid) && told.ends_with(" Running");
        self.until(&["get", "pod", pod, path], "another pod", other).await.map(drop)
    }

    /// Has a pod that waits for a word, as those of [`jobs::TOLD`](super::jobs::TOLD), end with a code.
    pub(super) async fn end(&self, pod: &str, code: i32) -> Result<()> {
        let script = format!("echo {code} > /tmp/end.new; mv /tmp/end.new /tmp/end");
        self.ok(&["exec", pod, "-c", "tensorflow", "--", "sh", "-c", &script]).await.map(drop)
    }

    /// Waits until an event about an object says so.
    pub(super) async fn told(&self, target: &str, words: &[&str]) -> Result<String> {
        let (kind, name) = target.split_once('/').context("kind/name")?;
        let fields = format!("--field-selector=involvedObject.name={name}");
        let listed = [
            "get",
            "events",
            &fields,
            "-o=jsonpath={range .items[*]}{.involvedObject.kind} {.reason}: {.message}{\"\\n\"}{end}",
        ];
        let has = |line: &str| {
            let of_kind = line.to_lowercase().starts_with(&format!("{kind} "));
            of_kind && words.iter().all(|word| line.contains(word))
        };
        let all = self
            .until(&listed, &format!("an event of {target} with {words:?}"), |told| {
                told.lines().any(has)
            })
            .await?;
        Ok(all.lines().find(|line| has(line)).unwrap_or_default().to_owned())
    }

    /// Everything that is known of the namespace, for a story that failed.
    pub(super) async fn about(&self) -> String {
        let mut about = String::new();
        let asked: [&[&str]; 4] = [
            &["get", "tfjobs,pods,services", "-o", "wide"],
            &["get", "tfjobs", "-o", "yaml"],
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
