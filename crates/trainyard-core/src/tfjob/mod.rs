//! The TFJob planner: from what is there to what is to be written.
//!
//! Owns the order of the rules; each rule lives in its own file. A pass reads the job, judges its
//! pods, drafts the next status and stages the writes: the status first, because it is the
//! evidence, then services and the PodGroup, then pods.

use std::sync::Arc;

use jiff::Timestamp;
use trainyard_api::{JobStatus, TfJob, TfJobSpec, names};

use crate::{
    aid::{Aid, ClassFacts, GroupFacts},
    config::Config,
    plan::Plan,
    removal,
    view::{PodView, ServiceView},
};

mod active;
mod clean;
mod conditions;
mod counts;
mod draft;
mod end;
pub(crate) mod exit_code;
pub(crate) mod failure;
mod finished;
mod gang;
mod in_place;
mod indexes;
mod late;
mod limits;
mod objects;
mod refused;
mod restart;
mod roster;
pub(crate) mod running;
mod success;
mod suspend;
mod tensorboard;
mod tf_config;
mod ttl;
mod unavailable;

/// What is there for one job.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The job.
    pub job: &'a TfJob,
    /// Pods whose controller has the job's UID.
    pub pods: &'a [Arc<PodView>],
    /// Pods of the job that have gone, as they were at last, if not all of them is recorded; in the order
    /// of their going.
    pub departed: &'a [Arc<PodView>],
    /// Services whose controller has the job's UID.
    pub services: &'a [Arc<ServiceView>],
    /// PodGroups, of the kind that the gang scheduler reads, whose controller has the job's UID.
    pub groups: &'a [Arc<Aid<GroupFacts>>],
    /// Every priority class of the cluster.
    pub classes: &'a [Arc<Aid<ClassFacts>>],
    /// Since when changed counts have been held back.
    pub counts_pending_since: Option<Timestamp>,
    /// What the API server said when it refused to create a pod or service from this generation
    /// of the specification as invalid.
    pub refused: Option<&'a str>,
    /// What the API server said, or why a name is taken, when an object of the job last could not be
    /// created; none when all creations that were tried have succeeded.
    pub create_failure: Option<&'a str>,
}

/// Plans the next writes for a job.
#[must_use]
pub fn plan(seen: &Observed<'_>, now: Timestamp, config: &Config) -> Plan {
    if seen.job.metadata.is_terminating() {
        return Plan::default();
    }
    let status = seen.job.status();
    let spec = seen.job.spec();
    if let Ok(spec) = &spec
        && spec.run_policy.is_managed_elsewhere()
    {
        return Plan::default();
    }
    if status.is_finished() {
        let policy = spec.map(|spec| spec.run_policy).unwrap_or_default();
        return finished::plan(seen, &status, &policy, now, config);
    }
    match spec {
        Ok(spec) => match name_problem(seen.job, &spec).or_else(|| refusal(seen, &status)) {
            None => active::plan(seen, status, &spec, now, config),
            Some(problem) => finished::invalid(seen, status, &problem, now, config),
        },
        Err(error) => finished::invalid(seen, status, &error.to_string(), now, config),
    }
}

/// Why the job's objects cannot be created, if the API server has said so. A job that has run is
/// not ended by it: what runs is worth more than what was added wrongly.
fn refusal(seen: &Observed<'_>, status: &JobStatus) -> Option<String> {
    seen.refused.filter(|_| status.running_time.is_none()).map(str::to_owned)
}

/// Why the names of the job's pods cannot be host names, if they cannot.
fn name_problem(job: &TfJob, spec: &TfJobSpec) -> Option<String> {
    let name = &job.metadata.name;
    let replicas = spec
        .replicas
        .iter()
        .map(|(kind, replicas)| (kind.lower(), replicas.replicas.saturating_sub(1)));
    let board = spec.tensorboard.iter().map(|_| (names::TENSORBOARD, 0));
    let longest = replicas
        .chain(board)
        .map(|(kind, index)| names::replica_name(name, kind, index))
        .max_by_key(String::len)?;
    (longest.len() > names::LABEL_MAX).then(|| {
        format!(
            "metadata.name: {name:?} is too long: pod and service {longest:?} would have {} \
             characters, {} are allowed; shorten the name by {}",
            longest.len(),
            names::LABEL_MAX,
            longest.len() - names::LABEL_MAX
        )
    })
}

#[cfg(test)]
mod history;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
