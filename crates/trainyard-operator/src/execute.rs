//! One pass over a job: look, plan, carry the plan out.
//!
//! Stages go out one after the other, the writes of a stage together. A failed write ends the pass
//! after its stage; the next pass plans anew from what is there. Works for any kind of job and
//! must not know the rules of one.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::sync::CancellationToken;
use trainyard_api::{Meta, limits::PODS_MAX};
use trainyard_core::{Child, Config, Event, EventType, Mark, Plan, Stage, Write, outcome_events};

use crate::{
    clock::Clock,
    events::{Events, Subject},
    ground::{Ground, SHARES},
    kind::JobKind,
    metrics::JobCount,
    schedule::{Uid, Verdict},
    shared::Shared,
    writes::{Failure, Target, Then, Writes},
};

/// Writes of one job under way at a time, so that a large job leaves room for others.
const WIDTH: usize = 32;
/// A job whose plans wrote something so many times in a row does not settle.
const BUSY_MAX: u32 = 50;
/// The same where every plan said that there was more to create: each makes at least one object.
const BATCHES_MAX: u32 = 3 * PODS_MAX;
/// A large job takes one share of the room for such jobs for so much of its text.
const SHARE_BYTES: usize = 32 << 10;
/// A large job for which there is no room is looked at again after so long; its place is free meanwhile.
const ROOM_PAUSE: Duration = Duration::from_millis(100);

/// Makes passes.
pub(crate) struct Executor<K: JobKind> {
    pub(crate) shared: Arc<Shared<K>>,
    pub(crate) events: Arc<Events>,
    writes: Writes<K>,
    clock: Clock,
    config: Config,
    room: Arc<Semaphore>,
    stop: CancellationToken,
}

/// How one write ended: done, failed, or not begun.
type Ended = Option<Result<Option<String>, Failure>>;

impl<K: JobKind> Executor<K> {
    pub(crate) fn new(shared: Arc<Shared<K>>, events: Arc<Events>, ground: &Ground) -> Self {
        let (calls, slots) = (ground.calls.clone(), Arc::clone(&ground.slots));
        Self {
            writes: Writes::new(calls, Arc::clone(&shared), slots),
            shared,
            events,
            clock: ground.clock,
            config: ground.options.planner.clone(),
            room: Arc::clone(&ground.room),
            stop: ground.stop.clone(),
        }
    }

    /// Looks at a job and does what is to be done.
    pub(crate) async fn pass(&self, uid: &Uid) -> Verdict {
        let bytes = self.shared.job(uid).map_or(0, |job| K::text_bytes(&job));
        let Ok(_room) = self.room.try_acquire_many(shares(bytes)) else {
            return Verdict::Wait(Some(Instant::now() + ROOM_PAUSE));
        };
        let begin = Instant::now();
        let (verdict, result) = self.look(uid).await;
        self.shared.metrics.reconciled(result, begin.elapsed());
        self.shared.tidy_notes(uid);
        verdict
    }

    async fn look(&self, uid: &Uid) -> (Verdict, &'static str) {
        let Some(seen) = self.shared.see(uid) else { return (Verdict::Gone, "gone") };
        let now = self.clock.now();
        let plan = K::plan(&seen, now, &self.config);
        let meta = K::meta(&seen.job);
        self.settle_doubts(uid, meta.version(), &meta.namespace, &plan);
        self.shared.note(uid, |notes| {
            (notes.busy, notes.batches) = match (plan.is_idle(), plan.goes_on) {
                (true, _) => (0, 0),
                (false, true) => (notes.busy, notes.batches + 1),
                (false, false) => (notes.busy + 1, notes.batches),
            };
            // What could not be created is not asked for any more.
            if !plan.writes().any(|write| matches!(write, Write::Create(..))) {
                notes.create_failure = None;
            }
            notes.counts_pending_since =
                plan.counts_pending.then(|| notes.counts_pending_since.unwrap_or(now));
        });
        self.tell_notices(uid, meta, &plan);
        let departed = seen.departed.len();
        let records = plan.writes().any(|write| matches!(write, Write::PatchStatus { .. }));
        if !records && !plan.counts_pending {
            self.shared.recorded(uid, departed);
        }
        if plan.is_idle() {
            let at = plan.requeue_at.map(|at| self.clock.instant(at));
            let verdict = match at {
                None if K::is_finished(&seen.job) => Verdict::Sleep,
                at => Verdict::Wait(at),
            };
            return (verdict, "ok");
        }
        let mut work = Work::<K> {
            executor: self,
            uid,
            generation: meta.generation,
            target: Target {
                namespace: meta.namespace.clone(),
                name: meta.name.clone(),
                uid: meta.uid.clone(),
                version: meta.resource_version.clone(),
            },
            subject: None,
            departed,
        };
        drop(seen);
        for stage in &plan.stages {
            if let Err(failure) = work.stage(stage).await {
                return work.verdict_on(&failure);
            }
            if self.stop.is_cancelled() {
                return (Verdict::Wait(None), "stopped");
            }
        }
        let (busy, batches) = self.shared.note(uid, |notes| (notes.busy, notes.batches));
        if busy >= BUSY_MAX || batches >= BATCHES_MAX {
            tracing::warn!(job = %work.target, uid = &**uid, "the plans for this job do not settle");
            return (Verdict::Retry(Duration::ZERO), "unsettled");
        }
        (Verdict::Again, "ok")
    }

    /// Counts the turns whose record was in doubt and has turned out to be there: a newer version
    /// of the job no longer asks for it.
    fn settle_doubts(&self, uid: &Uid, version: u64, namespace: &str, plan: &Plan) {
        let settled = self.shared.note(uid, |notes| match &notes.in_doubt {
            Some((over, _)) if version > *over => notes.in_doubt.take(),
            _ => None,
        });
        let Some((_, marks)) = settled else { return };
        let asked: Vec<Mark> = plan.writes().flat_map(marks_of).copied().collect();
        for mark in marks.iter().filter(|mark| !asked.contains(mark)) {
            self.count(uid, namespace, *mark);
        }
    }

    /// Tells of trouble that the pass before did not see.
    fn tell_notices(&self, uid: &Uid, meta: &Meta, plan: &Plan) {
        let before = self
            .shared
            .note(uid, |notes| std::mem::replace(&mut notes.noticed, plan.notices.clone()));
        let mut new = plan.notices.iter().filter(|notice| !before.contains(notice)).peekable();
        if new.peek().is_none() {
            return;
        }
        let subject = Arc::new(Subject {
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
            version: meta.resource_version.clone(),
        });
        for notice in new {
            let (namespace, name) = (&meta.namespace, &meta.name);
            tracing::warn!(job = %format_args!("{namespace}/{name}"), uid = meta.uid,
                reason = &*notice.reason, "{}", notice.message);
            self.events.tell(&subject, notice, self.clock.now());
        }
    }

    fn count(&self, uid: &Uid, namespace: &str, mark: Mark) {
        let count = match mark {
            Mark::Created => JobCount::Created,
            Mark::Restarted => JobCount::Restarted,
            Mark::Succeeded => JobCount::Successful,
            Mark::Failed => JobCount::Failed,
            Mark::Running => return,
        };
        self.shared.metrics.job(count, namespace, K::FRAMEWORK);
        if matches!(mark, Mark::Succeeded | Mark::Failed)
            && let Some(job) = self.shared.job(uid)
            && let Some(queue) = K::queue(&job)
        {
            let name = &K::meta(&job).name;
            self.shared.metrics.end(mark == Mark::Succeeded, namespace, name, &queue);
        }
    }
}

/// Returns how many shares of the room for large jobs a job of so much text takes; a small one takes none.
fn shares(bytes: usize) -> u32 {
    u32::try_from(bytes / SHARE_BYTES).unwrap_or(u32::MAX).min(SHARES / 2)
}

/// A plan that is being carried out.
struct Work<'a, K: JobKind> {
    executor: &'a Executor<K>,
    uid: &'a Uid,
    generation: i64,
    target: Target,
    subject: Option<Arc<Subject>>,
    /// How many of the pods that have gone the status of this plan takes in.
    departed: usize,
}

impl<K: JobKind> Work<'_, K> {
    /// Carries out a stage; the gravest failure if there was one.
    async fn stage(&mut self, stage: &Stage) -> Result<(), Failure> {
        let mut ended = self.carry_out(&stage.writes).await;
        for (write, ended) in stage.writes.iter().zip(&ended) {
            self.record(write, ended.as_ref());
        }
        self.record_creations(&stage.writes, &ended);
        self.tell_outcomes(&stage.writes, &ended);
        let failures = ended.drain(..).flatten().filter_map(Result::err);
        // What ends the job's turn for good weighs more than what is tried again.
        if let Some(failure) = failures.max_by_key(|failure| failure.then) {
            return Err(failure);
        }
        for event in &stage.events {
            self.log(event);
            self.tell(event);
        }
        Ok(())
    }

    async fn carry_out(&self, writes: &[Write]) -> Vec<Ended> {
        let hopeless = AtomicBool::new(false);
        let (target, hopeless) = (&self.target, &hopeless);
        let carry_out = |(place, write)| async move {
            if hopeless.load(Ordering::Relaxed) {
                return (place, None);
            }
            let ended = self.executor.writes.carry_out(target, write).await;
            if ended.as_ref().is_err_and(Failure::is_general) {
                hopeless.store(true, Ordering::Relaxed);
            }
            (place, Some(ended))
        };
        // One that waits for its turn is only a number: a large job has thousands.
        let mut rest = writes.iter().enumerate();
        let mut under_way: FuturesUnordered<_> = rest.by_ref().take(WIDTH).map(carry_out).collect();
        let mut ended: Vec<(usize, Ended)> = Vec::with_capacity(writes.len());
        while let Some(one) = under_way.next().await {
            ended.push(one);
            under_way.extend(rest.next().map(carry_out));
        }
        ended.sort_unstable_by_key(|(place, _)| *place);
        ended.into_iter().map(|(_, ended)| ended).collect()
    }

    /// Takes note of what a status write did.
    fn record(&mut self, write: &Write, ended: Option<&Result<Option<String>, Failure>>) {
        if let (Write::Create(..), Some(Err(failure))) = (write, ended)
            && failure.is_for_good()
        {
            let refused = Some((self.generation, failure.text.clone()));
            self.executor.shared.note(self.uid, |notes| notes.refused = refused);
        }
        let Write::PatchStatus { marks, .. } = write else { return };
        match ended {
            Some(Ok(version)) => {
                if let Some(version) = version {
                    self.target.version.clone_from(version);
                }
                for mark in marks {
                    self.executor.count(self.uid, &self.target.namespace, *mark);
                }
                self.executor.shared.recorded(self.uid, std::mem::take(&mut self.departed));
                self.executor.shared.note(self.uid, |notes| {
                    notes.counts_pending_since = None;
                    // Had an earlier write over this version been done, this one would not be.
                    notes.in_doubt = None;
                });
            }
            Some(Err(failure)) if failure.in_doubt && !marks.is_empty() => {
                let over = self.target.version.parse().unwrap_or(0);
                let marks = marks.clone();
                self.executor.shared.note(self.uid, |notes| notes.in_doubt = Some((over, marks)));
            }
            _ => {}
        }
    }

    /// Takes note of why an object could not be created, or that all that were asked for could.
    fn record_creations(&self, writes: &[Write], ended: &[Ended]) {
        let creations = || {
            let all = writes.iter().zip(ended);
            all.filter(|(write, _)| matches!(write, Write::Create(..))).map(|(_, ended)| ended)
        };
        let failure = creations()
            .flatten()
            .find_map(|ended| ended.as_ref().err().filter(|failure| failure.is_a_refusal()));
        let all_done = creations().all(|ended| matches!(ended, Some(Ok(_))));
        if failure.is_some() || (all_done && creations().next().is_some()) {
            let text = failure.map(|failure| failure.text.clone());
            self.executor.shared.note(self.uid, |notes| notes.create_failure = text);
        }
    }

    fn tell_outcomes(&mut self, writes: &[Write], ended: &[Ended]) {
        let known = writes.iter().zip(ended).filter_map(|(write, ended)| {
            let outcome = ended.as_ref()?.as_ref().map(|_| ());
            // It is planned again at once; nobody needs to hear of it.
            if outcome.is_err_and(|failure| failure.then == Then::Conflict) {
                return None;
            }
            Some((write, outcome.map_err(|failure| failure.text.clone())))
        });
        let outcomes: Vec<_> = known.collect();
        self.summarise(&outcomes);
        // Many failures of one stage have one cause; the first few tell it.
        let each = self.executor.config.events_each;
        let mut warnings = 0;
        for event in outcome_events(&outcomes, each, K::TONGUE) {
            if event.kind == EventType::Warning {
                warnings += 1;
            }
            if event.kind == EventType::Normal || warnings <= each.max(1) {
                self.tell(&event);
            }
        }
    }

    fn summarise(&self, outcomes: &[(&Write, Result<(), String>)]) {
        let done = |of: fn(&Write) -> Option<Child>| {
            let mut counts = (0_usize, 0_usize, 0_usize);
            for child in outcomes.iter().filter(|(_, told)| told.is_ok()).filter_map(|(w, _)| of(w))
            {
                match child {
                    Child::Pod => counts.0 += 1,
                    Child::Service => counts.1 += 1,
                    _ => counts.2 += 1,
                }
            }
            Some(counts).filter(|counts| *counts != (0, 0, 0))
        };
        let uid = &*self.target.uid;
        let created = done(|write| match write {
            Write::Create(child, _) => Some(*child),
            _ => None,
        });
        if let Some((pods, services, others)) = created {
            tracing::info!(job = %self.target, uid, pods, services, others, "created");
        }
        let deleted = done(|write| match write {
            Write::Delete(child, _) => Some(*child),
            _ => None,
        });
        if let Some((pods, services, others)) = deleted {
            tracing::info!(job = %self.target, uid, pods, services, others, "deleted");
        }
    }

    fn log(&self, event: &Event) {
        let (job, uid, reason) = (&self.target, &*self.target.uid, &*event.reason);
        match event.kind {
            EventType::Normal => tracing::info!(%job, uid, reason, "{}", event.message),
            EventType::Warning => tracing::warn!(%job, uid, reason, "{}", event.message),
        }
    }

    fn tell(&mut self, event: &Event) {
        let target = &self.target;
        let subject = self.subject.get_or_insert_with(|| {
            Arc::new(Subject {
                namespace: target.namespace.clone(),
                name: target.name.clone(),
                uid: target.uid.clone(),
                version: target.version.clone(),
            })
        });
        self.executor.events.tell(subject, event, self.executor.clock.now());
    }

    fn verdict_on(&self, failure: &Failure) -> (Verdict, &'static str) {
        let (job, uid, kind) = (&self.target, &*self.target.uid, failure.kind);
        let error = &failure.text;
        let verdict = match failure.then {
            Then::Gone => Verdict::Gone,
            Then::Never => {
                tracing::error!(%job, uid, kind, error,
                    "its status was refused; the job is left alone until its specification changes");
                Verdict::Park(self.generation)
            }
            Then::Conflict => {
                tracing::debug!(%job, uid, "it changed meanwhile; planning again");
                Verdict::Retry(failure.at_least)
            }
            Then::Retry => {
                tracing::warn!(%job, uid, kind, error, "a write failed; trying again");
                Verdict::Retry(failure.at_least)
            }
        };
        (verdict, kind)
    }
}

fn marks_of(write: &Write) -> &[Mark] {
    match write {
        Write::PatchStatus { marks, .. } => marks,
        _ => &[],
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}
