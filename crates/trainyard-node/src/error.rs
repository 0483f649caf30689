//! Why an agent cannot start, or has ended.

use crate::net::NetError;
use crate::node::NodeError;

/// Why an agent cannot start, or has ended.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The state folder cannot be used.
    #[error("the state folder {folder} cannot be used: {reason}")]
    State {
        /// The folder.
        folder: String,
        /// Why not.
        reason: String,
    },
    /// The holder did not start, or refused.
    #[error("the pods' holder could not be started: {0}")]
    Holder(String),
    /// The holder ended while the agent ran.
    #[error(
        "the pods' holder ended, and every pod with it; they are reported lost at the next start"
    )]
    HolderEnded,
    /// The holder of an agent before this one does not end.
    #[error(
        "process {0} still ends the pods of the agent that used this state folder before; \
         wait for it, or kill it if it hangs"
    )]
    HolderStays(String),
    /// A level was required and cannot be had.
    #[error("{wanted} was required and cannot be had here: {reason}")]
    Level {
        /// What was required.
        wanted: &'static str,
        /// Why it cannot be had.
        reason: String,
    },
    /// More nodes than addresses.
    #[error("the pods' network is too small for its nodes; give a larger one with --pod-network")]
    NetworkTooSmall,
    /// Two nodes of one name.
    #[error("node {0} is given twice")]
    NodeTwice(String),
    /// The kubelet's API cannot be served.
    #[error("logs and exec cannot be served on {address}: {reason}")]
    Serve {
        /// Where.
        address: String,
        /// Why not.
        reason: String,
    },
    /// Image settings that cannot be used.
    #[error(transparent)]
    Images(#[from] trainyard_image::SettingsError),
    /// A node cannot be shown to the API server.
    #[error("{0}")]
    Node(String),
    /// The pods' network cannot be served.
    #[error("{0}")]
    Network(String),
}

impl AgentError {
    /// A word for the kind of failure.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::State { .. } => "State",
            Self::Holder(_) | Self::HolderEnded | Self::HolderStays(_) => "Holder",
            Self::Level { .. } => "Level",
            Self::NetworkTooSmall | Self::Network(_) => "Network",
            Self::NodeTwice(_) | Self::Node(_) => "Node",
            Self::Serve { .. } => "Serve",
            Self::Images(_) => "Images",
        }
    }
}

impl From<NodeError> for AgentError {
    fn from(error: NodeError) -> Self {
        Self::Node(error.to_string())
    }
}

impl From<NetError> for AgentError {
    fn from(error: NetError) -> Self {
        Self::Network(error.to_string())
    }
}
