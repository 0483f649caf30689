//! Why a volume cannot be given to a pod, in the kubelet's words where it has any.

/// Why a volume cannot be given.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VolumeError {
    /// A volume could not be made.
    #[error("MountVolume.SetUp failed for volume {volume:?} : {problem}")]
    SetUp {
        /// Its name in the pod.
        volume: String,
        /// What went wrong.
        problem: String,
    },
    /// A claim cannot be used.
    #[error("error processing PVC {namespace}/{claim}: {problem}")]
    Claim {
        /// The pod's.
        namespace: String,
        /// The claim's name.
        claim: String,
        /// What went wrong.
        problem: String,
    },
    /// A kind of volume that cannot be had here.
    #[error("volume {volume:?} is of kind {source_kind}, which this node cannot mount; {instead}")]
    Unsupported {
        /// Its name in the pod.
        volume: String,
        /// As in the manifest.
        source_kind: String,
        /// What can be used.
        instead: &'static str,
    },
    /// A container wants a volume the pod does not have.
    #[error("cannot find volume {volume:?} to mount into container {container:?}")]
    Missing {
        /// The volume.
        volume: String,
        /// The container.
        container: String,
    },
    /// A path inside a volume, or in the container, that cannot be used.
    #[error("{0}")]
    Mount(String),
}

impl VolumeError {
    /// What went wrong with a volume.
    pub(crate) fn set_up(volume: &str, problem: impl Into<String>) -> Self {
        Self::SetUp { volume: volume.to_owned(), problem: problem.into() }
    }
}
