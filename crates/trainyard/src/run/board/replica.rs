//! One replica.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::Timestamp;

use crate::run::names;

/// Lines that are kept of each replica.
pub(crate) const TAIL: usize = 20;
/// Ends that are kept of each replica.
const ENDS: usize = 20;

/// A replica that uses less is waiting, in thousandths of a core: on a busy machine little is much.
const IDLE: u64 = 20;

/// How a replica is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Nothing is known of it yet.
    #[default]
    Absent,
    /// It waits for something, in words; empty where that is a matter of moments.
    Waiting(String),
    Running,
    Succeeded,
    /// It ended with this code.
    Failed(i64),
    /// It was told to end, and has not.
    Stopping,
    /// It was told to end.
    Stopped,
}

impl State {
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed(_) | Self::Stopped)
    }

    /// One word.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Absent | Self::Waiting(_) => "waiting",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed(_) => "failed",
            Self::Stopping => "stopping",
            Self::Stopped => "stopped",
        }
    }
}

/// An end of one of a replica's containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) uid: String,
    pub(crate) container: String,
    /// How often the container had been restarted before.
    pub(crate) run: u64,
    pub(crate) code: i64,
    /// The kubelet's word.
    pub(crate) reason: String,
    /// Why its program could not be started; empty where it was.
    pub(crate) not_started: String,
    pub(crate) at: Option<Timestamp>,
    /// Its pod had been told to end.
    pub(crate) stopped: bool,
}

impl Ended {
    /// How it was, in words: `exit code 1, the program ended with an error`.
    pub(crate) fn words(&self) -> String {
        format!("{}, {}", names::code(self.code, &self.reason), self.meaning())
    }

    /// What its exit code means, and why its program could not be started if it was not.
    pub(crate) fn meaning(&self) -> String {
        let meaning = names::meaning(self.code, &self.reason);
        if self.not_started.is_empty() {
            meaning
        } else {
            format!("{meaning}: {}", self.not_started)
        }
    }
}

/// A replica that has run so long since its last end is not in a loop, in seconds: its kubelet forgets
/// its restarts then, too.
const WELL: i64 = 600;

/// A replica of a job.
#[derive(Debug, Default)]
pub(crate) struct Replica {
    pub(crate) state: State,
    /// The kubelet's word for what its container waits for; empty where it does not.
    pub(crate) waits_by: String,
    /// The scheduler has found no node for it.
    pub(crate) is_unplaced: bool,
    /// Whether it has a pod.
    pub(crate) has_pod: bool,
    /// Its present or last pod.
    pub(crate) uid: String,
    /// Where it is reached from this machine, if it is.
    pub(crate) address: String,
    pub(crate) restarts: u64,
    /// Ends with an error, one soon after the other.
    pub(crate) failures: u64,
    /// The restart in the present pod before which it last waited, which has been told.
    pub(crate) backed_off: Option<u64>,
    /// Restarts of containers in the present pod that have been told.
    pub(crate) in_place: u64,
    pub(crate) ends: Vec<Ended>,
    /// What it printed last.
    pub(crate) tail: VecDeque<String>,
    /// The same of what is usually not worth reading.
    pub(crate) noise: VecDeque<String>,
    /// Lines that it has printed.
    pub(crate) lines: u64,
    /// When it last printed, since the run began.
    pub(crate) spoke: Option<Duration>,
    /// When it last used the processor in earnest.
    pub(crate) worked: Option<Duration>,
    /// When its state last changed.
    stirred: Option<Duration>,
    /// Readings since its last sign of life that found it idle.
    pub(crate) idle: u32,
    pub(crate) memory: u64,
    pub(crate) peak: u64,
    /// Thousandths of a core.
    pub(crate) cpu_millis: u64,
    read: Option<(Duration, u64)>,
}

impl Replica {
    pub(crate) fn hear(&mut self, line: &str, noise: bool, now: Duration) {
        let kept = if noise { &mut self.noise } else { &mut self.tail };
        if kept.len() == TAIL {
            kept.pop_front();
        }
        kept.push_back(line.to_owned());
        self.lines += 1;
        self.spoke = Some(now);
        self.idle = 0;
    }

    /// Its state changed.
    pub(crate) const fn stir(&mut self, now: Duration) {
        self.stirred = Some(now);
        self.idle = 0;
    }

    /// Its last sign of life: words, work, another state; none before the first.
    pub(crate) fn last_sign(&self) -> Duration {
        self.spoke.max(self.worked).max(self.stirred).unwrap_or_default()
    }

    pub(crate) fn measure(&mut self, cpu_usec: u64, memory: u64, now: Duration) {
        self.memory = memory;
        self.peak = self.peak.max(memory);
        if let Some((before, usec)) = self.read
            && let Some(span) = now.checked_sub(before).filter(|span| !span.is_zero())
        {
            let used = cpu_usec.saturating_sub(usec);
            let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX).max(1);
            self.cpu_millis = used.saturating_mul(1000) / micros;
            if self.cpu_millis >= IDLE {
                self.worked = Some(now);
                self.idle = 0;
            } else {
                self.idle = self.idle.saturating_add(1);
            }
        }
        self.read = Some((now, cpu_usec));
    }

    /// Its last words: what is worth reading, else whatever there is.
    pub(crate) fn last_words(&self) -> Vec<String> {
        let kept = if self.tail.is_empty() { &self.noise } else { &self.tail };
        kept.iter().cloned().collect()
    }

    pub(crate) fn note(&mut self, end: Ended) {
        let known = self
            .ends
            .iter()
            .any(|one| one.uid == end.uid && one.container == end.container && one.run == end.run);
        if known {
            return;
        }
        if end.code != 0 && !end.stopped {
            let last = self.ends.iter().rev().find(|last| last.container == end.container);
            let between = last.and_then(|last| last.at).zip(end.at);
            let was_well =
                between.is_some_and(|(last, now)| now.as_second() - last.as_second() >= WELL);
            self.failures = if was_well { 1 } else { self.failures + 1 };
        }
        if self.ends.len() == ENDS {
            self.ends.remove(0);
        }
        self.ends.push(end);
    }

    /// A new pod plays the replica: what the one before it used is no measure.
    pub(crate) fn renew(&mut self, uid: &str) {
        uid.clone_into(&mut self.uid);
        self.in_place = 0;
        self.backed_off = None;
        self.read = None;
    }
}
