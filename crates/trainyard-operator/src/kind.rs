//! What the operator asks of a kind of job.
//!
//! Everything else in this crate works for any kind; must not name one.

use std::{collections::BTreeMap, fmt, sync::Arc};

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use trainyard_api::Meta;
use trainyard_core::{
    Aid, Config, Plan, PodView, ServiceView, Tongue,
    aid::{ClassFacts, CommandFacts, ConfigMapFacts, GroupFacts, Presence},
};

use crate::{beside::Beside, cache::Object};

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
    /// Name of its definition.
    const DEFINITION: &'static str;
    /// The label by which the operator knows pods and what else is made for jobs.
    const SELECTOR: Selector;
    /// Component under which events are reported.
    const EVENT_SOURCE: &'static str;
    /// In whose words it is told how writes ended.
    const TONGUE: Tongue;
    /// Label of the job counters.
    const FRAMEWORK: &'static str;
    /// What to do when the API server does not know the kind.
    const REMEDY: &'static str;
    /// What it means that the definition is somebody else's.
    const LEFT: &'static str;

    /// What is watched beside jobs, pods and services.
    fn beside(config: &Config) -> &'static [Beside];
    /// Metadata of a job.
    fn meta(job: &Self::Job) -> &Meta;
    /// Whether it has ended.
    fn is_finished(job: &Self::Job) -> bool;
    /// What to do next.
    fn plan(seen: &Seen<Self::Job>, now: Timestamp, config: &Config) -> Plan;

    /// Returns how many bytes of text a job has, by which room is taken for its pass.
    fn text_bytes(_job: &Self::Job) -> usize {
        0
    }

    /// The queue under which the end of a job is counted; of most kinds only sums are.
    fn queue(_job: &Self::Job) -> Option<String> {
        None
    }
}

/// A label that an object must have, with a value or with any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Selector {
    pub(crate) label: &'static str,
    pub(crate) value: Option<&'static str>,
}

impl Selector {
    /// Whether an object with these labels is found by it.
    pub(crate) fn finds(self, labels: &BTreeMap<String, String>) -> bool {
        labels.get(self.label).is_some_and(|found| self.value.is_none_or(|value| found == value))
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value {
            Some(value) => write!(f, "{}={value}", self.label),
            None => f.write_str(self.label),
        }
    }
}

/// What is known of one job when a plan is made.
#[derive(Debug)]
pub(crate) struct Seen<J> {
    pub(crate) job: Arc<J>,
    pub(crate) pods: Vec<Arc<PodView>>,
    pub(crate) services: Vec<Arc<ServiceView>>,
    pub(crate) config_maps: Vec<Arc<Aid<ConfigMapFacts>>>,
    pub(crate) policies: Vec<Arc<Aid<Presence>>>,
    pub(crate) claims: Vec<Arc<Aid<Presence>>>,
    pub(crate) groups: Vec<Arc<Aid<GroupFacts>>>,
    pub(crate) commands: Vec<Arc<Aid<CommandFacts>>>,
    /// All that there are: they belong to nobody.
    pub(crate) classes: Vec<Arc<Aid<ClassFacts>>>,
    pub(crate) counts_pending_since: Option<Timestamp>,
    /// Pods that have gone and of which not everything is recorded, in the order of their going.
    pub(crate) departed: Vec<Arc<PodView>>,
    /// Why objects of this generation of the job could not be created.
    pub(crate) refused: Option<String>,
    /// Why an object could not be created when that was last tried.
    pub(crate) create_failure: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_asks_for_a_value_or_for_any() {
        let labels = |value: &str| BTreeMap::from([("by".to_owned(), value.to_owned())]);
        let one = Selector { label: "by", value: Some("toys") };
        assert!(one.finds(&labels("toys")) && !one.finds(&labels("others")));
        let any = Selector { label: "by", value: None };
        assert!(any.finds(&labels("others")) && !any.finds(&BTreeMap::new()));
        assert_eq!((one.to_string(), any.to_string()), ("by=toys".to_owned(), "by".to_owned()));
    }
}
