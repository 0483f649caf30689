//! Replica types and the identity of one replica.
//!
//! Must not know templates or policies.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kinds of process in a TensorFlow job. The order is the one in which types are visited and,
/// in lower case, the order of keys in `TF_CONFIG`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ReplicaType {
    /// Drives the training and writes checkpoints.
    Chief,
    /// Computes metrics beside the training.
    Evaluator,
    /// Older name of the chief.
    Master,
    /// Parameter server.
    #[serde(rename = "PS")]
    Ps,
    /// Trains.
    Worker,
}

impl ReplicaType {
    /// All types, in the order of visits.
    pub const ALL: [Self; 5] = [Self::Chief, Self::Evaluator, Self::Master, Self::Ps, Self::Worker];

    /// The spelling used in manifests and status.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chief => "Chief",
            Self::Evaluator => "Evaluator",
            Self::Master => "Master",
            Self::Ps => "PS",
            Self::Worker => "Worker",
        }
    }

    /// The spelling used in names, labels and `TF_CONFIG`.
    #[must_use]
    pub const fn lower(self) -> &'static str {
        match self {
            Self::Chief => "chief",
            Self::Evaluator => "evaluator",
            Self::Master => "master",
            Self::Ps => "ps",
            Self::Worker => "worker",
        }
    }

    /// The type of a key in any case.
    #[must_use]
    pub fn parse(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(key))
    }

    /// Whether this type, where present, decides the job.
    #[must_use]
    pub const fn is_chief(self) -> bool {
        matches!(self, Self::Chief | Self::Master)
    }
}

impl fmt::Display for ReplicaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One replica of a job: a type and an index. Prints as `worker-0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicaId {
    /// Its type.
    pub kind: ReplicaType,
    /// Its index.
    pub index: u32,
}

impl fmt::Display for ReplicaId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.kind.lower(), self.index)
    }
}
