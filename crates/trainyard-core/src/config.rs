//! What the operator was told at its start, as far as decisions depend on it.
//!
//! Every duration that a plan uses is here, so that tests can shorten it.

use trainyard_api::CleanPodPolicy;

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
    /// How many create or delete events of one type and pass are told one by one.
    pub events_each: usize,
    /// Tell the scheduler which pods start all together or not at all.
    pub gangs: bool,
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
            events_each: 10,
            gangs: false,
        }
    }
}
