//! The TFJob planner: from what is there to what is to be written.
//!
//! Owns the order of the rules; each rule lives in its own file. A pass reads the job, judges its
//! pods, drafts the next status and stages the writes: the status first, because it is the
//! evidence, then services, then pods.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::json;
use trainyard_api::{ConditionType, JobStatus, TfJob, names};

use crate::{
    config::Config,
    plan::Plan,
    view::{PodView, ServiceView},
};

mod active;
mod clean;
mod conditions;
mod counts;
mod draft;
mod end;
mod exit_code;
mod failure;
mod finished;
mod indexes;
mod limits;
mod objects;
mod removal;
mod restart;
mod roster;
mod running;
mod success;
mod suspend;
mod tensorboard;
mod tf_config;
mod ttl;

/// What is there for one job.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The job.
    pub job: &'a TfJob,
    /// Pods whose controller has the job's UID.
    pub pods: &'a [Arc<PodView>],
    /// Services whose controller has the job's UID.
    pub services: &'a [Arc<ServiceView>],
    /// Since when changed counts have been held back.
    pub counts_pending_since: Option<Timestamp>,
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
        Ok(spec) => match rule_problem(seen.job, &status) {
            None => active::plan(seen, status, &spec, now, config),
            Some(problem) => finished::invalid(seen, status, &problem, now, config),
        },
        Err(error) => finished::invalid(seen, status, &error.to_string(), now, config),
    }
}

/// What the rules of the CRD say against a job that has not been looked at before. The API server
/// asks them too, but not of jobs that were stored before it knew them.
fn rule_problem(job: &TfJob, status: &JobStatus) -> Option<String> {
    if status.condition(ConditionType::Created).is_some() {
        return None;
    }
    let object = json!({
        "apiVersion": names::API_VERSION,
        "kind": names::KIND,
        "metadata": {"name": job.metadata.name},
        "spec": job.spec_value(),
    });
    let violations = trainyard_api::validate(&object, None).err()?;
    let told: Vec<String> = violations.iter().map(ToString::to_string).collect();
    Some(told.join("; "))
}

#[cfg(test)]
mod history;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
