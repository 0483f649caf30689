//! What the operator asks of a kind of job.
//!
//! Everything else in this crate works for any kind; must not name one.

use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use trainyard_api::Meta;
use trainyard_core::{Config, Plan, PodView, ServiceView};

use crate::cache::Object;

/// A kind of job.
pub(crate) trait JobKind: Send + Sync + 'static {
    /// The job, as read from the API server.
    type Job: Object + DeserializeOwned + Send + Sync + 'static;

    /// Group and version.
    const API_VERSION: &'static str;
    /// Kind in manifests.
    const KIND: &'static str;
    /// Plural name in paths.
    const RESOURCE: &'static str;
    /// The same with the status, as it is counted.
    const STATUS: &'static str;
    /// Label and value by which the operator knows its pods and services.
    const LABEL: (&'static str, &'static str);
    /// Component under which events are reported.
    const EVENT_SOURCE: &'static str;
    /// Label of the job counters.
    const FRAMEWORK: &'static str;
    /// What to do when the API server does not know the kind.
    const REMEDY: &'static str;

    /// Metadata of a job.
    fn meta(job: &Self::Job) -> &Meta;
    /// Whether it has ended.
    fn is_finished(job: &Self::Job) -> bool;
    /// What to do next.
    fn plan(seen: &Seen<Self::Job>, now: Timestamp, config: &Config) -> Plan;
}

/// What is known of one job when a plan is made.
#[derive(Debug)]
pub(crate) struct Seen<J> {
    pub(crate) job: Arc<J>,
    pub(crate) pods: Vec<Arc<PodView>>,
    pub(crate) services: Vec<Arc<ServiceView>>,
    pub(crate) counts_pending_since: Option<Timestamp>,
    /// Why objects of this generation of the job could not be created.
    pub(crate) refused: Option<String>,
}
