//! What is decided and not written yet: deeds at once, words when they are worth it.
//!
//! Why somebody waits changes with everything that happens, so it is held back for a moment, the
//! newest wins, and it is not said again too soon. Must not write anything.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;
use trainyard_sched::{Decision, GroupPhase, GroupReport};

/// Pods of one gang are made one after the other, so what is said of the first is soon untrue.
const HOLD: Duration = Duration::from_millis(300);
/// Counts and conditions of a PodGroup are written no more often than this. The words of a condition
/// alone are written as seldom as those to a pod.
const GROUP_PAUSE: Duration = Duration::from_secs(1);
/// What is said of somebody who waits is written again after this at the earliest, then after twice as long …
const WORDS_PAUSE: Duration = Duration::from_secs(5);
/// … and in the end no more often than this.
const WORDS_PAUSE_MAX: Duration = Duration::from_secs(160);
/// So many are remembered.
const REMEMBERED: usize = 50_000;

/// Whom words are about, by identity.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Pod(String),
    Group(String),
}

/// When something was last said of somebody.
#[derive(Debug, Clone, Copy)]
struct Spoken {
    at: Instant,
    /// How long the same is not said in other words.
    pause: Duration,
    gist: Option<Gist>,
}

/// What is said of a PodGroup, without the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gist {
    phase: GroupPhase,
    counts: (usize, usize, usize),
    condition: Option<(&'static str, &'static str)>,
}

impl Gist {
    fn of(report: &GroupReport) -> Self {
        Self {
            phase: report.phase,
            counts: (report.running, report.succeeded, report.failed),
            condition: report.condition.as_ref().map(|one| (one.kind, one.reason)),
        }
    }
}

/// What is to be written.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    deeds: VecDeque<Decision>,
    words: BTreeMap<Subject, (Instant, Decision)>,
    due: BTreeSet<(Instant, Subject)>,
    spoken: BTreeMap<Subject, Spoken>,
}

impl Outbox {
    pub(super) fn put(&mut self, decision: Decision, now: Instant) {
        match &decision {
            Decision::Bind { uid, .. } | Decision::Evict { uid, .. } => {
                let subject = Subject::Pod(uid.clone());
                self.drop_word(&subject);
                self.spoken.remove(&subject);
                self.deeds.push_back(decision);
            }
            Decision::Promise { .. } | Decision::BindClaim(_) | Decision::ReleaseClaim(_) => {
                self.deeds.push_back(decision);
            }
            Decision::Wait { uid, .. } => {
                let subject = Subject::Pod(uid.clone());
                let spoken = self.spoken.get(&subject);
                let due = spoken.map_or(now, |spoken| spoken.at + spoken.pause).max(now + HOLD);
                self.put_word(subject, decision, due);
            }
            Decision::Report(report) => {
                let subject = Subject::Group(report.uid.clone());
                let gist = Gist::of(report);
                let due = match self.spoken.get(&subject).and_then(|one| Some((one, one.gist?))) {
                    Some((spoken, before)) if before == gist => {
                        (spoken.at + spoken.pause).max(now + HOLD)
                    }
                    Some((spoken, before)) if before.phase == gist.phase => {
                        (spoken.at + GROUP_PAUSE).max(now + HOLD)
                    }
                    // Its pods may come the next moment, and more is known of them.
                    None if report.phase == GroupPhase::Pending => now + HOLD,
                    _ => now,
                };
                self.put_word(subject, decision, due);
            }
        }
    }

    fn put_word(&mut self, subject: Subject, decision: Decision, due: Instant) {
        let due = self.drop_word(&subject).map_or(due, |before| before.min(due));
        self.due.insert((due, subject.clone()));
        self.words.insert(subject, (due, decision));
    }

    fn drop_word(&mut self, subject: &Subject) -> Option<Instant> {
        let (due, _) = self.words.remove(subject)?;
        self.due.remove(&(due, subject.clone()));
        Some(due)
    }

    /// The next deed.
    pub(super) fn deed(&mut self) -> Option<Decision> {
        self.deeds.pop_front()
    }

    /// The next word that is due.
    pub(super) fn word(&mut self, now: Instant) -> Option<Decision> {
        let (due, _) = self.due.first()?;
        if *due > now {
            return None;
        }
        let (_, subject) = self.due.pop_first()?;
        let (_, decision) = self.words.remove(&subject)?;
        let gist = match &decision {
            Decision::Report(report) => Some(Gist::of(report)),
            _ => None,
        };
        let before = self.spoken.get(&subject).filter(|spoken| spoken.gist == gist);
        let pause = before.map_or(WORDS_PAUSE, |one| (one.pause * 2).min(WORDS_PAUSE_MAX));
        if self.spoken.len() >= REMEMBERED {
            self.spoken.retain(|_, spoken| spoken.at + spoken.pause > now);
        }
        if self.spoken.len() < REMEMBERED {
            self.spoken.insert(subject, Spoken { at: now, pause, gist });
        }
        Some(decision)
    }

    /// Takes note that what was said last could not be written: it was not said.
    pub(super) fn was_not_written(&mut self, uid: &str) {
        for subject in [Subject::Pod(uid.to_owned()), Subject::Group(uid.to_owned())] {
            self.spoken.remove(&subject);
        }
    }

    /// When the next word is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    /// Whether nothing is to be done at once.
    pub(super) fn has_no_deeds(&self) -> bool {
        self.deeds.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use trainyard_sched::{Condition, PodName};

    use super::*;

    fn pod() -> PodName {
        PodName { namespace: "n".into(), name: "p".into() }
    }

    fn wait(message: &str) -> Decision {
        Decision::Wait { pod: pod(), uid: "u".into(), message: message.into() }
    }

    fn report(phase: GroupPhase, running: usize) -> Decision {
        Decision::Report(Box::new(GroupReport {
            namespace: "n".into(),
            name: "g".into(),
            uid: "g".into(),
            phase,
            running,
            succeeded: 0,
            failed: 0,
            condition: None,
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn words_are_held_back_the_newest_wins_and_a_binding_ends_them() {
        let (mut outbox, begin) = (Outbox::default(), Instant::now());
        outbox.put(wait("one is missing"), begin);
        assert_eq!(outbox.word(begin), None);
        outbox.put(wait("no room"), begin + HOLD / 2);
        assert_eq!(outbox.word(begin + HOLD), Some(wait("no room")));
        // Then with longer and longer pauses.
        outbox.put(wait("still none"), begin + HOLD);
        assert_eq!(outbox.next_due(), Some(begin + HOLD + WORDS_PAUSE));
        assert!(outbox.word(begin + HOLD + WORDS_PAUSE).is_some());
        outbox.put(wait("still"), begin + HOLD + WORDS_PAUSE);
        assert_eq!(outbox.next_due(), Some(begin + HOLD + WORDS_PAUSE * 3));
        let bind = Decision::Bind { pod: pod(), uid: "u".into(), node: "a".into() };
        outbox.put(bind.clone(), begin);
        assert_eq!((outbox.deed(), outbox.next_due()), (Some(bind), None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_phase_is_reported_at_once_and_counts_once_a_second() {
        let (mut outbox, begin) = (Outbox::default(), Instant::now());
        outbox.put(report(GroupPhase::Inqueue, 0), begin);
        assert!(outbox.word(begin).is_some());
        outbox.put(report(GroupPhase::Running, 0), begin);
        assert!(outbox.word(begin).is_some());
        outbox.put(report(GroupPhase::Running, 1), begin);
        outbox.put(report(GroupPhase::Running, 2), begin);
        assert_eq!(outbox.word(begin + HOLD), None);
        assert_eq!(outbox.word(begin + GROUP_PAUSE), Some(report(GroupPhase::Running, 2)));
        assert_eq!(outbox.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_condition_in_other_words_waits_longer_and_longer() {
        let (mut outbox, begin) = (Outbox::default(), Instant::now());
        let waits = |message: &str| {
            let Decision::Report(mut report) = report(GroupPhase::Pending, 0) else {
                unreachable!()
            };
            let (kind, reason) = ("Unschedulable", "NotEnoughResources");
            report.condition = Some(Condition { kind, reason, message: message.to_owned() });
            Decision::Report(report)
        };
        outbox.put(waits("its pods are not there"), begin);
        assert_eq!(outbox.word(begin), None);
        outbox.put(waits("1 free"), begin);
        assert_eq!(outbox.word(begin + HOLD), Some(waits("1 free")));
        outbox.put(waits("2 free"), begin + HOLD);
        assert_eq!(outbox.next_due(), Some(begin + HOLD + WORDS_PAUSE));
        assert!(outbox.word(begin + HOLD + WORDS_PAUSE).is_some());
        outbox.put(waits("3 free"), begin + HOLD + WORDS_PAUSE);
        assert_eq!(outbox.next_due(), Some(begin + HOLD + WORDS_PAUSE * 3));
        outbox.put(report(GroupPhase::Running, 0), begin + HOLD + WORDS_PAUSE);
        assert!(outbox.word(begin + HOLD + WORDS_PAUSE).is_some(), "a phase is said at once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_report_that_was_not_written_does_not_delay_the_next() {
        let (mut outbox, begin) = (Outbox::default(), Instant::now());
        outbox.put(report(GroupPhase::Inqueue, 0), begin);
        assert!(outbox.word(begin).is_some());
        outbox.was_not_written("g");
        outbox.put(report(GroupPhase::Inqueue, 0), begin);
        assert!(outbox.word(begin).is_some());
    }
}
