//! What pods use now, for those who run an agent inside their own process and need no HTTP to ask.
//!
//! Must not know who reads it.

use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use crate::shared::Shared;

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

/// Reads what the pods of an agent use. Put into its options; before the agent has started, and after
/// it has ended, there is nothing to read.
#[derive(Clone, Default)]
pub struct Meter(Arc<OnceLock<Weak<Shared>>>);

impl fmt::Debug for Meter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Meter")
    }
}

impl Meter {
    pub(crate) fn attach(&self, shared: &Arc<Shared>) {
        // A second agent with the same options is not metered.
        let _ = self.0.set(Arc::downgrade(shared));
    }

    /// What every pod uses now.
    pub async fn read(&self) -> Vec<PodUse> {
        let Some(shared) = self.0.get().and_then(Weak::upgrade) else { return Vec::new() };
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_an_agent_there_is_nothing_to_read() {
        assert_eq!(Meter::default().read().await, []);
    }
}
