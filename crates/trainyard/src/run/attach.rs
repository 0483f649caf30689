//! Watches everything of a run side by side: jobs, pods, events, logs, what pods use. What they say
//! comes through one channel.
//!
//! Must not know what is made of it.

use std::time::Duration;

use kube::api::ObjectMeta;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::sync::mpsc;
use trainyard_node::{PodUse, Window};

use super::stage::Staged;
use crate::cluster::{Cluster, Kind, Lines, Query};
use crate::commands::job_logs::source::{Line, Source};
use crate::present::{items, text};

/// How long to wait before asking again.
const AGAIN: Duration = Duration::from_millis(100);
/// Between readings of what pods use.
const READING: Duration = Duration::from_millis(500);

/// What the watchers say.
#[derive(Debug)]
pub(crate) enum News {
    Pod {
        job: usize,
        pod: Value,
        is_gone: bool,
    },
    Job {
        job: usize,
        object: Value,
    },
    JobGone(usize),
    Event(Value),
    Line {
        job: usize,
        replica: String,
        label: String,
        line: Line,
    },
    /// A log ended; of a replica of this job.
    LogEnd {
        job: usize,
        replica: String,
    },
    /// What pods use, and whether more wants the processors than there are.
    Use {
        readings: Vec<PodUse>,
        is_busy: bool,
    },
    /// What was asked of the yard in between could not be done.
    Problem(String),
}

/// One run of a container, whose log is read.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub(crate) job: usize,
    pub(crate) replica: String,
    /// What stands before its lines.
    pub(crate) label: String,
    pub(crate) pod: ObjectMeta,
    pub(crate) container: String,
    pub(crate) restart: u32,
}

/// Containers of a pod that print or have printed: name, and how often it was restarted.
pub(crate) fn printing(pod: &Value) -> Vec<(String, u32)> {
    let statuses = ["initContainerStatuses", "containerStatuses"]
        .into_iter()
        .flat_map(|list| items(pod, &["status", list]));
    statuses
        .filter(|status| status["state"]["waiting"].is_null() && status["state"].is_object())
        .map(|status| {
            let restarts = status["restartCount"].as_u64().unwrap_or_default();
            let restarts = u32::try_from(restarts).unwrap_or(u32::MAX);
            (text(status, &["name"]).to_owned(), restarts)
        })
        .collect()
}

/// A pod's name, labels and identity.
pub(crate) fn metadata(pod: &Value) -> ObjectMeta {
    ObjectMeta::deserialize(&pod["metadata"]).unwrap_or_default()
}

/// Tells of the pods of a job whenever one of them changes.
pub(crate) async fn pods(
    cluster: &Cluster,
    kind: &Kind,
    number: usize,
    staged: &Staged,
    sender: mpsc::Sender<News>,
) {
    let selector = format!("{}={}", staged.job.row.label, staged.job.name);
    let query = Query::default().with("labelSelector", selector);
    loop {
        if let Ok(mut lines) = cluster.watch(kind, Some(&staged.job.namespace), &query, false).await
        {
            while let Ok(Some(line)) = lines.next().await {
                let Some((what, pod)) = change(&line) else { break };
                let is_gone = match what.as_str() {
                    "ADDED" | "MODIFIED" => false,
                    "DELETED" => true,
                    _ => continue,
                };
                if sender.send(News::Pod { job: number, pod, is_gone }).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Tells of a job whenever it changes.
pub(crate) async fn job(
    cluster: &Cluster,
    number: usize,
    staged: &Staged,
    sender: mpsc::Sender<News>,
) {
    let query =
        Query::default().with("fieldSelector", format!("metadata.name={}", staged.job.name));
    loop {
        if let Ok(mut lines) =
            cluster.watch(&staged.kind, Some(&staged.job.namespace), &query, false).await
        {
            while let Ok(Some(line)) = lines.next().await {
                let Some((what, object)) = change(&line) else { break };
                if !["ADDED", "MODIFIED", "DELETED"].contains(&what.as_str()) {
                    continue;
                }
                // One that is deleted as soon as it has ended says so only then.
                let told = sender.send(News::Job { job: number, object }).await;
                if what == "DELETED" {
                    let _ = sender.send(News::JobGone(number)).await;
                }
                if told.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Tells of the events of a namespace.
pub(crate) async fn events(
    cluster: &Cluster,
    kind: &Kind,
    namespace: &str,
    sender: mpsc::Sender<News>,
) {
    loop {
        if let Ok(mut lines) = cluster.watch(kind, Some(namespace), &Query::default(), false).await
        {
            while let Ok(Some(line)) = lines.next().await {
                let Some((what, event)) = change(&line) else { break };
                if ["ADDED", "MODIFIED"].contains(&what.as_str())
                    && sender.send(News::Event(event)).await.is_err()
                {
                    return;
                }
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// The kind of a change and its object; none when the watch is over.
fn change(line: &[u8]) -> Option<(String, Value)> {
    let mut event: Value = serde_json::from_slice(line).ok()?;
    let what = event["type"].as_str().filter(|what| *what != "ERROR")?.to_owned();
    Some((what, event["object"].take()))
}

/// Reads a log to its end, past the API: the node is in this process.
pub(crate) async fn read(window: &Window, reading: Reading, sender: mpsc::Sender<News>) {
    let Reading { job, replica, label, pod, container, restart } = reading;
    // A log that breaks off ends here; its pod's next run is another one.
    if let Ok(pieces) = window.log(&pod, &container, restart).await {
        let mut source = Source::Stamped(Box::new(Lines::new(pieces, "this machine's node")));
        while let Ok(Some(line)) = source.next().await {
            let (replica, label) = (replica.clone(), label.clone());
            if sender.send(News::Line { job, replica, label, line }).await.is_err() {
                return;
            }
        }
    }
    let _ = sender.send(News::LogEnd { job, replica }).await;
}

/// Reads what pods use, again and again.
pub(crate) async fn measure(window: &Window, sender: mpsc::Sender<News>) {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    loop {
        tokio::time::sleep(READING).await;
        let readings = window.usage().await;
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let is_busy = is_busy(&load, processors);
        if sender.send(News::Use { readings, is_busy }).await.is_err() {
            return;
        }
    }
}

/// Whether so many processes wanted a processor, or a disk, in the last minute that some had to wait.
fn is_busy(load: &str, processors: usize) -> bool {
    let wanted = load.split(['.', ' ']).next().and_then(|number| number.parse::<usize>().ok());
    wanted.is_some_and(|wanted| wanted >= processors)
}

/// Deletes a job with everything that belongs to it.
pub(crate) async fn delete(cluster: &Cluster, staged: &Staged, sender: mpsc::Sender<News>) {
    let options = serde_json::json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background",
    });
    let (namespace, name) = (&staged.job.namespace, &staged.job.name);
    match cluster.delete(&staged.kind, namespace, name, &options).await {
        Err(error) if error.code() != 404 => {
            let _ = sender.send(News::Problem(format!("stopping {name}: {error}"))).await;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_busy_when_some_have_to_wait() {
        assert!(!is_busy("1.99 0.50 0.40 2/300 4711\n", 2));
        assert!(is_busy("2.00 0.50 0.40 2/300 4711\n", 2));
        assert!(is_busy("17.42 9.10 4.00 9/300 4711\n", 2));
        assert!(!is_busy("", 2));
    }
}
