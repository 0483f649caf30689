//! When probes are due and what their results make of a container. Pure: time comes from outside.
//!
//! Until a startup probe has succeeded the others wait. A startup probe ends with its first verdict, a
//! liveness probe with its first bad one: the container is then killed, and its successor begins anew.

use tokio::time::Instant;

use super::outcome::Outcome;
use super::plan::{Kind, Plan};

/// What a result has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The startup probe has succeeded.
    Started,
    Ready,
    NotReady,
    /// The container is to be killed, for this probe has failed.
    Unhealthy(Kind),
}

impl Change {
    /// What the `Killing` event says of a container that is to be killed.
    pub(crate) fn killing(self, container: &str, restarts: bool) -> Option<String> {
        let Self::Unhealthy(kind) = self else { return None };
        let kind = kind.word().to_ascii_lowercase();
        let then = if restarts { ", will be restarted" } else { "" };
        Some(format!("Container {container} failed {kind} probe{then}"))
    }
}

/// One probe's progress on one run of a container.
#[derive(Debug, Clone)]
pub(crate) struct ProbeState {
    plan: Plan,
    due: Instant,
    /// It is being made right now.
    under_way: bool,
    /// It will not be made any more.
    over: bool,
    /// The last result, and how often in a row it came.
    run: (bool, u32),
    /// What the results so far amount to.
    good: bool,
}

impl ProbeState {
    /// For a container that began at `began`.
    pub(crate) fn new(plan: Plan, began: Instant) -> Self {
        let due = began + plan.initial_delay;
        let good = plan.kind == Kind::Liveness;
        Self { plan, due, under_way: false, over: false, run: (true, 0), good }
    }

    /// When it is to be made next; never while it is under way or once it is over.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        (!self.under_way && !self.over).then_some(self.due)
    }

    /// It is being made from now on.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.under_way = true;
        self.due = now + self.plan.period;
    }

    /// What came of it, and what that changes.
    pub(crate) fn record(&mut self, outcome: &Outcome, now: Instant) -> Option<Change> {
        self.under_way = false;
        self.due = self.due.max(now);
        let verdict = outcome.verdict().filter(|_| !self.over)?;
        self.run = if self.run.0 == verdict {
            (verdict, self.run.1.saturating_add(1))
        } else {
            (verdict, 1)
        };
        let threshold =
            if verdict { self.plan.success_threshold } else { self.plan.failure_threshold };
        if self.run.1 < threshold {
            return None;
        }
        let was = std::mem::replace(&mut self.good, verdict);
        match (self.plan.kind, verdict) {
            (Kind::Startup, true) => {
                self.over = true;
                Some(Change::Started)
            }
            (Kind::Startup | Kind::Liveness, false) => {
                self.over = true;
                Some(Change::Unhealthy(self.plan.kind))
            }
            (Kind::Liveness, true) => None,
            (Kind::Readiness, _) if was == verdict => None,
            (Kind::Readiness, true) => Some(Change::Ready),
            (Kind::Readiness, false) => Some(Change::NotReady),
        }
    }
}

/// All probes of one run of a container.
#[derive(Debug, Clone)]
pub(crate) struct ContainerProbes {
    states: Vec<ProbeState>,
    started: bool,
}

impl ContainerProbes {
    /// For a container that began at `began`.
    pub(crate) fn new(plans: Vec<Plan>, began: Instant) -> Self {
        let started = plans.iter().all(|plan| plan.kind != Kind::Startup);
        let states = plans.into_iter().map(|plan| ProbeState::new(plan, began)).collect();
        Self { states, started }
    }

    /// `started` of the container's status while it runs.
    pub(crate) fn started(&self) -> bool {
        self.started
    }

    /// `ready` of the container's status while it runs.
    pub(crate) fn ready(&self) -> bool {
        let readiness = self.states.iter().find(|state| state.plan.kind == Kind::Readiness);
        self.started && readiness.is_none_or(|state| state.good)
    }

    /// There is nothing to do, now and later.
    pub(crate) fn is_idle(&self) -> bool {
        self.states.iter().all(|state| state.over)
    }

    /// When the next probe is due.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        self.open().filter_map(ProbeState::next_at).min()
    }

    /// The probes to be made now; they count as under way until [`Self::record`].
    pub(crate) fn begin_due(&mut self, now: Instant) -> Vec<Plan> {
        let started = self.started;
        self.states
            .iter_mut()
            .filter(|state| is_open(state, started))
            .filter(|state| state.next_at().is_some_and(|at| at <= now))
            .map(|state| {
                state.begin(now);
                state.plan.clone()
            })
            .collect()
    }

    /// What came of a probe, and what that changes.
    pub(crate) fn record(&mut self, kind: Kind, outcome: &Outcome, now: Instant) -> Option<Change> {
        let state = self.states.iter_mut().find(|state| state.plan.kind == kind)?;
        let change = state.record(outcome, now);
        if change == Some(Change::Started) {
            self.started = true;
        }
        change
    }

    fn open(&self) -> impl Iterator<Item = &ProbeState> {
        self.states.iter().filter(|state| is_open(state, self.started))
    }
}

/// Before the container has started only its startup probe is made.
fn is_open(state: &ProbeState, started: bool) -> bool {
    started != (state.plan.kind == Kind::Startup)
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
