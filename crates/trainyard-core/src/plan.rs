//! A plan: writes in stages, events, and when to look again.
//!
//! Owns the vocabulary between the planners and the executor, which carries a plan out without
//! knowing any job kind. Must not know rules of one kind.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::Value;

use crate::child::Child;

/// What to do next for one job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Sets of writes, one after the other. A stage starts when the one before is done.
    pub stages: Vec<Stage>,
    /// Things worth telling as long as they last; each is told once, not with every pass.
    pub notices: Vec<Event>,
    /// When to plan again although nothing has happened.
    pub requeue_at: Option<Timestamp>,
    /// Counts differ from the stored ones and are being held back.
    pub counts_pending: bool,
    /// There is more to create than one plan holds: the next one goes on.
    pub goes_on: bool,
}

/// Writes that may go out at the same time, and what is told once all of them are done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stage {
    /// The writes.
    pub writes: Vec<Write>,
    /// Events to publish when every write of the stage has been acknowledged.
    pub events: Vec<Event>,
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Create an object.
    Create(Child, Create),
    /// Merge this into an object.
    Patch(Child, Patch),
    /// Delete an object.
    Delete(Child, Delete),
    /// Merge this into the job's status, if the job is still the version that was planned for.
    PatchStatus {
        /// A JSON merge patch of the status alone.
        patch: Value,
        /// What this write makes true, for counting.
        marks: Vec<Mark>,
    },
    /// Delete the job and, in the background, all it owns.
    DeleteJob(Delete),
}

/// An object to create.
#[derive(Debug, Clone, PartialEq)]
pub struct Create {
    /// Its name.
    pub name: String,
    /// Lower-case replica type or task; objects of one group and pass are told of together.
    pub group: Cow<'static, str>,
    /// Index within the group.
    pub index: u32,
    /// The object, complete.
    pub body: Value,
}

/// An object to delete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delete {
    /// Its name.
    pub name: String,
    /// Its identity: the precondition of the deletion.
    pub uid: String,
    /// Lower-case replica type or task.
    pub group: Cow<'static, str>,
    /// Index within the group.
    pub index: u32,
    /// Grace period; the pod's own when not given.
    pub grace_seconds: Option<i64>,
}

/// A change of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// Its name.
    pub name: String,
    /// Its identity: the precondition of the change.
    pub uid: String,
    /// A JSON merge patch of the whole object.
    pub body: Value,
}

/// A turn in a job's life that is counted, once, when it has been recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The job was accepted.
    Created,
    /// The job runs.
    Running,
    /// A replica is restarted.
    Restarted,
    /// The job has succeeded.
    Succeeded,
    /// The job has failed.
    Failed,
}

/// Whether an event is good or bad news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventType {
    /// As expected.
    Normal,
    /// Somebody may want to look.
    Warning,
}

impl EventType {
    /// The word in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// Something told about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Good or bad news.
    pub kind: EventType,
    /// One word in camel case.
    pub reason: Cow<'static, str>,
    /// A sentence.
    pub message: String,
    /// Tells how the job ended: never dropped.
    pub terminal: bool,
}

impl Event {
    /// Good news.
    #[must_use]
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind: EventType::Normal,
            reason: Cow::Borrowed(reason),
            message: message.into(),
            terminal: false,
        }
    }

    /// Bad news.
    #[must_use]
    pub fn warning(reason: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self {
            kind: EventType::Warning,
            reason: reason.into(),
            message: message.into(),
            terminal: false,
        }
    }

    /// The same, telling how the job ended.
    #[must_use]
    pub fn terminal(mut self) -> Self {
        self.terminal = true;
        self
    }
}

impl Plan {
    /// Adds a stage unless it is empty.
    pub fn push(&mut self, stage: Stage) {
        if !stage.writes.is_empty() || !stage.events.is_empty() {
            self.stages.push(stage);
        }
    }

    /// Looks again at that time at the latest.
    pub fn look_again(&mut self, at: Timestamp) {
        self.requeue_at = Some(self.requeue_at.map_or(at, |earlier| earlier.min(at)));
    }

    /// Whether there is nothing to do now.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.stages.is_empty()
    }

    /// All writes, in order.
    pub fn writes(&self) -> impl Iterator<Item = &Write> {
        self.stages.iter().flat_map(|stage| &stage.writes)
    }
}
