//! Turns, pauses and rest of jobs.

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

struct Line {
    schedule: Schedule,
    now: Instant,
}

impl Line {
    fn new() -> Self {
        let schedule = Schedule::new(5 * MS, 1000 * MS);
        Self { schedule, now: Instant::now() }
    }

    fn job(&mut self, uid: &str) {
        self.schedule.wake(uid, Cause::Job(1), self.now);
    }

    fn child(&mut self, uid: &str) {
        self.schedule.wake(uid, Cause::Child, self.now);
    }

    fn after(&mut self, pause: Duration) -> &mut Self {
        self.now += pause;
        self
    }

    fn next(&mut self) -> Option<String> {
        match self.schedule.next(self.now) {
            Next::Job(uid) => Some(uid.to_string()),
            _ => None,
        }
    }

    fn finish(&mut self, uid: &str, verdict: Verdict) {
        self.schedule.finish(&Uid::from(uid), verdict, self.now);
    }

    /// The job has had its first pass and has nothing to do.
    fn known(&mut self, uid: &str) {
        self.job(uid);
        assert_eq!(self.next().as_deref(), Some(uid));
        self.finish(uid, Verdict::Wait(None));
    }

    fn pause_of(&mut self, uid: &str) -> Option<Duration> {
        let at = self.schedule.jobs.get(uid).unwrap().due?;
        Some(at - self.now)
    }
}

#[test]
fn news_that_comes_together_is_looked_at_once() {
    let mut line = Line::new();
    line.known("a");
    line.child("a");
    line.child("a");
    assert_eq!(line.next(), None);
    assert_eq!(line.after(GATHER).next().as_deref(), Some("a"));
    assert_eq!(line.next(), None);
}

#[test]
fn a_job_is_looked_at_once_at_a_time_and_once_more_if_something_happened() {
    let mut line = Line::new();
    line.job("a");
    assert_eq!(line.next().as_deref(), Some("a"));
    line.child("a");
    line.child("a");
    assert_eq!(line.after(MS * 10).next(), None);
    line.finish("a", Verdict::Wait(None));
    assert_eq!(line.after(MS * 10).next().as_deref(), Some("a"));
    line.finish("a", Verdict::Wait(None));
    assert_eq!(line.after(MS * 10).next(), None);
}

#[test]
fn timers_fire_on_time_and_the_earlier_one_wins() {
    let mut line = Line::new();
    line.known("a");
    line.known("b");
    line.job("a");
    line.after(GATHER).next();
    line.finish("a", Verdict::Wait(Some(line.now + 500 * MS)));
    assert_eq!(line.schedule.next(line.now), Next::At(line.now + 500 * MS));
    assert_eq!(line.after(499 * MS).next(), None);
    line.child("a");
    assert_eq!(line.after(GATHER).next().as_deref(), Some("a"));
    line.finish("a", Verdict::Wait(None));
    assert_eq!(line.schedule.next(line.now + 600 * MS), Next::Never, "the timer was replaced");
}

#[test]
fn a_failing_job_waits_longer_each_time_until_it_works() {
    let mut line = Line::new();
    line.job("a");
    let mut pauses = Vec::new();
    for _ in 0..10 {
        assert_eq!(line.next().as_deref(), Some("a"));
        line.finish("a", Verdict::Retry(Duration::ZERO));
        let pause = line.pause_of("a").unwrap();
        pauses.push(pause.as_millis());
        line.after(pause);
    }
    assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
    line.next();
    line.finish("a", Verdict::Wait(None));
    line.job("a");
    line.after(GATHER).next();
    line.finish("a", Verdict::Retry(Duration::ZERO));
    assert_eq!(line.pause_of("a"), Some(5 * MS));
}

#[test]
fn news_shortens_the_pause_of_a_failing_job_but_the_servers_wish_holds() {
    let mut line = Line::new();
    line.job("a");
    for _ in 0..9 {
        line.next();
        line.finish("a", Verdict::Retry(Duration::ZERO));
        let pause = line.pause_of("a").unwrap();
        line.after(pause);
    }
    line.next();
    line.finish("a", Verdict::Retry(Duration::ZERO));
    assert_eq!(line.pause_of("a"), Some(1000 * MS));
    line.child("a");
    assert_eq!(line.pause_of("a"), Some(NEWS_PAUSE + GATHER));
    line.after(NEWS_PAUSE + GATHER);
    line.next();
    line.finish("a", Verdict::Retry(3000 * MS));
    line.child("a");
    assert_eq!(line.pause_of("a"), Some(3000 * MS));
}

#[test]
fn a_failing_job_holds_up_nobody() {
    let mut line = Line::new();
    line.job("bad");
    line.next();
    line.finish("bad", Verdict::Retry(Duration::ZERO));
    line.job("good");
    assert_eq!(line.next().as_deref(), Some("good"));
}

#[test]
fn a_finished_job_costs_nothing_until_it_changes_itself() {
    let mut line = Line::new();
    line.job("a");
    line.next();
    line.finish("a", Verdict::Sleep);
    line.child("a");
    assert_eq!(line.schedule.next(line.now + 1000 * MS), Next::Never);
    line.job("a");
    assert_eq!(line.after(GATHER).next().as_deref(), Some("a"));
    line.finish("a", Verdict::Sleep);
    assert_eq!(line.schedule.next(line.now + 1000 * MS), Next::Never);
}

#[test]
fn a_parked_job_wakes_with_its_next_generation_only() {
    let mut line = Line::new();
    line.job("a");
    line.next();
    line.finish("a", Verdict::Park(1));
    line.child("a");
    line.job("a");
    assert_eq!(line.schedule.next(line.now + 1000 * MS), Next::Never);
    line.schedule.wake("a", Cause::Job(2), line.now);
    assert_eq!(line.after(GATHER).next().as_deref(), Some("a"));
    line.schedule.wake("a", Cause::Job(3), line.now);
    line.finish("a", Verdict::Park(2));
    assert_eq!(line.after(GATHER).next().as_deref(), Some("a"), "it changed during the pass");
}

#[test]
fn new_jobs_go_first_but_not_for_ever() {
    let mut line = Line::new();
    line.known("old");
    line.child("old");
    line.after(GATHER);
    for uid in ["n1", "n2", "n3", "n4", "n5", "n6"] {
        line.job(uid);
    }
    let order: Vec<_> = std::iter::from_fn(|| line.next()).collect();
    let place = order.iter().position(|uid| uid == "old").unwrap();
    assert!((1..=4).contains(&place), "{order:?}");
}

#[test]
fn a_forgotten_job_leaves_nothing_behind() {
    let mut line = Line::new();
    line.job("queued");
    line.schedule.forget("queued");
    assert_eq!(line.next(), None);
    line.job("running");
    line.next();
    line.schedule.forget("running");
    line.finish("running", Verdict::Again);
    line.known("waiting");
    line.child("waiting");
    line.schedule.forget("waiting");
    line.child("waiting");
    assert_eq!(line.schedule.next(line.now + 1000 * MS), Next::Never);
    assert!(line.schedule.jobs.is_empty() && line.schedule.timers.is_empty());
}

#[derive(Debug, Clone)]
enum Step {
    Job(u8),
    Child(u8),
    Forget(u8),
    Next,
    Finish(u8, Verdict),
    Pass(u32),
}

fn step() -> impl Strategy<Value = Step> {
    let verdict = prop_oneof![
        Just(Verdict::Again),
        Just(Verdict::Wait(None)),
        Just(Verdict::Sleep),
        Just(Verdict::Retry(Duration::ZERO)),
        Just(Verdict::Park(1)),
        Just(Verdict::Gone),
    ];
    prop_oneof![
        (0_u8..4).prop_map(Step::Job),
        (0_u8..4).prop_map(Step::Child),
        (0_u8..4).prop_map(Step::Forget),
        Just(Step::Next),
        (0_u8..4, verdict).prop_map(|(job, verdict)| Step::Finish(job, verdict)),
        (0_u32..300).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    /// A job that something happened to is looked at after it happened, unless it rests; and
    /// never twice at the same time.
    #[test]
    fn nothing_is_lost_and_nothing_doubled(steps in prop::collection::vec(step(), 0..80)) {
        let mut line = Line::new();
        let mut running: BTreeSet<String> = BTreeSet::new();
        let mut unseen: BTreeSet<String> = BTreeSet::new();
        for step in steps {
            match step {
                Step::Job(job) => {
                    let uid = job.to_string();
                    let parked = line.schedule.jobs.get(&*uid).map(|e| e.rest) == Some(Rest::Parked(1));
                    line.job(&uid);
                    // A job that is gone but still being looked at has its own end.
                    let gone = line.schedule.jobs.get(&*uid).is_some_and(|e| e.gone);
                    if !parked && !gone {
                        unseen.insert(uid);
                    }
                }
                Step::Child(job) => line.child(&job.to_string()),
                Step::Forget(job) => {
                    line.schedule.forget(&job.to_string());
                    unseen.remove(&job.to_string());
                }
                Step::Next => {
                    if let Some(uid) = line.next() {
                        prop_assert!(running.insert(uid.clone()), "{uid} twice at a time");
                        unseen.remove(&uid);
                    }
                }
                Step::Finish(job, verdict) => {
                    let uid = job.to_string();
                    if running.remove(&uid) {
                        line.finish(&uid, verdict);
                        if verdict == Verdict::Gone {
                            unseen.remove(&uid);
                        }
                    }
                }
                Step::Pass(millis) => {
                    line.after(millis * MS);
                }
            }
        }
        for uid in std::mem::take(&mut running) {
            line.finish(&uid, Verdict::Wait(None));
        }
        line.after(Duration::from_secs(10));
        while let Some(uid) = line.next() {
            unseen.remove(&uid);
            line.finish(&uid, Verdict::Wait(None));
        }
        prop_assert!(unseen.is_empty(), "never looked at: {unseen:?}");
        prop_assert_eq!(line.schedule.waiting(), 0);
    }
}
