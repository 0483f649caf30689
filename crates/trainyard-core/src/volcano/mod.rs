//! The Volcano Job planner: from what is there to what is to be written.
//!
//! Owns the order of the rules; each rule lives in its own file. A pass compares what was recorded
//! with what is there, carries out the actions that policies and Commands ask for, moves the state
//! on, and stages the writes: the status first, because it is the evidence, then what is deleted
//! and what the pods need, then pods.

use std::sync::Arc;

use jiff::Timestamp;
use trainyard_api::volcano::{JobPhase, JobSpec, VolcanoJob};

use crate::{
    aid::{Aid, ClassFacts, CommandFacts, ConfigMapFacts, GroupFacts, Presence},
    config::Config,
    plan::Plan,
    view::{PodView, ServiceView},
};

mod actions;
mod aids;
mod check;
mod commands;
mod counts;
mod depends;
mod draft;
mod duration;
mod events;
mod failure;
mod finish;
mod group;
mod kill;
mod lone;
mod objects;
mod plugins;
mod policy;
mod reasons;
mod state;
mod sync;
mod timers;
mod volumes;

use draft::Draft;
pub use lone::pod_group_for;

/// What is there for one job.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The job.
    pub job: &'a VolcanoJob,
    /// Pods whose controller has the job's UID.
    pub pods: &'a [Arc<PodView>],
    /// Services whose controller has the job's UID.
    pub services: &'a [Arc<ServiceView>],
    /// Config maps whose controller has the job's UID.
    pub config_maps: &'a [Arc<Aid<ConfigMapFacts>>],
    /// Network policies whose controller has the job's UID.
    pub policies: &'a [Arc<Aid<Presence>>],
    /// Claims of the job's namespace, its own and others.
    pub claims: &'a [Arc<Aid<Presence>>],
    /// PodGroups whose controller has the job's UID.
    pub groups: &'a [Arc<Aid<GroupFacts>>],
    /// Commands aimed at the job.
    pub commands: &'a [Arc<Aid<CommandFacts>>],
    /// All priority classes.
    pub classes: &'a [Arc<Aid<ClassFacts>>],
    /// Since when changed counts have been held back.
    pub counts_pending_since: Option<Timestamp>,
    /// What the API server said when it refused to create an object from this generation of the
    /// specification as invalid.
    pub refused: Option<&'a str>,
    /// Why an object could not be created when that was last tried, in the API server's words.
    pub create_failure: Option<&'a str>,
}

/// Plans the next writes for a job.
#[must_use]
pub fn plan(seen: &Observed<'_>, now: Timestamp, config: &Config) -> Plan {
    if seen.job.metadata.is_terminating() {
        return Plan::default();
    }
    let crew = events::Crew::new(seen.pods);
    let mut draft = Draft::new(seen, &crew, now, config);
    let spec = seen.job.spec();
    if draft.phase().is_finished() {
        return finish::plan(draft, spec.ok().as_ref());
    }
    let spec = match spec {
        Ok(spec) => spec,
        Err(error) => return invalid(draft, &error.to_string()),
    };
    let problem = check::problem(&seen.job.metadata, &spec);
    if let Some(problem) = problem.or_else(|| refusal(&draft)) {
        return invalid(draft, &problem);
    }
    draft.status.min_available = spec.min_available;
    pass(&mut draft, &spec);
    sync::stage(draft, &spec)
}

/// Moves the state on: at most one phase in a pass, so that whoever watches sees every one.
fn pass(draft: &mut Draft<'_>, spec: &JobSpec) {
    if draft.status.state.phase.is_none() {
        draft.enter(JobPhase::Pending, "", String::new());
    } else {
        let spent = state::retries_are_spent(&draft.status, spec);
        let causes = events::note(draft, spec);
        if let Some(message) = spent {
            draft.enter(JobPhase::Failed, "MaxRetryReached", message);
        } else {
            actions::carry_out(draft, spec, causes);
        }
    }
    events::condemn_surplus(draft, spec);
    counts::update(draft, spec);
    if draft.status.state.phase == draft.before.state.phase {
        state::advance(draft, spec);
    }
}

fn invalid(mut draft: Draft<'_>, problem: &str) -> Plan {
    let meta = draft.meta();
    let message = format!("Job {}/{} cannot be run: {problem}", meta.namespace, meta.name);
    draft.enter(JobPhase::Failed, "InvalidJob", message);
    finish::plan(draft, None)
}

/// Why the job's objects cannot be created, if the API server has said so. A job that has run is
/// not ended by it: what runs is worth more than what was added wrongly.
fn refusal(draft: &Draft<'_>) -> Option<String> {
    let ran = draft.status.conditions.iter().any(|one| one.status == JobPhase::Running);
    draft.seen.refused.filter(|_| !ran).map(str::to_owned)
}

#[cfg(test)]
mod history;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
