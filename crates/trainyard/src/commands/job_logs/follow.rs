//! Lines as they are printed, until the job has finished.
//!
//! Every log, the pods and the job are watched side by side; what they say comes through one channel.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Logs;
use super::find::{Found, replica};
use super::missing::{self, Missing, refused};
use super::pods::{self, Run};
use super::source::{Line, Source};
use crate::cluster::{Cluster, Kind, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::paint::Painter;
use crate::present::{items, one_line, text};

/// Lines under way between the readers and the terminal.
const UNDER_WAY: usize = 256;
/// How long to wait before asking again.
const AGAIN: Duration = Duration::from_millis(500);
/// How often a log is asked for that cannot be had, or breaks off, without a line in between.
const ATTEMPTS: u32 = 6;
/// How long the last pods may take to be seen after the job has finished.
const SETTLE: Duration = Duration::from_millis(500);
/// How long pods that outlive the job are listened to: some policies keep them running.
const QUIET: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(5);

/// What the watchers say.
enum News {
    Line(String, Line),
    /// A log ended.
    End,
    /// A log, or the rest of it, cannot be shown.
    Missing(String, String),
    /// The pods as they are now.
    Pods(Vec<Value>),
    /// The job or pod has finished, with what there is to say about it; or is gone.
    Finished(String),
    Failed(Failure),
}

type Task<'a> = LocalBoxFuture<'a, ()>;

/// Prints lines until what was found has finished.
pub(super) async fn run(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    kept: Option<&Path>,
    mut painter: Painter,
) -> Result<(), Failure> {
    if logs.all {
        earlier(logs, cluster, found, kept, &mut painter).await?;
    }
    if found.selector.is_some() {
        painter.expect_several();
    }
    let (sender, mut news) = mpsc::channel(UNDER_WAY);
    let mut tasks: FuturesUnordered<Task<'_>> = FuturesUnordered::new();
    tasks.push(Box::pin(watch_pods(cluster, found, sender.clone())));
    if let Some((kind, _)) = &found.job {
        tasks.push(Box::pin(watch_job(cluster, found, kind, sender.clone())));
    }
    let mut follower = Follower::new(logs, painter);
    let mut last_call = Instant::now();
    loop {
        let quiet = if follower.open == 0 { SETTLE } else { QUIET };
        let has_finished = follower.finished.is_some();
        let next = tokio::select! {
            next = news.recv() => next,
            Some(()) = tasks.next() => continue,
            () = tokio::time::sleep(quiet), if has_finished => None,
            () = tokio::time::sleep_until(last_call), if has_finished => None,
        };
        let Some(next) = next else { break };
        for run in follower.hear(next, found.job.is_none())? {
            tasks.push(Box::pin(read(logs, cluster, found, run, sender.clone())));
        }
        if !has_finished {
            last_call = Instant::now() + AFTER;
        }
    }
    follower.end(&found.name)
}

/// What is shown and what is not, so far.
struct Follower<'a> {
    logs: &'a Logs,
    painter: Painter,
    /// Logs that are read or were read: pod, container, run.
    seen: BTreeSet<(String, String, u64)>,
    /// What was said once of replicas that wait.
    told: BTreeSet<String>,
    /// Containers that have not started, with the reason, by pod.
    unstarted: BTreeMap<String, Vec<(String, String)>>,
    missing: Missing,
    /// Logs that are read now.
    open: usize,
    finished: Option<String>,
}

impl<'a> Follower<'a> {
    fn new(logs: &'a Logs, painter: Painter) -> Self {
        Self {
            logs,
            painter,
            seen: BTreeSet::new(),
            told: BTreeSet::new(),
            unstarted: BTreeMap::new(),
            missing: Missing::default(),
            open: 0,
            finished: None,
        }
    }

    /// Takes one piece of news in; answers with the logs that are to be read from now on.
    fn hear(&mut self, news: News, is_pod_alone: bool) -> Result<Vec<Run>, Failure> {
        match news {
            News::Line(label, line) => {
                output::print_bytes(&self.painter.line(&label, line.time, &line.text))?;
            }
            News::End => self.open = self.open.saturating_sub(1),
            News::Missing(label, why) => {
                if self.missing.add(&label, &why) {
                    output::say(&missing::line(&label, &why));
                }
            }
            News::Failed(failure) => return Err(failure),
            News::Finished(how) => self.finished = Some(how),
            News::Pods(pods) => {
                tell_waiting(self.logs, &pods, &mut self.told);
                if is_pod_alone && self.finished.is_none() && pods.iter().all(is_over) {
                    self.finished = Some(String::new());
                }
                return Ok(pods.iter().flat_map(|pod| self.see(pod)).collect());
            }
        }
        Ok(Vec::new())
    }

    /// A pod as it is now; answers with its logs that are not read yet.
    fn see(&mut self, pod: &Value) -> Vec<Run> {
        let uid = text(pod, &["metadata", "uid"]).to_owned();
        self.unstarted.insert(uid, self.logs.unstarted(pod));
        let mut new = self.logs.runs(pod);
        new.retain(|run| self.seen.insert((run.uid.clone(), run.container.clone(), run.restart)));
        for run in &new {
            self.painter.expect([run.label.as_str()]);
            self.open += 1;
        }
        new
    }

    /// Says how it ended and what never came; a failure if anything was not shown.
    fn end(mut self, name: &str) -> Result<(), Failure> {
        if let Some(how) = self.finished.filter(|how| !how.is_empty()) {
            output::say(&format!("{name}: {how}\n"));
        }
        let mut never = Missing::default();
        for (label, why) in self.unstarted.into_values().flatten() {
            never.add(&label, &why);
            self.missing.add(&label, &why);
        }
        output::say(&never.text());
        self.missing.result()
    }
}

/// Runs before the present ones, from where they are kept.
async fn earlier(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    kept: Option<&Path>,
    painter: &mut Painter,
) -> Result<(), Failure> {
    let Some(state) = kept else { return Ok(()) };
    let pods = pods::list(cluster, found).await?;
    let present: Vec<Run> = pods.iter().flat_map(|pod| logs.runs(pod)).collect();
    let runs = trainyard_node::kept_runs(state, &found.namespace, &found.name)
        .map_err(|error| Failure::other("looking for kept logs", &error))?;
    for run in runs {
        let is_present =
            present.iter().any(|one| one.uid == run.uid && one.restart == u64::from(run.restart));
        let container = logs.container.as_ref().is_none_or(|name| *name == run.container);
        if is_present || !container || !logs.wants(&run.replica) {
            continue;
        }
        let lines = run.lines().map_err(|error| Failure::other("reading a kept log", &error))?;
        let mut source = Source::Kept(lines, logs.begin()).tailed(logs.tail_lines()).await?;
        painter.expect([run.replica.as_str()]);
        while let Some(line) = source.next().await? {
            output::print_bytes(&painter.line(&run.replica, line.time, &line.text))?;
        }
    }
    Ok(())
}

/// Says once why pods do not start, where that is not just a matter of moments.
fn tell_waiting(logs: &Logs, pods: &[Value], told: &mut BTreeSet<String>) {
    for pod in pods.iter().filter(|pod| text(pod, &["status", "phase"]) == "Pending") {
        let replica = replica(pod);
        let why = pods::waits_for(pod);
        let passes = ["Pending", "ContainerCreating", "PodInitializing"].contains(&why.as_str());
        if !passes && logs.wants(&replica) && told.insert(format!("{replica} waits: {why}\n")) {
            output::say(&format!("{replica} waits: {}\n", one_line(&why)));
        }
    }
}

/// Whether a pod prints nothing any more.
fn is_over(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text(pod, &["status", "phase"]))
}

/// Reads a log to its end. One that breaks off, as when a node or the server restarts, is taken up again
/// where it broke off.
async fn read(logs: &Logs, cluster: &Cluster, found: &Found, run: Run, sender: mpsc::Sender<News>) {
    let mut query = logs.query(&run.container).with("follow", "true");
    let mut last: Option<Timestamp> = None;
    let mut attempts = 0;
    let why = loop {
        let why = match cluster.log(&found.pods, &found.namespace, &run.pod, &query).await {
            Ok(lines) => {
                let mut source = Source::Stamped(Box::new(lines));
                loop {
                    match source.next().await {
                        // The server gives whole seconds: what was printed in the last one is known.
                        Ok(Some(line)) if line.time.is_some() && line.time <= last => {}
                        Ok(Some(line)) => {
                            last = line.time.or(last);
                            attempts = 0;
                            if sender.send(News::Line(run.label.clone(), line)).await.is_err() {
                                return;
                            }
                        }
                        Ok(None) => break None,
                        Err(failure) => {
                            break Some(format!("its log broke off: {}", failure.words()));
                        }
                    }
                }
            }
            // All that was printed may have been read before the pod went.
            Err(error) if error.code() == 404 && last.is_some() => None,
            Err(error) => {
                if [401, 403, 404].contains(&error.code()) {
                    attempts = ATTEMPTS;
                }
                Some(refused(&error, &run.node).unwrap_or_else(|| error.to_string()))
            }
        };
        attempts += 1;
        if why.is_none() || attempts > ATTEMPTS {
            break why;
        }
        if let Some(last) = last {
            query = Query::default()
                .with("container", &run.container)
                .with("timestamps", "true")
                .with("follow", "true")
                .with("sinceTime", last.to_string());
        }
        tokio::time::sleep(AGAIN).await;
    };
    if let Some(why) = why {
        let _ = sender.send(News::Missing(run.label.clone(), why)).await;
    }
    let _ = sender.send(News::End).await;
}

/// Tells of the pods whenever one of them changes.
async fn watch_pods(cluster: &Cluster, found: &Found, sender: mpsc::Sender<News>) {
    loop {
        let pods = match pods::list(cluster, found).await {
            Ok(pods) => pods,
            Err(failure) => {
                let _ = sender.send(News::Failed(failure)).await;
                return;
            }
        };
        let query = match &found.selector {
            Some(selector) => Query::default().with("labelSelector", selector),
            None => Query::default().with("fieldSelector", format!("metadata.name={}", found.name)),
        };
        if sender.send(News::Pods(pods)).await.is_err() {
            return;
        }
        // From now on: what has changed between the list and this moment comes as it is now.
        if let Ok(mut lines) =
            cluster.watch(&found.pods, Some(&found.namespace), &query, false).await
        {
            while let Ok(Some(line)) = lines.next().await {
                let event: Value = serde_json::from_slice(&line).unwrap_or_default();
                let news = match event["type"].as_str() {
                    Some("ADDED" | "MODIFIED") => News::Pods(vec![event["object"].clone()]),
                    Some("DELETED") if found.job.is_none() => {
                        News::Finished("the pod is gone".into())
                    }
                    Some("ERROR") => break,
                    _ => continue,
                };
                if sender.send(news).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Tells when the job has finished.
async fn watch_job(cluster: &Cluster, found: &Found, kind: &Kind, sender: mpsc::Sender<News>) {
    loop {
        let how = match cluster.get(kind, &found.namespace, &found.name, None).await {
            Ok(job) => finished(&job),
            Err(error) if error.code() == 404 => Some("the job is gone".to_owned()),
            Err(error) => {
                let _ = sender.send(News::Failed(error.into())).await;
                return;
            }
        };
        if let Some(how) = how {
            let _ = sender.send(News::Finished(how)).await;
            return;
        }
        let query = Query::default().with("fieldSelector", format!("metadata.name={}", found.name));
        if let Ok(mut lines) = cluster.watch(kind, Some(&found.namespace), &query, false).await {
            while let Ok(Some(line)) = lines.next().await {
                let event: Value = serde_json::from_slice(&line).unwrap_or_default();
                let gone = event["type"] == "DELETED";
                if gone || event["type"] == "ERROR" || finished(&event["object"]).is_some() {
                    break;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// How a job has finished: `Succeeded`, or `Failed` and why.
fn finished(job: &Value) -> Option<String> {
    let over = ["Succeeded", "Failed", "Complete", "SuccessCriteriaMet"];
    let condition = items(job, &["status", "conditions"]).find(|condition| {
        condition["status"] == "True" && over.contains(&text(condition, &["type"]))
    });
    let phase = text(job, &["status", "state", "phase"]);
    match condition {
        Some(condition) if condition["type"] == "Failed" => {
            Some(format!("Failed: {}", text(condition, &["message"])))
        }
        Some(condition) => Some(text(condition, &["type"]).to_owned()),
        None => ["Completed", "Failed", "Aborted", "Terminated"]
            .contains(&phase)
            .then(|| phase.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_finished_job_says_how() {
        let job = |kind: &str, status: &str| {
            json!({"status": {"conditions": [
                {"type": "Created", "status": "True"},
                {"type": kind, "status": status, "message": "exit code 1"},
            ]}})
        };
        assert_eq!(finished(&job("Succeeded", "True")).as_deref(), Some("Succeeded"));
        assert_eq!(finished(&job("Failed", "True")).as_deref(), Some("Failed: exit code 1"));
        assert_eq!(finished(&job("Failed", "False")), None);
        assert_eq!(finished(&job("Running", "True")), None);
        let volcano = json!({"status": {"state": {"phase": "Completed"}}});
        assert_eq!(finished(&volcano).as_deref(), Some("Completed"));
    }
}
