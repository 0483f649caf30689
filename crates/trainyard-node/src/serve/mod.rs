//! The HTTPS API that a kubelet serves to the API server: container logs, exec over websockets,
//! forwarded ports, stats, the list of pods.
//!
//! Knows pods only through the [`Pods`] trait. Lets nobody in without a client certificate of the given
//! authority. Everything is bounded: connections, streams, messages, headers.

mod clients;
mod exec;
mod forward;
mod log_query;
mod metrics;
mod pods;
mod routes;
mod server;
mod session;
mod stats;
mod status;
mod tls;
mod upgrade;

#[cfg(test)]
mod exec_tests;
#[cfg(test)]
mod fake;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod server_tests;

use std::io;

pub(crate) use clients::Clients;
pub(crate) use pods::{ExecAsk, ExecSession, ForwardTarget, LogAsk, Pods, Refused, TerminalSize};
pub(crate) use server::serve;
pub(crate) use stats::{
    ContainerStats, CpuStats, FsStats, MemoryStats, NodeStats, PodReference, PodStats,
    ProcessStats, RuntimeStats, Summary,
};
pub(crate) use tls::{Identity, server_config};

/// Why the API cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ServeError {
    /// A certificate, key or authority that cannot be used.
    #[error("{what} of the node's API: {problem}")]
    Certificate {
        /// Which.
        what: &'static str,
        /// What is wrong with it and what to do.
        problem: String,
    },
    /// The socket cannot be listened on.
    #[error("listening for the API server: {0}")]
    Listener(#[from] io::Error),
}

impl ServeError {
    /// One word for logs.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::Certificate { .. } => "certificate",
            Self::Listener(_) => "listener",
        }
    }
}
