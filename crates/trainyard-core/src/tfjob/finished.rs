//! A job that has ended, or that cannot be run at all.
//!
//! Only deletes: nothing is ever created for an ended job. Must not judge pods.

use jiff::Timestamp;
use trainyard_api::{Failure, FailureKind, JobStatus, RunPolicy};

use super::{Observed, clean, draft::Draft, late, ttl};
use crate::{
    config::Config,
    plan::{Delete, Plan, Stage, Write},
};

/// Plans what is left to do for an ended job: the clean-up, then its own deletion.
pub(super) fn plan(
    seen: &Observed<'_>,
    status: &JobStatus,
    policy: &RunPolicy,
    now: Timestamp,
    config: &Config,
) -> Plan {
    let mut plan = Plan::default();
    late::answer(&mut plan, seen, status);
    let pods = policy.clean_pod_policy.unwrap_or(config.default_clean_pod_policy);
    let failure = status.failure.as_ref().map(|failure| failure.kind);
    clean::clean(&mut plan, seen, pods, failure, now, config);
    if let Some(expiry) = ttl::expiry(policy, status) {
        if now >= expiry {
            let meta = &seen.job.metadata;
            let delete = Delete {
                name: meta.name.clone(),
                uid: meta.uid.clone(),
                group: "job".into(),
                index: 0,
                grace_seconds: None,
            };
            plan.push(Stage { writes: vec![Write::DeleteJob(delete)], events: Vec::new() });
        } else {
            plan.look_again(expiry);
        }
    }
    plan
}

/// Plans the end of a job whose specification cannot be run.
pub(super) fn invalid(
    seen: &Observed<'_>,
    status: JobStatus,
    problem: &str,
    now: Timestamp,
    config: &Config,
) -> Plan {
    let mut draft = Draft::new(seen, status, now, config);
    let message = format!("TFJob {} cannot be run: {problem}", draft.full_name());
    let failure = Failure {
        kind: FailureKind::InvalidSpec,
        reason: "TFJobFailedValidation".to_owned(),
        message: problem.to_owned(),
        ..Failure::default()
    };
    draft.fail("TFJobFailedValidation", message, failure);
    draft.into_end(None)
}
