//! The scheduler's heartbeat: when to decide, and how many writes are under way.
//!
//! Decisions do not wait for writes: what is decided is taken for done until it turns out not to
//! be. Must not know what is written.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use trainyard_sched::Decision;

use super::act::{Actor, Done};
use super::later::Later;
use super::outbox::Outbox;
use super::tally::Tally;
use crate::clock::FAR;

/// Writes under way at the same time.
const AT_ONCE: usize = 64;
/// Of these, so many may be mere words.
const WORDS_AT_ONCE: usize = 16;
/// Pods of one gang are made one after the other: a moment together saves looking at each.
const GATHER: Duration = Duration::from_millis(5);
/// How long writes under way may take at the end.
const LAST: Duration = Duration::from_secs(5);

/// Decides and has it written.
pub(super) struct Pace {
    actor: Arc<Actor>,
    tally: Arc<Tally>,
    outbox: Outbox,
    later: Later,
    under_way: JoinSet<Done>,
    words_under_way: usize,
    /// When to decide for what has changed.
    decide_at: Option<Instant>,
    /// When to decide because time has passed.
    due: Option<Instant>,
    /// How long the last decision took: the next one waits as long.
    took: Duration,
}

impl Pace {
    pub(super) fn new(actor: Arc<Actor>, tally: Arc<Tally>) -> Self {
        Self {
            actor,
            tally,
            outbox: Outbox::default(),
            later: Later::default(),
            under_way: JoinSet::new(),
            words_under_way: 0,
            decide_at: None,
            due: None,
            took: Duration::ZERO,
        }
    }

    /// Decides and acts until stopped, then waits for what is under way.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let world = self.actor.world.clone();
        loop {
            self.begin_writes();
            let wake = self.wake();
            tokio::select! {
                () = stop.cancelled() => break,
                Some(done) = self.under_way.join_next(), if !self.under_way.is_empty() => {
                    self.end_write(done);
                }
                () = world.changed() => {
                    let soon = Instant::now() + GATHER.max(self.took);
                    self.decide_at.get_or_insert(soon);
                }
                () = sleep_until(wake) => self.on_time(),
            }
        }
        let rest = async { while self.under_way.join_next().await.is_some() {} };
        if tokio::time::timeout(LAST, rest).await.is_err() {
            tracing::warn!("not all writes were answered before the end");
        }
    }

    /// When something is to be done without being told.
    fn wake(&self) -> Instant {
        // A word that is due waits for a free hand, not for the time.
        let word = self.outbox.next_due().filter(|_| self.has_room_for_words());
        let times = [self.decide_at, self.due, self.later.next_due(), word];
        times.into_iter().flatten().min().unwrap_or_else(|| Instant::now() + FAR)
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        while let Some(delta) = self.later.take(now) {
            self.actor.world.tell(delta);
        }
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.decide_at) || is_due(self.due) {
            self.decide();
        }
    }

    fn decide(&mut self) {
        self.decide_at = None;
        self.due = None;
        let clock = self.actor.clock;
        let begin = Instant::now();
        let Some(outcome) = self.actor.world.decide(clock.now().as_second()) else { return };
        self.took = begin.elapsed();
        self.tally.decided(&outcome, self.took);
        let due = outcome.due.and_then(|due| Timestamp::from_second(due).ok());
        self.due = due.map(|due| clock.instant(due).max(begin + GATHER));
        let now = Instant::now();
        for decision in outcome.decisions {
            self.outbox.put(decision, now);
        }
    }

    fn has_room_for_words(&self) -> bool {
        self.words_under_way < WORDS_AT_ONCE && self.under_way.len() < AT_ONCE
    }

    fn begin_writes(&mut self) {
        while self.under_way.len() < AT_ONCE {
            let Some(deed) = self.outbox.deed() else { break };
            self.begin(deed);
        }
        let now = Instant::now();
        while self.has_room_for_words() && self.outbox.has_no_deeds() {
            let Some(word) = self.outbox.word(now) else { break };
            self.words_under_way += 1;
            self.begin(word);
        }
    }

    fn begin(&mut self, decision: Decision) {
        let actor = self.actor.clone();
        self.under_way.spawn(async move { actor.act(decision).await });
    }

    fn end_write(&mut self, done: Result<Done, tokio::task::JoinError>) {
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                // Whether it was a word is not known; then fewer of them are written at a time.
                tracing::error!(%error, "a write ended unexpectedly");
                return;
            }
        };
        self.words_under_way = self.words_under_way.saturating_sub(usize::from(done.is_word));
        match done.failure {
            None => self.later.succeeded(&done.uid),
            Some((delta, error)) => {
                self.outbox.was_not_written(&done.uid);
                let least = error.retry_after().unwrap_or_default();
                self.later.failed(&done.uid, delta, least, Instant::now());
            }
        }
    }
}
