//! What can go wrong with the Node itself. Pods that are not taken are [`super::Rejection`]s.

use std::path::PathBuf;

/// Trouble with the machine, the command line's resources, or the Node object.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NodeError {
    /// A fact of the machine could not be read.
    #[error("cannot read {what} from {}: {reason}", path.display())]
    Machine { what: &'static str, path: PathBuf, reason: String },
    /// A node's name that no Node can bear.
    #[error(
        "node name {name:?} cannot be used: {problem}; use lower-case letters, digits, `-` and `.`, \
         at most 63 of them, beginning and ending with a letter or digit"
    )]
    Name { name: String, problem: &'static str },
    /// A share of the machine that makes no sense.
    #[error("{option} {given}: {problem}")]
    Resource { option: &'static str, given: String, problem: String },
    /// The Node belongs to some other kubelet.
    #[error(
        "node {name:?} is already registered by another kubelet ({runtime}, {kubelet}); choose another \
         name, or remove it with `kubectl delete node {name}`"
    )]
    Foreign { name: String, runtime: String, kubelet: String },
    /// Another agent keeps this Node alive; where nothing but a lease tells so, it may lapse.
    #[error("node {name:?} is kept by {holder}; stop that agent or choose another name")]
    Held { name: String, holder: String, lapses: bool },
    /// The API server did not do what was asked.
    #[error("{doing}: {source}")]
    Api { doing: String, source: Box<kube::Error> },
    /// The API server did not answer in time.
    #[error("{doing}: no answer within {seconds} s")]
    Silence { doing: String, seconds: u64 },
}

impl NodeError {
    /// A short name for logs and metrics.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Machine { .. } => "Machine",
            Self::Name { .. } => "Name",
            Self::Resource { .. } => "Resource",
            Self::Foreign { .. } => "ForeignNode",
            Self::Held { .. } => "HeldNode",
            Self::Api { .. } => "Api",
            Self::Silence { .. } => "Silence",
        }
    }

    /// Trying again later may help: the server was unreachable or busy, or the Node's keeper may go.
    pub(crate) fn passes(&self) -> bool {
        match self {
            Self::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => status.code >= 500 || matches!(status.code, 409 | 429),
                kube::Error::HyperError(_) | kube::Error::Service(_) => true,
                _ => false,
            },
            Self::Silence { .. } => true,
            Self::Held { lapses, .. } => *lapses,
            _ => false,
        }
    }

    pub(super) fn api(doing: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Api { doing, source: Box::new(source) }
    }

    pub(super) fn status_code(&self) -> Option<u16> {
        match self {
            Self::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) => Some(status.code),
                _ => None,
            },
            _ => None,
        }
    }
}
