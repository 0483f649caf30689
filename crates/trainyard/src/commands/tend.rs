//! A daemon's work beside its sockets, until it ends or a signal ends it.
//!
//! Owns the order of the end; must not know what the work is.

use std::io;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};

use super::signals::Signals;
use crate::failure::Failure;
use crate::memory;

/// How long answers under way may take at the end.
const SOCKET_PATIENCE: Duration = Duration::from_secs(2);

/// Waits for the end of the work. The first signal ends it cleanly, the second at once.
pub(super) async fn until_it_ends<T>(
    work: impl Future<Output = T>,
    mut sockets: JoinSet<io::Result<()>>,
    mut signals: Signals,
    stop: CancellationToken,
) -> Result<T, Failure> {
    let mut work = std::pin::pin!(work);
    let mut memory = std::pin::pin!(memory::keep_small());
    let ended = loop {
        tokio::select! {
            ended = &mut work => break ended,
            never = &mut memory => match never {},
            name = signals.next() => {
                if stop.is_cancelled() {
                    return Err(Failure::interrupted(name));
                }
                info!(signal = name, "stopping: finishing writes under way");
                stop.cancel();
            }
            Some(socket) = sockets.join_next() => {
                // Without probes the pod is restarted anyway: better to end in order.
                if let Ok(Err(problem)) = socket {
                    error!(%problem, "serving metrics and probes failed");
                    stop.cancel();
                }
            }
        }
    };
    stop.cancel();
    // A client that keeps its connection open must not keep us.
    let closed = async { while sockets.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(SOCKET_PATIENCE, closed).await;
    Ok(ended)
}
