//! The signals that end a command which runs until it is told to stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;

/// SIGTERM and SIGINT.
pub(crate) struct Signals {
    term: Signal,
    int: Signal,
}

impl Signals {
    /// Catches them from now on.
    pub(crate) fn catch() -> Result<Self, Failure> {
        let catch = |kind| signal(kind).map_err(|error| Failure::other("catching signals", &error));
        Ok(Self { term: catch(SignalKind::terminate())?, int: catch(SignalKind::interrupt())? })
    }

    /// The name of the next one.
    pub(crate) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}
