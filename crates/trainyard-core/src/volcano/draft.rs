//! The next status of a job while a pass is being planned, and what the change of it means.
//!
//! Must not know which rule changed what.

use jiff::{SignedDuration, Timestamp};
use trainyard_api::{
    Meta,
    time::whole_seconds,
    volcano::{JobPhase, PhaseRecord, VolcanoStatus},
};

use super::{
    Observed, duration,
    events::{Crew, KILLED},
};
use crate::{
    config::Config,
    patch::merge_patch,
    plan::{Event, Mark, Plan, Write},
};

/// A status in the making.
pub(super) struct Draft<'a> {
    /// What is there.
    pub seen: &'a Observed<'a>,
    /// The job's pods.
    pub crew: &'a Crew<'a>,
    /// The time, exactly.
    pub now: Timestamp,
    /// Settings of the operator.
    pub config: &'a Config,
    /// The status as stored.
    pub before: VolcanoStatus,
    /// The status to be.
    pub status: VolcanoStatus,
    /// Told when the status has been written.
    pub events: Vec<Event>,
    /// Counted when the status has been written.
    pub marks: Vec<Mark>,
}

impl<'a> Draft<'a> {
    /// Starts from the stored status.
    pub(super) fn new(
        seen: &'a Observed<'a>,
        crew: &'a Crew<'a>,
        now: Timestamp,
        config: &'a Config,
    ) -> Self {
        let before = seen.job.status();
        let status = before.clone();
        Self { seen, crew, now, config, before, status, events: Vec::new(), marks: Vec::new() }
    }

    /// The job's metadata.
    pub(super) fn meta(&self) -> &'a Meta {
        &self.seen.job.metadata
    }

    /// The phase to be; a job that has none waits.
    pub(super) fn phase(&self) -> JobPhase {
        self.status.state.phase.unwrap_or(JobPhase::Pending)
    }

    /// Enters a phase: it becomes the last in the list of those visited.
    pub(super) fn enter(&mut self, phase: JobPhase, reason: &str, message: String) {
        let now = whole_seconds(self.now);
        let status = &mut self.status;
        if status.state.phase.is_none() {
            self.marks.push(Mark::Created);
        }
        match phase {
            JobPhase::Running => self.marks.push(Mark::Running),
            JobPhase::Restarting => self.marks.push(Mark::Restarted),
            JobPhase::Completed => {
                self.marks.push(Mark::Succeeded);
                self.events.push(Event::normal("JobCompleted", message.clone()).terminal());
            }
            JobPhase::Failed => {
                self.marks.push(Mark::Failed);
                self.events.push(Event::warning("JobFailed", message.clone()).terminal());
            }
            JobPhase::Terminated => {
                self.events.push(Event::warning("JobTerminated", message.clone()).terminal());
            }
            _ => {}
        }
        status.conditions.retain(|record| record.status != phase);
        status.conditions.push(PhaseRecord { status: phase, last_transition_time: Some(now) });
        status.running_duration = match phase {
            JobPhase::Pending | JobPhase::Running => None,
            _ => self.seen.job.metadata.creation_timestamp.map(|created| {
                let ms = now.duration_since(created).as_millis();
                duration::text(i64::try_from(ms).unwrap_or(i64::MAX).max(0))
            }),
        };
        status.state.phase = Some(phase);
        status.state.last_transition_time = Some(now);
        reason.clone_into(&mut status.state.reason);
        status.state.message = message;
    }

    /// Whether something has changed that must not wait or get lost.
    fn is_urgent(&self) -> bool {
        evidence(&self.before) != evidence(&self.status)
    }

    /// The write that makes the draft the stored status, if it is due. Mere changes of counts are
    /// held back a little.
    pub(super) fn write(&mut self, plan: &mut Plan) -> Option<Write> {
        let to = serde_json::to_value(&self.status).unwrap_or_default();
        let patch = merge_patch(&self.seen.job.status_value(), &to)?;
        if !self.is_urgent() {
            let since = self.seen.counts_pending_since.unwrap_or(self.now);
            let delay = SignedDuration::from_millis(self.config.counts_delay_ms);
            let due = since.checked_add(delay).unwrap_or(Timestamp::MAX);
            if self.now < due {
                plan.counts_pending = true;
                plan.look_again(due);
                return None;
            }
        }
        Some(Write::PatchStatus { patch, marks: std::mem::take(&mut self.marks) })
    }
}

/// The part of a status that a later pass relies on; the rest are counts and words.
fn evidence(status: &VolcanoStatus) -> VolcanoStatus {
    let mut evidence = status.clone();
    evidence.task_status_count.clear();
    evidence.pending = 0;
    evidence.running = 0;
    evidence.succeeded = 0;
    evidence.failed = 0;
    evidence.terminating = 0;
    evidence.unknown = 0;
    evidence.state.reason.clear();
    evidence.state.message.clear();
    for record in evidence.pods.values_mut() {
        if record.phase != KILLED {
            record.phase.clear();
        }
    }
    evidence
}
