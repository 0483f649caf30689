//! What is read of a pod's specification: its node, and when the kubelet starts each container again.
//!
//! Must not know what the containers do.

use serde::{Deserialize, de::IgnoredAny};

use crate::phase::InPlaceRestart;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SpecWire {
    pub(super) node_name: Box<str>,
    restart_policy: Box<str>,
    init_containers: Option<Vec<ContainerSpecWire>>,
    containers: Vec<ContainerSpecWire>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContainerSpecWire {
    name: Box<str>,
    restart_policy: Option<Box<str>>,
    restart_policy_rules: Option<Vec<IgnoredAny>>,
}

impl SpecWire {
    /// When the container of that name is started again.
    pub(super) fn restart(&self, name: &str) -> InPlaceRestart {
        let own = own_policy(&self.containers, name);
        self.unless_by_rules(own.unwrap_or_else(|| policy(&self.restart_policy)))
    }

    /// When the init container of that name is started again.
    pub(super) fn restart_init(&self, name: &str) -> InPlaceRestart {
        match (own_policy(self.init(), name), policy(&self.restart_policy)) {
            // A sidecar.
            (Some(InPlaceRestart::Always), _) => InPlaceRestart::Always,
            (Some(own), _) => self.unless_by_rules(own),
            // One that has succeeded is never run again.
            (None, InPlaceRestart::Always) => self.unless_by_rules(InPlaceRestart::OnFailure),
            (None, of_pod) => self.unless_by_rules(of_pod),
        }
    }

    /// A rule of one container may start all containers of the pod again.
    fn unless_by_rules(&self, restart: InPlaceRestart) -> InPlaceRestart {
        let has_rules = |container: &ContainerSpecWire| {
            container.restart_policy_rules.as_ref().is_some_and(|rules| !rules.is_empty())
        };
        let by_rules = self.init().iter().chain(&self.containers).any(has_rules);
        if by_rules { InPlaceRestart::ByRules } else { restart }
    }

    fn init(&self) -> &[ContainerSpecWire] {
        self.init_containers.as_deref().unwrap_or_default()
    }
}

fn own_policy(containers: &[ContainerSpecWire], name: &str) -> Option<InPlaceRestart> {
    let container = containers.iter().find(|container| *container.name == *name)?;
    container.restart_policy.as_deref().map(policy)
}

fn policy(word: &str) -> InPlaceRestart {
    match word {
        "Never" => InPlaceRestart::Never,
        "OnFailure" => InPlaceRestart::OnFailure,
        // The API server's default.
        _ => InPlaceRestart::Always,
    }
}
