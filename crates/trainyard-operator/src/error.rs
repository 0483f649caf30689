//! Why an operator ends other than by being asked to.

use thiserror::Error;

/// Why an operator ended.
#[derive(Debug, Error)]
pub enum Error {
    /// Another operator may act now, so this one must not.
    #[error("the lease {lease} was not renewed in time; another operator may be acting")]
    LeadershipLost {
        /// Namespace and name of the lease.
        lease: String,
    },
    /// A part of the operator ended, which it never should.
    #[error("a part of the operator ended unexpectedly: {problem}")]
    Broken {
        /// What is known of it.
        problem: String,
    },
    /// What is asked about could not be read.
    #[error("{resource} cannot be read: {problem}")]
    Unread {
        /// Which objects.
        resource: &'static str,
        /// What the API server said.
        problem: String,
    },
    /// Whoever asks may not read some of it.
    #[error("not allowed to list {}", denied.iter().map(|one| one.resource).collect::<Vec<_>>().join(", "))]
    Forbidden {
        /// All that may not be read.
        denied: Vec<Denied>,
    },
    /// Nothing of that name is scheduled.
    #[error(
        "there is no pod group and no pod {namespace}/{name}; see `kubectl get podgroups,pods -n {namespace}`"
    )]
    NoGroup {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// A setting that cannot be used.
    #[error("{option} {problem}")]
    Option {
        /// Which one.
        option: &'static str,
        /// What is wrong with it and what to do.
        problem: String,
    },
}

/// A resource that may not be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    /// Its plural name.
    pub resource: &'static str,
    /// The API server's refusal.
    pub problem: String,
}

impl Error {
    /// One word for logs and metric labels.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LeadershipLost { .. } => "leadership_lost",
            Self::Broken { .. } => "broken",
            Self::Unread { .. } => "unread",
            Self::Forbidden { .. } => "forbidden",
            Self::NoGroup { .. } => "no_group",
            Self::Option { .. } => "option",
        }
    }
}
