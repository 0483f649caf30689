//! The kinds of object that some jobs have beside pods and services, and where they are found.
//!
//! Must not know which job has which, nor what they mean.

use trainyard_core::Child;

/// What to do when definitions of ours are missing.
const OURS: &str = "install it with: trainyard crd | kubectl apply -f -";
/// What to do when the scheduler plugins' definition is missing.
const PLUGINS: &str = "install the definitions of the scheduler plugins, or choose another gang \
                       scheduler";
/// What to do when a kind is missing that every API server has.
const BUILT_IN: &str = "this API server cannot run jobs";

/// A kind of object that is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    ConfigMaps,
    NetworkPolicies,
    Claims,
    PodGroups,
    PluginsPodGroups,
    Commands,
    PriorityClasses,
    Nodes,
}

impl Beside {
    /// Plural name.
    pub(crate) const fn resource(self) -> &'static str {
        match (self, self.child()) {
            (_, Some(child)) => child.resource(),
            (Self::Nodes, None) => "nodes",
            (_, None) => "priorityclasses",
        }
    }

    /// Where its group and version are found.
    pub(crate) const fn prefix(self) -> &'static str {
        match (self, self.child()) {
            (_, Some(child)) => child.prefix(),
            (Self::Nodes, None) => "/api/v1",
            (_, None) => "/apis/scheduling.k8s.io/v1",
        }
    }

    /// Whether its objects live in namespaces.
    pub(crate) const fn is_namespaced(self) -> bool {
        self.child().is_some()
    }

    /// Whether it is watched by the job kind's label.
    pub(crate) const fn is_selected(self) -> bool {
        match self.child() {
            Some(child) => is_labelled(child),
            None => false,
        }
    }

    /// What to do when the API server does not know it.
    pub(crate) const fn remedy(self) -> &'static str {
        match self.child() {
            Some(child) => remedy(child),
            None => BUILT_IN,
        }
    }

    /// The kind as plans name it; plans make no priority classes and no nodes.
    const fn child(self) -> Option<Child> {
        Some(match self {
            Self::ConfigMaps => Child::ConfigMap,
            Self::NetworkPolicies => Child::NetworkPolicy,
            Self::Claims => Child::Claim,
            Self::PodGroups => Child::PodGroup,
            Self::PluginsPodGroups => Child::PluginsPodGroup,
            Self::Commands => Child::Command,
            Self::PriorityClasses | Self::Nodes => return None,
        })
    }
}

/// Whether objects of a kind carry the label by which they are watched. The others are made by
/// people too, or were made by whoever looked after the jobs before us: all of them are watched.
pub(crate) const fn is_labelled(child: Child) -> bool {
    !matches!(child, Child::Claim | Child::PodGroup | Child::PluginsPodGroup | Child::Command)
}

/// What to do when the API server does not know a kind.
pub(crate) const fn remedy(child: Child) -> &'static str {
    match child {
        Child::PodGroup | Child::Command => OURS,
        Child::PluginsPodGroup => PLUGINS,
        Child::Pod | Child::Service | Child::ConfigMap | Child::NetworkPolicy | Child::Claim => {
            BUILT_IN
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_where_the_api_has_it() {
        let all = [
            (Beside::ConfigMaps, "/api/v1/configmaps", true),
            (Beside::NetworkPolicies, "/apis/networking.k8s.io/v1/networkpolicies", true),
            (Beside::Claims, "/api/v1/persistentvolumeclaims", false),
            (Beside::PodGroups, "/apis/scheduling.volcano.sh/v1beta1/podgroups", false),
            (Beside::PluginsPodGroups, "/apis/scheduling.x-k8s.io/v1alpha1/podgroups", false),
            (Beside::Commands, "/apis/bus.volcano.sh/v1alpha1/commands", false),
            (Beside::PriorityClasses, "/apis/scheduling.k8s.io/v1/priorityclasses", false),
            (Beside::Nodes, "/api/v1/nodes", false),
        ];
        for (beside, path, selected) in all {
            assert_eq!(format!("{}/{}", beside.prefix(), beside.resource()), path);
            assert_eq!(beside.is_selected(), selected, "{beside:?}");
            let is_wide = matches!(beside, Beside::PriorityClasses | Beside::Nodes);
            assert_eq!(beside.is_namespaced(), !is_wide, "{beside:?}");
        }
    }
}
