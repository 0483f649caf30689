//! What those who run an agent inside their own process may see without asking over HTTP: what pods
//! use, and what they print.
//!
//! Must not know who looks.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use futures::{Stream, TryStreamExt as _};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::logs::{self, LogQuery, LogSource, PodPlace};
use crate::shared::{Shared, lock};

/// A reading of one pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodUse {
    /// The pod's UID.
    pub uid: String,
    /// Processor time of its containers since they began, in microseconds.
    pub cpu_usec: u64,
    /// Bytes of memory now, without the page cache that can be given back.
    pub memory: u64,
}

/// Looks into an agent. Put into its options; before the agent has started, and after it has ended,
/// there is nothing to see.
#[derive(Clone, Default)]
pub struct Window(Arc<OnceLock<Weak<Shared>>>);

impl fmt::Debug for Window {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Window")
    }
}

impl Window {
    pub(crate) fn open(&self, shared: &Arc<Shared>) {
        // A second agent with the same options is not looked into.
        let _ = self.0.set(Arc::downgrade(shared));
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.0.get().and_then(Weak::upgrade)
    }

    /// What every pod uses now.
    pub async fn usage(&self) -> Vec<PodUse> {
        let Some(shared) = self.shared() else { return Vec::new() };
        let usage = shared.yard.usage().await.unwrap_or_default();
        usage
            .into_iter()
            .map(|pod| PodUse {
                cpu_usec: pod.containers.iter().map(|used| used.cpu_usec).sum(),
                memory: pod.containers.iter().map(|used| used.memory).sum(),
                uid: pod.pod,
            })
            .collect()
    }

    /// What a run of a container prints, to its end, each line with its time before it. Runs are
    /// counted from 0; one whose pod has gone meanwhile is read from what was kept of it.
    pub async fn log(
        &self,
        pod: &ObjectMeta,
        container: &str,
        restart: u32,
    ) -> io::Result<impl Stream<Item = io::Result<Bytes>> + Send + 'static> {
        let shared = self.shared().ok_or_else(|| io::Error::other("no node runs here"))?;
        let path = PodPlace::of(pod).log(&shared.places.logs, container, restart);
        let uid = pod.uid.as_deref().unwrap_or_default();
        let run = lock(&shared.pods).get(uid).and_then(|live| live.run(container));
        let live = run.filter(|run| run.log.path == path).and_then(|run| run.log.live);
        let query = LogQuery { follow: true, timestamps: true, ..LogQuery::default() };
        let pieces = logs::read(LogSource { path, live }, query).await.map_err(io::Error::other)?;
        Ok(pieces.map_err(io::Error::other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_an_agent_there_is_nothing_to_see() {
        let window = Window::default();
        assert_eq!(window.usage().await, []);
        assert!(window.log(&ObjectMeta::default(), "main", 0).await.is_err());
    }
}
