//! The next status of a job while a pass is being planned, and what the change of it means.
//!
//! Must not know which rule changed what.

use jiff::Timestamp;
use trainyard_api::{
    CleanPodPolicy, ConditionType, Failure, FailureKind, JobStatus, Meta, TfJobSpec,
    time::whole_seconds,
};

use super::{Observed, clean, conditions, counts, late};
use crate::{
    config::Config,
    patch::merge_patch,
    plan::{Event, Mark, Plan, Stage, Write},
};

/// A status in the making.
pub(super) struct Draft<'a> {
    /// What is there.
    pub seen: &'a Observed<'a>,
    /// The time, exactly.
    pub now: Timestamp,
    /// Settings of the operator.
    pub config: &'a Config,
    /// The status as stored.
    pub before: JobStatus,
    /// The status to be.
    pub status: JobStatus,
    /// Told when the status has been written.
    pub events: Vec<Event>,
    /// Counted when the status has been written.
    pub marks: Vec<Mark>,
    /// An event goes with the status, which must not wait.
    has_event: bool,
}

impl<'a> Draft<'a> {
    /// Starts from the stored status, as seen for this generation of the specification.
    pub(super) fn new(
        seen: &'a Observed<'a>,
        before: JobStatus,
        now: Timestamp,
        config: &'a Config,
    ) -> Self {
        let mut draft = Self {
            seen,
            now,
            config,
            status: before.clone(),
            before,
            events: Vec::new(),
            marks: Vec::new(),
            has_event: false,
        };
        if draft.meta().generation > 0 {
            draft.status.observed_generation = Some(draft.meta().generation);
        }
        if draft.status.condition(ConditionType::Created).is_none() {
            let message = format!("TFJob {} is created.", draft.meta().name);
            draft.set(ConditionType::Created, "TFJobCreated", message);
            draft.marks.push(Mark::Created);
        }
        draft
    }

    /// The job's metadata.
    pub(super) fn meta(&self) -> &'a Meta {
        &self.seen.job.metadata
    }

    /// The time as conditions carry it.
    pub(super) fn second(&self) -> Timestamp {
        whole_seconds(self.now)
    }

    /// `namespace/name`.
    pub(super) fn full_name(&self) -> String {
        format!("{}/{}", self.meta().namespace, self.meta().name)
    }

    /// Sets a condition.
    pub(super) fn set(&mut self, kind: ConditionType, reason: &str, message: String) {
        conditions::set(&mut self.status, kind, reason, message, whole_seconds(self.now));
    }

    /// Sets a condition, with the latest message.
    pub(super) fn update(&mut self, kind: ConditionType, reason: &str, message: String) {
        conditions::update(&mut self.status, kind, reason, message, whole_seconds(self.now));
    }

    /// Publishes an event with the status, which is then written at once.
    pub(super) fn warn_with_status(&mut self, event: Event) {
        self.events.push(event);
        self.has_event = true;
    }

    /// The job has succeeded.
    pub(super) fn succeed(&mut self) {
        let message = format!("TFJob {} successfully completed.", self.full_name());
        self.status.completion_time = Some(self.second());
        self.set(ConditionType::Succeeded, "TFJobSucceeded", message.clone());
        self.events.push(Event::normal("TFJobSucceeded", message).terminal());
        self.marks.push(Mark::Succeeded);
    }

    /// The job has failed.
    pub(super) fn fail(&mut self, reason: &'static str, message: String, failure: Failure) {
        self.status.completion_time = Some(self.second());
        self.status.failure = Some(failure);
        self.set(ConditionType::Failed, reason, message.clone());
        self.events.push(Event::warning(reason, message).terminal());
        self.marks.push(Mark::Failed);
    }

    /// Whether something has changed that must not wait or get lost.
    pub(super) fn is_urgent(&self) -> bool {
        self.has_event || evidence(&self.before) != evidence(&self.status)
    }

    /// The write that makes the draft the stored status; none when they are equal.
    pub(super) fn write(&mut self) -> Option<Write> {
        let to = serde_json::to_value(&self.status).unwrap_or_default();
        let patch = merge_patch(&self.seen.job.status_value(), &to)?;
        Some(Write::PatchStatus { patch, marks: std::mem::take(&mut self.marks) })
    }

    /// Ends the pass of a job that has just ended: the evidence first, then the clean-up.
    pub(super) fn into_end(mut self, spec: Option<&TfJobSpec>) -> Plan {
        let policy = spec
            .and_then(|spec| spec.run_policy.clean_pod_policy)
            .unwrap_or(self.config.default_clean_pod_policy);
        let failure = self.status.failure.as_ref().map(|failure| failure.kind);
        let stopped = failure.is_some_and(FailureKind::stops_everything);
        if policy != CleanPodPolicy::None || stopped {
            counts::stop(&mut self.status);
        }
        counts::forget_starts(&mut self.status);
        self.status.ended_spec = late::digest(self.seen.job.spec_value());
        let mut plan = Plan::default();
        let writes = self.write().into_iter().collect();
        plan.push(Stage { writes, events: self.events });
        clean::clean(&mut plan, self.seen, policy, failure, self.now, self.config);
        plan
    }
}

/// The part of a status that a later pass relies on; the rest are counts.
fn evidence(status: &JobStatus) -> JobStatus {
    let mut evidence = status.clone();
    evidence.replica_statuses.clear();
    evidence.unavailable_replicas.clear();
    // Who else does not run may be told a moment later.
    for condition in &mut evidence.conditions {
        condition.message.clear();
        condition.last_update_time = None;
    }
    evidence.observed_generation = None;
    evidence.restarts = 0;
    evidence.replica_records.retain_mut(|record| {
        // Restarts in place are counted late anyway, and every one of them would be a write.
        record.in_place = 0;
        record.restarts = 0;
        if !record.replaced {
            record.uid.clear();
        }
        record.replaced || record.last_restart_time.is_some()
    });
    evidence
}
