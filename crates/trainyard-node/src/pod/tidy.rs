//! Clears away what containers leave: the oldest logs of all pods when together they take more than they
//! may.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::logs::{self, Logged};
use crate::shared::{Shared, lock};

/// One container's logs are bounded by themselves: looking this often is enough.
const OFTEN: Duration = Duration::from_mins(5);
const FIRST: Duration = Duration::from_secs(2);

/// Removes the oldest logs whenever there are too many; never returns.
pub(crate) async fn keep_logs_within_bounds(shared: Arc<Shared>) {
    // A short run shall not spend its time on the logs of those before it.
    sleep(FIRST).await;
    loop {
        let look = Arc::clone(&shared);
        let trimmed = tokio::task::spawn_blocking(move || {
            logs::trim(&look.places.logs, logs::ALL_BYTES, |log| is_needed(&look, log))
        });
        match trimmed.await {
            Ok(Ok(trimmed)) if trimmed.logs > 0 => {
                let (logs, bytes) = (trimmed.logs, trimmed.bytes);
                tracing::info!(logs, bytes, "the oldest logs were removed to make room");
            }
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%error, kind = error.kind(), "old logs could not be removed");
            }
            Err(error) => tracing::warn!(%error, "old logs could not be removed"),
        }
        sleep(OFTEN).await;
    }
}

/// The present run of a container and the one before it can be asked for while their pod lives.
fn is_needed(shared: &Shared, log: &Path) -> bool {
    let Some(logged) = Logged::read(log) else { return true };
    let Some(live) = lock(&shared.pods).get(logged.uid).cloned() else { return false };
    let record = live.record();
    let restarts = record.find(logged.container).map_or(0, |container| container.restarts);
    !live.is_settled() && i64::from(logged.restart) + 1 >= i64::from(restarts)
}
