//! What all kinds of job stand on: the way to the API server, the clock, the settings.
//!
//! Must not know any kind of job.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{Metrics, Options, calls::Calls, clock::Clock};

/// Shares of the room for large jobs.
pub(crate) const SHARES: u32 = 64;

/// What the kinds share.
pub(crate) struct Ground {
    pub(crate) calls: Calls,
    pub(crate) clock: Clock,
    pub(crate) options: Options,
    pub(crate) metrics: Arc<Metrics>,
    /// Room for writes: so many of all jobs at a time.
    pub(crate) slots: Arc<Semaphore>,
    /// Room for passes over large jobs of all kinds, in shares: what a pass takes in memory follows the size
    /// of its job.
    pub(crate) room: Arc<Semaphore>,
    /// Cancelled when the operator is to stop.
    pub(crate) stop: CancellationToken,
}

impl Ground {
    pub(crate) fn new(
        client: kube::Client,
        options: Options,
        metrics: Arc<Metrics>,
        stop: CancellationToken,
    ) -> Self {
        Self {
            room: Arc::new(Semaphore::new(SHARES as usize)),
            calls: Calls::new(client, Arc::clone(&metrics), &options),
            clock: Clock::start(options.time),
            slots: Arc::new(Semaphore::new(options.writes_in_flight.max(1))),
            options,
            metrics,
            stop,
        }
    }
}
