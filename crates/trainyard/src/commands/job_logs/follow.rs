//! Lines as they are printed, until the job has finished.
//!
//! Every log, the pods and the job are watched side by side; what they say comes through one channel.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Logs;
use super::find::{Found, replica};
use super::pods::{self, Run};
use super::source::{Line, Source};
use crate::cluster::{Cluster, Kind, Query};
use crate::failure::Failure;
use crate::output;
use crate::present::paint::Painter;
use crate::present::{items, text};

/// Lines under way between the readers and the terminal.
const UNDER_WAY: usize = 256;
/// How long to wait before asking again.
const AGAIN: Duration = Duration::from_millis(500);
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
    let mut seen: BTreeSet<(String, String, u64)> = BTreeSet::new();
    let mut told: BTreeSet<String> = BTreeSet::new();
    let mut open = 0_usize;
    let mut finished: Option<String> = None;
    let mut last_call = Instant::now();
    loop {
        let quiet = if open == 0 { SETTLE } else { QUIET };
        let next = tokio::select! {
            next = news.recv() => next,
            Some(()) = tasks.next() => continue,
            () = tokio::time::sleep(quiet), if finished.is_some() => None,
            () = tokio::time::sleep_until(last_call), if finished.is_some() => None,
        };
        match next {
            None => break,
            Some(News::Line(label, line)) => {
                output::print_bytes(&painter.line(&label, line.time, &line.text))?;
            }
            Some(News::End) => open = open.saturating_sub(1),
            Some(News::Failed(failure)) => return Err(failure),
            Some(News::Finished(how)) => {
                finished = Some(how);
                last_call = Instant::now() + AFTER;
            }
            Some(News::Pods(pods)) => {
                tell_waiting(logs, &pods, &mut told);
                for run in pods.iter().flat_map(|pod| logs.runs(pod)) {
                    if seen.insert((run.uid.clone(), run.container.clone(), run.restart)) {
                        painter.expect([run.label.as_str()]);
                        open += 1;
                        tasks.push(Box::pin(read(logs, cluster, found, run, sender.clone())));
                    }
                }
                if found.job.is_none() && finished.is_none() && pods.iter().all(is_over) {
                    finished = Some(String::new());
                    last_call = Instant::now() + AFTER;
                }
            }
        }
    }
    if let Some(how) = finished.filter(|how| !how.is_empty()) {
        output::say(&format!("{}: {how}\n", found.name));
    }
    Ok(())
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
            output::say(&format!("{replica} waits: {why}\n"));
        }
    }
}

/// Whether a pod prints nothing any more.
fn is_over(pod: &Value) -> bool {
    ["Succeeded", "Failed"].contains(&text(pod, &["status", "phase"]))
}

async fn read(logs: &Logs, cluster: &Cluster, found: &Found, run: Run, sender: mpsc::Sender<News>) {
    let query = logs.query(&run.container).with("follow", "true");
    match cluster.log(&found.pods, &found.namespace, &run.pod, &query).await {
        Ok(lines) => {
            let mut source = Source::Stamped(Box::new(lines));
            // A log that breaks off ends here; its pod's next run is another one.
            while let Ok(Some(line)) = source.next().await {
                if sender.send(News::Line(run.label.clone(), line)).await.is_err() {
                    return;
                }
            }
        }
        // It has gone before it was asked.
        Err(error) if [400, 404].contains(&error.code()) => {}
        Err(error) => {
            output::warn(&format!("{}: {error}", run.label));
        }
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
