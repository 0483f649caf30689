//! The signals that end a command which runs until it is told to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// SIGTERM and SIGINT.
pub(super) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// Catches them from now on.
    pub(super) fn catch() -> Result<Self, Failure> {
        let catch = |kind| signal(kind).map_err(|error| Failure::other("catching signals", &error));
        Ok(Self { term: catch(SignalKind::terminate())?, int: catch(SignalKind::interrupt())? })
    }

    /// The name of the next one.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}
