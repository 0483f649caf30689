//! What the operator was told at its start, as far as decisions depend on it.
//!
//! Every duration that a plan uses is here, so that tests can shorten it.

use trainyard_api::{CleanPodPolicy, volcano::names as volcano};

use crate::child::Child;

/// Settings of the planner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Pod policy of jobs that name none.
    pub default_clean_pod_policy: CleanPodPolicy,
    /// Put the evaluator into everybody's cluster map, as the reference operator did.
    pub evaluator_in_cluster: bool,
    /// Appended to service names, e.g. `cluster.local`.
    pub cluster_domain: Option<String>,
    /// Pause before the second new pod of a replica; doubles with each further one.
    pub restart_backoff_ms: i64,
    /// Longest pause between two new pods of a replica.
    pub restart_backoff_ms_max: i64,
    /// A replica that ran this long starts again without a pause.
    pub restart_reset_ms: i64,
    /// Mere changes of counts are held back this long, so that several go out as one write.
    pub counts_delay_ms: i64,
    /// A pod that should have been gone this long ago is deleted without waiting for its node;
    /// 0 means never.
    pub lost_pod_ms: i64,
    /// A kubelet that has published the end of a pod's containers may take so long to publish the pod's
    /// final phase, and with it that it was not the program that ended.
    pub final_phase_ms: i64,
    /// How many create or delete events of one type and pass are told one by one.
    pub events_each: usize,
    /// A PodGroup that no scheduler has taken up for so long is told of.
    pub unseen_group_ms: i64,
    /// Who starts the pods of a job all together or not at all.
    pub gang: Gang,
}

/// Who starts the pods of a job all together or not at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Gang {
    /// Nobody: pods are scheduled one by one.
    #[default]
    Off,
    /// A scheduler that reads Volcano's PodGroups: Volcano, or ours.
    PodGroup {
        /// Its name in pods.
        scheduler: String,
    },
    /// A scheduler with the scheduler plugins.
    PluginsPodGroup {
        /// Its name in pods.
        scheduler: String,
    },
}

impl Gang {
    /// Name of our own scheduler.
    pub const TRAINYARD: &'static str = "trainyard";

    /// By the scheduler's name, as `--gang-scheduler-name` has it.
    #[must_use]
    pub fn by_scheduler(name: &str) -> Self {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if name.is_empty() || is("none") {
            Self::Off
        } else if is(volcano::SCHEDULER) || is(Self::TRAINYARD) {
            Self::PodGroup { scheduler: name.to_ascii_lowercase() }
        } else {
            Self::PluginsPodGroup { scheduler: name.to_owned() }
        }
    }

    /// The scheduler's name in pods.
    #[must_use]
    pub fn scheduler(&self) -> Option<&str> {
        match self {
            Self::Off => None,
            Self::PodGroup { scheduler } | Self::PluginsPodGroup { scheduler } => Some(scheduler),
        }
    }

    /// The kind of the group that it reads.
    #[must_use]
    pub const fn child(&self) -> Option<Child> {
        match self {
            Self::Off => None,
            Self::PodGroup { .. } => Some(Child::PodGroup),
            Self::PluginsPodGroup { .. } => Some(Child::PluginsPodGroup),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            default_clean_pod_policy: CleanPodPolicy::Running,
            evaluator_in_cluster: false,
            cluster_domain: None,
            restart_backoff_ms: 10_000,
            restart_backoff_ms_max: 300_000,
            restart_reset_ms: 600_000,
            counts_delay_ms: 1_000,
            lost_pod_ms: 300_000,
            final_phase_ms: 5_000,
            events_each: 10,
            unseen_group_ms: 60_000,
            gang: Gang::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gang_scheduler_by_its_name() {
        let group = |name: &str| Gang::PodGroup { scheduler: name.to_owned() };
        let plugins = |name: &str| Gang::PluginsPodGroup { scheduler: name.to_owned() };
        for (name, expected) in [
            ("", Gang::Off),
            ("none", Gang::Off),
            ("None", Gang::Off),
            ("Volcano", group("volcano")),
            ("trainyard", group("trainyard")),
            ("Scheduler-Plugins", plugins("Scheduler-Plugins")),
        ] {
            assert_eq!(Gang::by_scheduler(name), expected, "{name:?}");
        }
    }
}
