//! Makes a container's probes as they fall due and tells what they change. Ends when dropped, or when
//! nothing is left to probe.

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::plan::Kind;
use super::run::{Target, run};
use super::state::{Change, ContainerProbes};

/// What a pod's life cycle is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Report {
    /// A warning event to write.
    Event { reason: &'static str, message: String },
    /// Something has changed.
    Change {
        change: Change,
        /// `started` and `ready` of the container's status from now on.
        started: bool,
        ready: bool,
    },
}

/// Probes the container. An event that tells of a result comes before the change it makes.
pub(crate) async fn drive(
    mut probes: ContainerProbes,
    target: &impl Target,
    reports: mpsc::Sender<Report>,
) {
    let mut under_way = FuturesUnordered::new();
    while !probes.is_idle() {
        for plan in probes.begin_due(Instant::now()) {
            under_way.push(async move {
                let outcome = run(&plan, target).await;
                (plan.kind, outcome)
            });
        }
        let next = probes.next_at();
        tokio::select! {
            Some((kind, outcome)) = under_way.next() => {
                let event = outcome.event(kind);
                let change = probes.record(kind, &outcome, Instant::now());
                if !tell(&probes, event, change, &reports).await {
                    return;
                }
                if matches!(change, Some(Change::Unhealthy(Kind::Startup | Kind::Liveness))) {
                    // The container is about to be killed: what the others see of that is no news.
                    return;
                }
            }
            () = wait_until(next) => {}
            () = reports.closed() => return,
        }
    }
}

/// False when nobody listens any more.
async fn tell(
    probes: &ContainerProbes,
    event: Option<(&'static str, String)>,
    change: Option<Change>,
    reports: &mpsc::Sender<Report>,
) -> bool {
    if let Some((reason, message)) = event
        && reports.send(Report::Event { reason, message }).await.is_err()
    {
        return false;
    }
    let Some(change) = change else { return true };
    let (started, ready) = (probes.started(), probes.ready());
    reports.send(Report::Change { change, started, ready }).await.is_ok()
}

async fn wait_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "drive_tests.rs"]
mod tests;
