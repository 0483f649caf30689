//! The kinds of object that are made for a job, by the names that the API has for them.
//!
//! Must not know which job makes which.

/// A kind of object that belongs to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Child {
    /// A pod.
    Pod,
    /// A service.
    Service,
    /// A config map.
    ConfigMap,
    /// A network policy.
    NetworkPolicy,
    /// A claim to a volume.
    Claim,
    /// Volcano's PodGroup: what starts all together or not at all.
    PodGroup,
    /// The PodGroup of the scheduler plugins.
    PluginsPodGroup,
    /// Volcano's Command: somebody asks for an action, once.
    Command,
}

impl Child {
    /// Group and version.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Pod | Self::Service | Self::ConfigMap | Self::Claim => "v1",
            Self::NetworkPolicy => "networking.k8s.io/v1",
            Self::PodGroup => "scheduling.volcano.sh/v1beta1",
            Self::PluginsPodGroup => "scheduling.x-k8s.io/v1alpha1",
            Self::Command => "bus.volcano.sh/v1alpha1",
        }
    }

    /// Where its group and version are found.
    #[must_use]
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Pod | Self::Service | Self::ConfigMap | Self::Claim => "/api/v1",
            Self::NetworkPolicy => "/apis/networking.k8s.io/v1",
            Self::PodGroup => "/apis/scheduling.volcano.sh/v1beta1",
            Self::PluginsPodGroup => "/apis/scheduling.x-k8s.io/v1alpha1",
            Self::Command => "/apis/bus.volcano.sh/v1alpha1",
        }
    }

    /// Plural name in paths.
    #[must_use]
    pub const fn resource(self) -> &'static str {
        match self {
            Self::Pod => "pods",
            Self::Service => "services",
            Self::ConfigMap => "configmaps",
            Self::NetworkPolicy => "networkpolicies",
            Self::Claim => "persistentvolumeclaims",
            Self::PodGroup | Self::PluginsPodGroup => "podgroups",
            Self::Command => "commands",
        }
    }

    /// Kind in manifests.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Pod => "Pod",
            Self::Service => "Service",
            Self::ConfigMap => "ConfigMap",
            Self::NetworkPolicy => "NetworkPolicy",
            Self::Claim => "PersistentVolumeClaim",
            Self::PodGroup | Self::PluginsPodGroup => "PodGroup",
            Self::Command => "Command",
        }
    }

    /// What events call it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Pod => "pod",
            Self::Service => "service",
            other => other.kind(),
        }
    }
}
