//! Follows the jobs of a run to their end: takes in what the watchers say, tells what is worth telling,
//! stops everything when it is told to.
//!
//! Owns the order of things in time. What is judged and how it is said is decided elsewhere.

mod events;

use std::collections::BTreeSet;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::LocalBoxFuture;
use futures::stream::FuturesUnordered;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior};
use trainyard_node::Window;

use super::attach::{self, News, Reading};
use super::board::{Board, Ended, Notice, State, Weight};
use super::finish::Ending;
use super::noise;
use super::stage::Staged;
use super::stuck;
use super::voice::{Voice, Who};
use crate::cluster::{Cluster, Kind, Kinds};
use crate::commands::signals::{HANGUP, Signals};
use crate::failure::Failure;
use crate::output;
use crate::present::text;
use crate::yard::Yard;

/// News under way between the watchers and the terminal.
const UNDER_WAY: usize = 512;
/// How long nothing may move before it is sure that nothing will: the scheduler may just be at it.
const STANDSTILL: Duration = Duration::from_secs(5);
/// Between looks at the clock.
const TICK: Duration = Duration::from_millis(200);
/// How long logs and pods may take to end after their jobs have.
const AFTER: Duration = Duration::from_secs(5);
/// How long pods may take to end when they are told to, beyond any grace period of theirs.
const STOPPING: Duration = Duration::from_secs(45);

/// What is conducted.
pub(crate) struct Conductor<'a> {
    cluster: &'a Cluster,
    pods: Kind,
    events: Kind,
    staged: &'a [Staged],
    board: &'a mut Board,
    voice: &'a mut Voice,
    began: Instant,
    /// Logs that are read now.
    open: usize,
    reading: BTreeSet<(String, String, u32)>,
    told: BTreeSet<String>,
    gone: BTreeSet<usize>,
    /// Pods that wait for an environment that is being made, by identity.
    waits: BTreeSet<String>,
    /// More wants the machine's processors than there are.
    is_busy: bool,
    /// How often replicas of each job may be restarted in a row.
    bounds: Vec<Option<u64>>,
    /// Since when replicas wait for a node while none runs.
    standstill: Option<Instant>,
}

type Task<'t> = LocalBoxFuture<'t, ()>;

/// Since when a run goes on, and how far.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) began: Instant,
    /// How often replicas of each job may be restarted in a row; none where their job says it.
    pub(crate) restarts: Vec<Option<u64>>,
    /// What was told before, which is not told again.
    pub(crate) told: BTreeSet<String>,
}

/// How it ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Conducted {
    pub(crate) ending: Ending,
    /// A second signal came: nothing is waited for.
    pub(crate) at_once: bool,
}

/// Why everything is being stopped, and until when that may take.
struct Stop {
    ending: Ending,
    until: Instant,
}

impl<'a> Conductor<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        kinds: &Kinds,
        staged: &'a [Staged],
        board: &'a mut Board,
        voice: &'a mut Voice,
        limits: Limits,
    ) -> Result<Self, Failure> {
        Ok(Self {
            cluster,
            pods: kinds.known("pods")?.clone(),
            events: kinds.known("events")?.clone(),
            staged,
            board,
            voice,
            began: limits.began,
            open: 0,
            reading: BTreeSet::new(),
            told: limits.told,
            gone: BTreeSet::new(),
            waits: BTreeSet::new(),
            is_busy: false,
            bounds: limits.restarts,
            standstill: None,
        })
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Follows until all jobs have ended, a signal comes or the time is over. A second signal is an
    /// ending at once.
    pub(crate) async fn run(
        &mut self,
        yard: &mut Yard,
        signals: &mut Signals,
        window: &Window,
        timeout: Option<Duration>,
    ) -> Result<Conducted, Failure> {
        let (sender, mut news) = mpsc::channel(UNDER_WAY);
        // They live beside what is changed by what they say.
        let (cluster, staged) = (self.cluster, self.staged);
        let (pods, events) = (self.pods.clone(), self.events.clone());
        let mut tasks = watchers(cluster, (&pods, &events), staged, window, &sender);
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut stop: Option<Stop> = None;
        let mut over: Option<Instant> = None;
        loop {
            let mut give_up = None;
            let next = tokio::select! {
                next = news.recv() => next,
                Some(()) = tasks.next() => continue,
                broken = yard.broken() => return Err(broken),
                signal = signals.next() => {
                    if let Some(Stop { ending, .. }) = stop {
                        self.say("Killed", "killed")?;
                        return Ok(Conducted { ending, at_once: true });
                    }
                    let words =
                        format!("stopping ({signal}): pods get their grace period; again to kill");
                    self.say("Stopping", &words)?;
                    if signal == HANGUP {
                        // Its terminal is gone; the pods end in order all the same.
                        output::forgive_loss();
                    }
                    give_up = Some(Ending::Interrupted);
                    None
                }
                _ = tick.tick() => {
                    self.tick()?;
                    give_up = self.gives_up(timeout, stop.is_some())?;
                    None
                }
            };
            if let Some(ending) = give_up {
                stop = Some(Stop::new(ending));
                for one in staged {
                    tasks.push(Box::pin(attach::delete(cluster, one, sender.clone())));
                }
            }
            if let Some(next) = next {
                for reading in self.hear(next)? {
                    tasks.push(Box::pin(attach::read(window, reading, sender.clone())));
                }
            }
            if self.board.is_over() && over.is_none() {
                over = Some(Instant::now());
            }
            if let Some(ending) = self.ended(stop.as_ref(), over) {
                return Ok(Conducted { ending, at_once: false });
            }
        }
    }

    /// Whether it is time to stop, and why.
    fn gives_up(
        &mut self,
        timeout: Option<Duration>,
        is_stopping: bool,
    ) -> Result<Option<Ending>, Failure> {
        if is_stopping || self.board.is_over() {
            return Ok(None);
        }
        if timeout.is_some_and(|timeout| self.now() >= timeout) {
            self.say("Timeout", "the time of --timeout is over: stopping")?;
            return Ok(Some(Ending::TimedOut));
        }
        if let Some((job, replica, failures)) = self.board.looping(&self.bounds) {
            let last =
                self.board.jobs.get(job).and_then(|job| job.replicas.get(&replica)?.ends.last());
            let last = last.map_or_else(String::new, Ended::words);
            let words = format!(
                "failed {failures} times in a row, the last time with {last}: giving up. --max-restarts N allows more; backoffLimit in \
                 the manifest decides instead of it"
            );
            let notice = Notice::new(Weight::Warning, "GivenUp", words).about(job, Some(&replica));
            self.voice.notice(self.board, &notice)?;
            if let Some(on_board) = self.board.jobs.get_mut(job) {
                on_board.gave_up_on = Some(replica);
            }
            return Ok(Some(Ending::Looping));
        }
        let is_at_a_standstill = self.board.is_at_a_standstill();
        let since = self.standstill.filter(|_| is_at_a_standstill);
        self.standstill = is_at_a_standstill.then(|| since.unwrap_or_else(Instant::now));
        let is_stuck = since.is_some_and(|since| since.elapsed() >= STANDSTILL);
        if is_stuck {
            let words =
                "no node of this machine takes these pods, and nothing runs that would make room";
            self.say("Unschedulable", words)?;
        }
        let is_hopeless = is_stuck || !self.board.hopeless().is_empty();
        Ok(is_hopeless.then_some(Ending::Hopeless))
    }

    /// Whether there is nothing more to wait for.
    fn ended(&self, stop: Option<&Stop>, over: Option<Instant>) -> Option<Ending> {
        if let Some(stop) = stop {
            let nothing_left = self.board.pods() == 0 && self.gone.len() == self.staged.len();
            let late = Instant::now() >= stop.until;
            return ((nothing_left && self.open == 0) || late).then_some(stop.ending);
        }
        if self.gone.len() == self.staged.len() && self.open == 0 {
            return Some(Ending::Finished);
        }
        let over = over?;
        let quiet = self.open == 0 && self.board.alive() == 0;
        (quiet || over.elapsed() >= AFTER).then_some(Ending::Finished)
    }

    fn say(&mut self, reason: &str, words: &str) -> Result<(), Failure> {
        self.voice.notice(self.board, &Notice::new(Weight::Warning, reason, words))
    }

    fn tick(&mut self) -> Result<(), Failure> {
        let now = self.now();
        for job in 0..self.staged.len() {
            // Who waits for an environment is not stuck, however long it takes.
            if !self.waits.is_empty() {
                break;
            }
            if let Some(why) = stuck::why(self.board, job, now, self.is_busy)
                && self.told.insert(why.clone())
            {
                let notice = Notice::new(Weight::Warning, "Stuck", why).about(job, None);
                self.voice.notice(self.board, &notice)?;
            }
        }
        self.voice.tick(self.board, now)
    }

    /// Takes one piece of news in; answers with the logs that are to be read from now on.
    fn hear(&mut self, news: News) -> Result<Vec<Reading>, Failure> {
        let now = self.now();
        match news {
            News::Pod { job, pod, is_gone } => return self.hear_pod(job, &pod, is_gone),
            News::Job { job, object } => {
                self.board.see_job(job, &object, now);
            }
            News::JobGone(job) => {
                self.gone.insert(job);
            }
            News::Event(event) => self.hear_event(&event)?,
            News::Line { job, replica, label, line } => {
                let shown = String::from_utf8_lossy(&line.text);
                let noise = noise::is_noise(&shown);
                self.board.see_line(job, &replica, shown.trim_end(), noise, now);
                let name = self.staged.get(job).map_or("", |one| one.job.name.as_str());
                let who = Who { job: name, replica: &replica, label: &label };
                self.voice.line(who, &line, noise)?;
            }
            News::LogEnd { job, replica } => {
                let stays = self.staged.get(job).is_some_and(|one| (one.job.row.stays)(&replica));
                if !stays {
                    self.open = self.open.saturating_sub(1);
                }
            }
            News::Use { readings, is_busy } => {
                self.is_busy = is_busy;
                for one in readings {
                    self.board.see_use(&one.uid, one.cpu_usec, one.memory, now);
                }
            }
            News::Problem(problem) => self.say("Problem", &problem)?,
        }
        Ok(Vec::new())
    }

    fn hear_pod(
        &mut self,
        job: usize,
        pod: &Value,
        is_gone: bool,
    ) -> Result<Vec<Reading>, Failure> {
        let Some(staged) = self.staged.get(job) else { return Ok(Vec::new()) };
        let replica = (staged.job.row.replica)(pod);
        let state = |board: &Board| {
            let one = board.jobs.get(job).and_then(|job| job.replicas.get(&replica));
            one.map(|one| (one.state.clone(), one.restarts))
        };
        let before = state(self.board);
        let notices = self.board.see_pod(job, pod, is_gone);
        // Of a job that is given up nothing starts again.
        let is_looping = self.board.looping(&self.bounds).is_some_and(|(at, ..)| at == job);
        let on_board = self.board.jobs.get(job);
        let is_given_up = is_looping || on_board.is_some_and(|job| job.gave_up_on.is_some());
        for notice in notices.iter().filter(|_| !is_given_up) {
            self.voice.notice(self.board, notice)?;
        }
        let after = state(self.board);
        if before != after {
            self.board.see_change(job, &replica, self.began.elapsed());
            self.voice.state(self.board, job, &replica)?;
        }
        let waits = after.is_some_and(|(state, _)| state == State::Waiting(String::new()));
        if (!waits || is_gone)
            && self.waits.remove(text(pod, &["metadata", "uid"]))
            && self.waits.is_empty()
        {
            self.voice.progress_ends();
        }
        if is_gone {
            return Ok(Vec::new());
        }
        let metadata = attach::metadata(pod);
        let uid = text(pod, &["metadata", "uid"]).to_owned();
        let label = self.board.label(job, &replica);
        let main = pod["spec"]["containers"].as_array().is_none_or(|all| all.len() == 1);
        let mut readings = Vec::new();
        for (container, restart) in attach::printing(pod) {
            if !self.reading.insert((uid.clone(), container.clone(), restart)) {
                continue;
            }
            let is_main = main || container == trainyard_api::names::CONTAINER;
            let label = if is_main { label.clone() } else { format!("{label}/{container}") };
            self.voice.expect(std::slice::from_ref(&label));
            readings.push(Reading {
                job,
                replica: replica.clone(),
                label,
                pod: metadata.clone(),
                container,
                restart,
            });
        }
        // What stays is read too, and nobody waits for its end.
        if !(staged.job.row.stays)(&replica) {
            self.open += readings.len();
        }
        Ok(readings)
    }

    fn hear_event(&mut self, event: &Value) -> Result<(), Failure> {
        let about = |uid: &str| self.board.jobs.iter().position(|job| job.uid == uid);
        let Some(heard) = events::heard(event, about, self.board) else { return Ok(()) };
        let events::Heard { notice, waits } = heard;
        // Several replicas wait for one environment: each step is told once, however late others hear.
        let key = match &waits {
            Some(_) => notice.text.clone(),
            None => format!("{:?} {}", notice.replica, notice.text),
        };
        let is_new = self.told.insert(key);
        let Some(uid) = waits else {
            return if is_new { self.voice.notice(self.board, &notice) } else { Ok(()) };
        };
        self.waits.insert(uid);
        if is_new { self.voice.progress(self.board, &notice, self.now()) } else { Ok(()) }
    }
}

/// Everybody who watches from the start.
fn watchers<'t>(
    cluster: &'t Cluster,
    (pods, events): (&'t Kind, &'t Kind),
    staged: &'t [Staged],
    window: &'t Window,
    sender: &mpsc::Sender<News>,
) -> FuturesUnordered<Task<'t>> {
    let tasks: FuturesUnordered<Task<'t>> = FuturesUnordered::new();
    for (number, one) in staged.iter().enumerate() {
        tasks.push(Box::pin(attach::pods(cluster, pods, number, one, sender.clone())));
        tasks.push(Box::pin(attach::job(cluster, number, one, sender.clone())));
    }
    let namespaces: BTreeSet<&str> = staged.iter().map(|one| one.job.namespace.as_str()).collect();
    for namespace in namespaces {
        tasks.push(Box::pin(attach::events(cluster, events, namespace, sender.clone())));
    }
    tasks.push(Box::pin(attach::measure(window, sender.clone())));
    tasks
}

impl Stop {
    fn new(ending: Ending) -> Self {
        Self { ending, until: Instant::now() + STOPPING }
    }
}
