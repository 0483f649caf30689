//! What an operator is told at its start.
//!
//! Every duration of the operator is here or in the planner's settings, so that tests can shorten
//! it. Must not read the environment or a command line.

use std::time::Duration;

/// Settings of an operator.
#[derive(Debug, Clone)]
pub struct Options {
    /// Settings of the planner.
    pub planner: trainyard_core::Config,
    /// Look after the jobs of this namespace only; of all when not given.
    pub namespace: Option<String>,
    /// Whether Volcano Jobs are looked after beside TFJobs.
    pub volcano_jobs: VolcanoJobs,
    /// Jobs of one kind worked on at the same time.
    pub passes: usize,
    /// Writes of all jobs under way at the same time.
    pub writes_in_flight: usize,
    /// Requests per second that are not exceeded; no limit when not given.
    pub qps: Option<f64>,
    /// Requests that may go out at once before `qps` holds the next one back.
    pub burst: u32,
    /// A request that takes longer has an unknown outcome.
    pub request_timeout: Duration,
    /// Pause before a failed pass is made again; doubles with each failure of that job.
    pub retry_min: Duration,
    /// Longest such pause.
    pub retry_max: Duration,
    /// The lease that lets one of several operators act; without it this one always acts.
    pub leader: Option<LeaderOptions>,
    /// Where the time comes from.
    pub time: Time,
}

/// Whether Volcano Jobs are looked after.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum VolcanoJobs {
    /// If the definition of the kind is Trainyard's; where it is Volcano's, Volcano runs them.
    Auto,
    /// Whoever installed the definition.
    Always,
    /// No.
    #[default]
    Never,
}

/// Where the time comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Time {
    /// The machine's time of day, which goes on while the machine sleeps.
    OfDay,
    /// The runtime's, from the time of day at the start on: for a runtime whose time is paused.
    OfRuntime,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            planner: trainyard_core::Config::default(),
            namespace: None,
            volcano_jobs: VolcanoJobs::Never,
            passes: 32,
            writes_in_flight: 64,
            qps: None,
            burst: 0,
            request_timeout: Duration::from_secs(30),
            retry_min: Duration::from_millis(5),
            retry_max: Duration::from_mins(1),
            leader: None,
            time: Time::OfDay,
        }
    }
}

/// Which lease to hold, and how.
#[derive(Debug, Clone)]
pub struct LeaderOptions {
    /// Namespace of the lease.
    pub namespace: String,
    /// Name of the lease.
    pub lease: String,
    /// Who we are; must differ between operators.
    pub identity: String,
    /// How long others wait for a holder that does not renew.
    pub lease_duration: Duration,
    /// A holder that could not renew for this long stops acting.
    pub renew_deadline: Duration,
    /// Pause between two attempts.
    pub retry_period: Duration,
}

impl LeaderOptions {
    /// A lease with the usual durations.
    #[must_use]
    pub fn new(
        namespace: impl Into<String>,
        lease: impl Into<String>,
        identity: impl Into<String>,
    ) -> Self {
        Self {
            namespace: namespace.into(),
            lease: lease.into(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}
