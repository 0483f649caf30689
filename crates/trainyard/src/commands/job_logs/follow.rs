//! Lines as they are printed, until the job has finished.
//!
//! Every log, the pods and the job are watched side by side; what they say comes through one channel.

mod follower;
mod read;
mod watch;

use std::path::Path;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::find::Found;
use super::pods::{self, Run};
use super::source::{Line, Source};
use super::{Logs, gone, kept, once};
use crate::cluster::Cluster;
use crate::failure::Failure;
use crate::output;
use crate::present::paint::Painter;
use follower::Follower;

/// Lines under way between the readers and the terminal.
const UNDER_WAY: usize = 256;
/// How long to wait before asking again.
const AGAIN: Duration = Duration::from_millis(500);
/// How long the last pods may take to be seen after the job has finished.
const SETTLE: Duration = Duration::from_millis(500);
/// How long pods that outlive the job are listened to: some policies keep them running.
const QUIET: Duration = Duration::from_secs(1);
const AFTER: Duration = Duration::from_secs(5);
/// How long nothing may be there to read before it is said what is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// What the watchers say.
enum News {
    Line(String, Line),
    /// A log ended.
    End(String),
    /// A log cannot be had at present, and is asked for again.
    Away(String, String),
    /// A log, or the rest of it, cannot be shown.
    Missing(String, String),
    /// All pods as they are now.
    Pods(Vec<Value>),
    /// One pod as it is now.
    Pod(Value),
    /// A pod that is there no more, as it was last.
    Gone(Value),
    /// The job as it is now.
    Job(Value),
    /// The job is there no more.
    JobGone,
    /// The server cannot be asked at present.
    Silence(String),
    Failed(Failure),
}

type Task<'a> = LocalBoxFuture<'a, ()>;

/// Prints lines until what was found has finished.
pub(super) async fn run(
    logs: &Logs,
    cluster: &Cluster,
    found: &Found,
    folder: Option<&Path>,
    mut painter: Painter,
) -> Result<(), Failure> {
    let pods = pods::list(cluster, found).await?;
    let job = found.job.as_ref().map(|(_, job)| job);
    if let Some(how) = job.and_then(gone::finished)
        && pods.iter().all(follower::is_over)
    {
        // Nobody will print any more.
        return once::run(logs, cluster, found, folder, painter, Some(&how)).await;
    }
    if found.selector.is_some() {
        painter.expect_several();
    }
    let mut shown = Vec::new();
    if let Some(state) = folder {
        shown = earlier(logs, found, state, &pods, &mut painter).await?;
    }
    let mut follower = Follower::new(logs, found, painter, shown);
    let (sender, mut news) = mpsc::channel(UNDER_WAY);
    let mut tasks: FuturesUnordered<Task<'_>> = FuturesUnordered::new();
    tasks.push(Box::pin(watch::pods(cluster, found, sender.clone())));
    if let Some((kind, _)) = &found.job {
        tasks.push(Box::pin(watch::job(cluster, found, kind, sender.clone())));
    }
    let begin = Instant::now();
    let mut is_told = false;
    let mut last_call = begin;
    loop {
        let quiet = if follower.is_reading() { QUIET } else { SETTLE };
        let has_finished = follower.has_finished();
        let next = tokio::select! {
            next = news.recv() => next,
            Some(()) = tasks.next() => continue,
            () = tokio::time::sleep(quiet), if has_finished => None,
            () = tokio::time::sleep_until(last_call), if has_finished => None,
            () = tokio::time::sleep_until(begin + PATIENCE), if !is_told => {
                is_told = true;
                follower.tell_why_nothing_comes(Timestamp::now());
                continue;
            }
        };
        let Some(next) = next else { break };
        for run in follower.hear(next)? {
            tasks.push(Box::pin(read::follow(logs, cluster, found, run, sender.clone())));
        }
        if !has_finished {
            last_call = Instant::now() + AFTER;
        }
    }
    follower.end(Timestamp::now())
}

/// Prints what a yard has kept: of replicas without a pod their last run, and where all runs are wanted those
/// before the present ones. Answers with the replicas of which something is shown.
async fn earlier(
    logs: &Logs,
    found: &Found,
    state: &Path,
    pods: &[Value],
    painter: &mut Painter,
) -> Result<Vec<String>, Failure> {
    let mut runs = Vec::new();
    if logs.all {
        let present: Vec<Run> = pods.iter().flat_map(|pod| logs.runs(pod)).collect();
        runs = kept::all(state, found)?;
        runs.retain(|run| {
            let is_present = present
                .iter()
                .any(|one| one.uid == run.uid && one.restart == u64::from(run.restart));
            let container = logs.container.as_ref().is_none_or(|name| *name == run.container);
            !is_present && container && logs.wants(&run.replica)
        });
    } else if let Some((_, job)) = &found.job {
        let absent = gone::replicas(job, pods, Timestamp::now());
        for (replica, _) in absent.into_iter().filter(|(replica, _)| logs.wants(replica)) {
            runs.extend(kept::last(logs, Some(state), found, &replica)?);
        }
    }
    let mut shown = Vec::new();
    for run in runs {
        let lines = run.lines().map_err(|error| Failure::other("reading a kept log", &error))?;
        let mut source = Source::Kept(lines, logs.begin()).tailed(logs.tail_lines()).await?;
        painter.expect([run.replica.as_str()]);
        while let Some(line) = source.next().await? {
            output::print_bytes(&painter.line(&run.replica, line.time, &line.text))?;
        }
        shown.push(run.replica);
    }
    Ok(shown)
}
