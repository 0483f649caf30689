//! Which job is looked at next, and when: the rules of the work queue.
//!
//! One pass per job at a time; what happens meanwhile leads to one more. A failing job waits
//! longer each time and holds up nobody. A plain data structure: time comes in, nothing waits.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use crate::backoff::pause;

/// Identity of a job.
pub(crate) type Uid = Arc<str>;

/// What happened is collected this long before it is looked at, so that news which comes together
/// is looked at together.
const GATHER: Duration = Duration::from_millis(2);
/// News about a failing job shortens its pause to this, but not further.
const NEWS_PAUSE: Duration = Duration::from_millis(250);
/// So many new jobs are looked at before one that is known.
const NEW_BEFORE_KNOWN: u32 = 4;

/// Why a job is to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The job itself is new or changed; its generation.
    Job(i64),
    /// Something that belongs to it changed.
    Child,
}

/// How a pass over a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Something was written: look again, there may be more.
    Again,
    /// Nothing to do before that time, unless something happens.
    Wait(Option<Instant>),
    /// Nothing to do unless the job itself changes.
    Sleep,
    /// It failed; wait so long at least.
    Retry(Duration),
    /// It cannot work for this generation of the job.
    Park(i64),
    /// The job does not exist any more.
    Gone,
}

/// What comes next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Look at this job now.
    Job(Uid),
    /// Nothing before that time.
    At(Instant),
    /// Nothing unless something happens.
    Never,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Idle,
    Queued,
    Running { again: bool },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Awake,
    Asleep,
    Parked(i64),
}

#[derive(Debug)]
struct Entry {
    place: Place,
    rest: Rest,
    gone: bool,
    new: bool,
    failures: u32,
    /// After a failure: not to be looked at earlier, whatever happens.
    not_before: Option<Instant>,
    due: Option<Instant>,
}

/// All jobs and their turns.
#[derive(Debug)]
pub(crate) struct Schedule {
    jobs: BTreeMap<Uid, Entry>,
    new: VecDeque<Uid>,
    known: VecDeque<Uid>,
    new_in_a_row: u32,
    timers: BTreeSet<(Instant, Uid)>,
    retry_min: Duration,
    retry_max: Duration,
}

impl Schedule {
    pub(crate) fn new(retry_min: Duration, retry_max: Duration) -> Self {
        Self {
            jobs: BTreeMap::new(),
            new: VecDeque::new(),
            known: VecDeque::new(),
            new_in_a_row: 0,
            timers: BTreeSet::new(),
            retry_min,
            retry_max,
        }
    }

    /// How many jobs wait for a pass.
    pub(crate) fn waiting(&self) -> usize {
        self.new.len() + self.known.len()
    }

    /// Something happened to a job.
    pub(crate) fn wake(&mut self, uid: &str, cause: Cause, now: Instant) {
        let Some((uid, entry)) = self.entry(uid, cause) else { return };
        entry.rest = match (entry.rest, cause) {
            (Rest::Asleep | Rest::Parked(_), Cause::Child) => return,
            (Rest::Parked(parked), Cause::Job(generation)) if parked == generation => return,
            _ => Rest::Awake,
        };
        match entry.place {
            Place::Running { .. } => entry.place = Place::Running { again: true },
            Place::Queued => {}
            Place::Idle if entry.new => self.queue(uid),
            Place::Idle => {
                let at = entry.not_before.map_or(now, |earliest| earliest.max(now)) + GATHER;
                self.arm(&uid, at);
            }
        }
    }

    /// A job does not exist any more.
    pub(crate) fn forget(&mut self, uid: &str) {
        let Some(entry) = self.jobs.get_mut(uid) else { return };
        if matches!(entry.place, Place::Running { .. }) {
            entry.gone = true;
        } else {
            self.remove(uid);
        }
    }

    /// The next job, which then counts as being looked at.
    pub(crate) fn next(&mut self, now: Instant) -> Next {
        while let Some((at, uid)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            if let Some(entry) = self.jobs.get_mut(&uid) {
                entry.due = None;
                self.queue(uid);
            }
        }
        let Some(uid) = self.pop() else {
            return self.timers.first().map_or(Next::Never, |(at, _)| Next::At(*at));
        };
        if let Some(entry) = self.jobs.get_mut(&uid) {
            entry.place = Place::Running { again: false };
            entry.new = false;
        }
        Next::Job(uid)
    }

    /// A pass has ended.
    pub(crate) fn finish(&mut self, uid: &Uid, verdict: Verdict, now: Instant) {
        let Some(entry) = self.jobs.get_mut(uid) else { return };
        let again = entry.place == Place::Running { again: true };
        entry.place = Place::Idle;
        if entry.gone || verdict == Verdict::Gone {
            self.remove(uid);
            return;
        }
        if !matches!(verdict, Verdict::Retry(_)) {
            entry.failures = 0;
            entry.not_before = None;
        }
        match verdict {
            Verdict::Again => self.queue(Uid::clone(uid)),
            Verdict::Wait(at) => {
                let at = if again { Some(now + GATHER) } else { at };
                if let Some(at) = at {
                    self.arm(uid, at);
                }
            }
            Verdict::Sleep | Verdict::Park(_) if again => self.arm(uid, now + GATHER),
            Verdict::Sleep => entry.rest = Rest::Asleep,
            Verdict::Park(generation) => entry.rest = Rest::Parked(generation),
            Verdict::Retry(at_least) => {
                entry.failures = entry.failures.saturating_add(1);
                let pause = pause(self.retry_min, self.retry_max, entry.failures);
                let shortened = pause.min(NEWS_PAUSE).max(at_least);
                entry.not_before = Some(now + shortened);
                let pause = if again { shortened } else { pause.max(at_least) };
                self.arm(uid, now + pause);
            }
            Verdict::Gone => {}
        }
    }

    /// The entry of a job; only the job itself makes one.
    fn entry(&mut self, uid: &str, cause: Cause) -> Option<(Uid, &mut Entry)> {
        let key = match (self.jobs.get_key_value(uid), cause) {
            (Some((key, _)), _) => Uid::clone(key),
            (None, Cause::Job(_)) => Uid::from(uid),
            (None, Cause::Child) => return None,
        };
        let entry = self.jobs.entry(Uid::clone(&key)).or_insert(Entry {
            place: Place::Idle,
            rest: Rest::Awake,
            gone: false,
            new: true,
            failures: 0,
            not_before: None,
            due: None,
        });
        Some((key, entry))
    }

    fn queue(&mut self, uid: Uid) {
        let Some(entry) = self.jobs.get_mut(&uid) else { return };
        if entry.place != Place::Idle {
            return;
        }
        if let Some(due) = entry.due.take() {
            self.timers.remove(&(due, Uid::clone(&uid)));
        }
        entry.place = Place::Queued;
        if entry.new {
            self.new.push_back(uid);
        } else {
            self.known.push_back(uid);
        }
    }

    /// Sees to it that the job is looked at by that time.
    fn arm(&mut self, uid: &Uid, at: Instant) {
        let Some(entry) = self.jobs.get_mut(uid) else { return };
        match entry.due {
            Some(due) if due <= at => return,
            Some(due) => {
                self.timers.remove(&(due, Uid::clone(uid)));
            }
            None => {}
        }
        entry.due = Some(at);
        self.timers.insert((at, Uid::clone(uid)));
    }

    fn pop(&mut self) -> Option<Uid> {
        loop {
            let known_first = self.new_in_a_row >= NEW_BEFORE_KNOWN || self.new.is_empty();
            let uid = if known_first && !self.known.is_empty() {
                self.new_in_a_row = 0;
                self.known.pop_front()
            } else {
                self.new_in_a_row = self.new_in_a_row.saturating_add(1);
                self.new.pop_front()
            }?;
            // A forgotten job may still stand in the line.
            if self.jobs.get(&uid).is_some_and(|entry| entry.place == Place::Queued) {
                return Some(uid);
            }
        }
    }

    fn remove(&mut self, uid: &str) {
        if let Some((uid, entry)) = self.jobs.remove_entry(uid)
            && let Some(due) = entry.due
        {
            self.timers.remove(&(due, uid));
        }
    }
}

#[cfg(test)]
#[path = "schedule_tests.rs"]
mod tests;
