//! What is there: the pods and the job, whenever one of them changes.
//!
//! A server that is away for moments, as when it is brought up to date, ends nothing.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;

use super::{AGAIN, News};
use crate::cluster::{Cluster, Error, Kind, Lines, Query};
use crate::commands::job_logs::find::Found;
use crate::commands::job_logs::pods::list;

/// How long a server may be away.
const AWAY: Duration = Duration::from_mins(2);
/// How long to wait after a change before the job is asked for.
const SOON: Duration = Duration::from_millis(50);

/// Whether asking again may help.
fn passes(error: &Error) -> bool {
    match error {
        Error::Unreachable { .. } | Error::Broken { .. } => true,
        _ => error.code() == 429 || error.code() >= 500,
    }
}

/// Counts how long a server is away.
#[derive(Default)]
struct Away {
    since: Option<Instant>,
}

impl Away {
    /// Waits a moment after an error, of which the first is told; false if it is final.
    async fn is_borne(&mut self, error: Error, sender: &Sender<News>) -> bool {
        let is_first = self.since.is_none();
        let since = *self.since.get_or_insert_with(Instant::now);
        if !passes(&error) || since.elapsed() > AWAY {
            let _ = sender.send(News::Failed(error.into())).await;
            return false;
        }
        if is_first && sender.send(News::Silence(error.to_string())).await.is_err() {
            return false;
        }
        tokio::time::sleep(AGAIN).await;
        true
    }

    fn is_over(&mut self) {
        self.since = None;
    }
}

/// Tells of the pods whenever one of them changes.
pub(super) async fn pods(cluster: &Cluster, found: &Found, sender: Sender<News>) {
    let mut away = Away::default();
    loop {
        let pods = match list(cluster, found).await {
            Ok(pods) => pods,
            Err(error) => {
                if away.is_borne(error, &sender).await {
                    continue;
                }
                return;
            }
        };
        away.is_over();
        if sender.send(News::Pods(pods)).await.is_err() {
            return;
        }
        // From now on: what has changed between the list and this moment comes as it is now.
        let (namespace, query) = (Some(found.namespace.as_str()), found.query());
        if let Ok(lines) = cluster.watch(&found.pods, namespace, &query, false).await
            && changes(lines, found, &sender).await.is_none()
        {
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Tells of changes to the end of a watch; none when nobody listens any more.
async fn changes(mut lines: Lines, found: &Found, sender: &Sender<News>) -> Option<()> {
    while let Ok(Some(line)) = lines.next().await {
        let mut event: Value = serde_json::from_slice(&line).unwrap_or_default();
        let pod = event["object"].take();
        let news = match event["type"].as_str() {
            Some("ADDED" | "MODIFIED") if found.owns(&pod) => News::Pod(pod),
            Some("DELETED") => News::Gone(pod),
            Some("ERROR") => break,
            _ => continue,
        };
        sender.send(news).await.ok()?;
    }
    Some(())
}

/// Tells of the job whenever it changes.
pub(super) async fn job(cluster: &Cluster, found: &Found, kind: &Kind, sender: Sender<News>) {
    let mut away = Away::default();
    let uid = found.job.as_ref().map(|(_, job)| &job["metadata"]["uid"]);
    loop {
        let news = match cluster.get(kind, &found.namespace, &found.name, None).await {
            // One that was made anew under its name is another job.
            Ok(job) if uid.is_none_or(|uid| job["metadata"]["uid"] == *uid) => News::Job(job),
            Ok(_) => News::JobGone,
            Err(error) if error.code() == 404 => News::JobGone,
            Err(error) => {
                if away.is_borne(error, &sender).await {
                    continue;
                }
                return;
            }
        };
        away.is_over();
        let is_last = matches!(news, News::JobGone);
        if sender.send(news).await.is_err() || is_last {
            return;
        }
        let query = Query::default().with("fieldSelector", format!("metadata.name={}", found.name));
        let watched = cluster.watch(kind, Some(&found.namespace), &query, false).await;
        let is_watched = watched.is_ok();
        if let Ok(mut lines) = watched {
            while let Ok(Some(line)) = lines.next().await {
                let mut event: Value = serde_json::from_slice(&line).unwrap_or_default();
                let job = event["object"].take();
                let is_same = uid.is_none_or(|uid| job["metadata"]["uid"] == *uid);
                match event["type"].as_str() {
                    Some("ADDED" | "MODIFIED") if is_same => {
                        if sender.send(News::Job(job)).await.is_err() {
                            return;
                        }
                    }
                    Some("BOOKMARK") => {}
                    // It is asked for what has become of it.
                    _ => break,
                }
            }
        }
        tokio::time::sleep(if is_watched { SOON } else { AGAIN }).await;
    }
}
