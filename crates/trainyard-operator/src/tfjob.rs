//! TFJob as a kind of job.
//!
//! Only binds the planner's and the API's names to what the operator asks; decides nothing.

use jiff::Timestamp;
use trainyard_api::{Meta, TfJob, names};
use trainyard_core::{Config, Gang, Observed, Plan, Tongue};

use crate::{
    beside::Beside,
    cache::Object,
    kind::{JobKind, Seen, Selector},
};

/// The kind `TFJob`.
#[derive(Debug)]
pub(crate) struct TfJobs;

impl JobKind for TfJobs {
    type Job = TfJob;

    const API_VERSION: &'static str = names::API_VERSION;
    const KIND: &'static str = names::KIND;
    const RESOURCE: &'static str = names::PLURAL;
    const STATUS: &'static str = "tfjobs/status";
    const DEFINITION: &'static str = names::CRD_NAME;
    const SELECTOR: Selector =
        Selector { label: names::LABEL_OPERATOR, value: Some(names::OPERATOR) };
    const EVENT_SOURCE: &'static str = names::EVENT_SOURCE;
    const TONGUE: Tongue = Tongue::Kubeflow;
    const FRAMEWORK: &'static str = "tensorflow";
    const REMEDY: &'static str = "install it with: trainyard crd | kubectl apply -f -";
    const LEFT: &'static str = "TFJobs are left to whoever runs them";

    fn beside(config: &Config) -> &'static [Beside] {
        match config.gang {
            Gang::Off => &[Beside::Nodes],
            Gang::PodGroup { .. } => &[Beside::Nodes, Beside::PodGroups, Beside::PriorityClasses],
            Gang::PluginsPodGroup { .. } => {
                &[Beside::Nodes, Beside::PluginsPodGroups, Beside::PriorityClasses]
            }
        }
    }

    fn meta(job: &TfJob) -> &Meta {
        &job.metadata
    }

    fn is_finished(job: &TfJob) -> bool {
        job.status().is_finished()
    }

    fn text_bytes(job: &TfJob) -> usize {
        job.text_bytes()
    }

    fn plan(seen: &Seen<TfJob>, now: Timestamp, config: &Config) -> Plan {
        let observed = Observed {
            job: &seen.job,
            pods: &seen.pods,
            departed: &seen.departed,
            services: &seen.services,
            groups: &seen.groups,
            classes: &seen.classes,
            counts_pending_since: seen.counts_pending_since,
            refused: seen.refused.as_deref(),
            create_failure: seen.create_failure.as_deref(),
        };
        trainyard_core::plan(&observed, now, config)
    }
}

impl Object for TfJob {
    fn uid(&self) -> &str {
        &self.metadata.uid
    }

    fn name(&self) -> &str {
        &self.metadata.name
    }

    fn version(&self) -> u64 {
        self.metadata.version()
    }

    fn owner(&self) -> Option<&str> {
        None
    }

    fn same_facts(&mut self, _older: &Self) -> bool {
        false
    }
}
