//! Volcano Job as a kind of job.
//!
//! Only binds the planner's and the API's names to what the operator asks; decides nothing.

use jiff::Timestamp;
use trainyard_api::{
    Meta,
    volcano::{VolcanoJob, names},
};
use trainyard_core::{Config, Plan, Tongue, volcano};

use crate::{
    beside::Beside,
    cache::Object,
    kind::{JobKind, Seen, Selector},
};

/// The kind `Job` of Volcano.
#[derive(Debug)]
pub(crate) struct VolcanoKind;

impl JobKind for VolcanoKind {
    type Job = VolcanoJob;

    const API_VERSION: &'static str = names::API_VERSION;
    const KIND: &'static str = names::KIND;
    const RESOURCE: &'static str = names::PLURAL;
    const STATUS: &'static str = "jobs/status";
    const DEFINITION: &'static str = names::CRD_NAME;
    const SELECTOR: Selector = Selector { label: names::LABEL_JOB, value: None };
    const EVENT_SOURCE: &'static str = names::EVENT_SOURCE;
    const TONGUE: Tongue = Tongue::Volcano;
    const FRAMEWORK: &'static str = "volcano";
    const REMEDY: &'static str = "install it with: trainyard crd --volcano | kubectl apply -f -";
    const LEFT: &'static str = "Volcano Jobs are left to Volcano";

    fn beside(_config: &Config) -> &'static [Beside] {
        &[
            Beside::ConfigMaps,
            Beside::NetworkPolicies,
            Beside::Claims,
            Beside::PodGroups,
            Beside::Commands,
            Beside::PriorityClasses,
            Beside::Nodes,
        ]
    }

    fn meta(job: &VolcanoJob) -> &Meta {
        &job.metadata
    }

    fn is_finished(job: &VolcanoJob) -> bool {
        let status = job.status();
        // What is still leaving is counted until it has left.
        let is_still = status.terminating + status.pending + status.running == 0;
        is_still && status.state.phase.is_some_and(trainyard_api::volcano::JobPhase::is_finished)
    }

    fn text_bytes(job: &VolcanoJob) -> usize {
        job.text_bytes()
    }

    fn plan(seen: &Seen<VolcanoJob>, now: Timestamp, config: &Config) -> Plan {
        let observed = volcano::Observed {
            job: &seen.job,
            pods: &seen.pods,
            services: &seen.services,
            config_maps: &seen.config_maps,
            policies: &seen.policies,
            claims: &seen.claims,
            groups: &seen.groups,
            commands: &seen.commands,
            classes: &seen.classes,
            counts_pending_since: seen.counts_pending_since,
            refused: seen.refused.as_deref(),
            create_failure: seen.create_failure.as_deref(),
        };
        volcano::plan(&observed, now, config)
    }

    fn queue(job: &VolcanoJob) -> Option<String> {
        Some(job.spec().map_or_else(|_| names::QUEUE.to_owned(), |spec| spec.queue))
    }
}

impl Object for VolcanoJob {
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
