//! What the scheduler counts, under Volcano's names.
//!
//! Must not decide when something is counted.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};
use trainyard_sched::{Cause, Decision};

use super::world::Outcome;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

/// The counters of a scheduler.
pub(super) struct Tally {
    latency: Histogram,
    attempts: Family<ResultLabel, Counter>,
    victims: Counter,
    unscheduled_jobs: Gauge,
}

impl Tally {
    pub(super) fn new() -> Self {
        let bounds = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0];
        Self {
            latency: Histogram::new(bounds),
            attempts: Family::default(),
            victims: Counter::default(),
            unscheduled_jobs: Gauge::default(),
        }
    }

    /// Adds them to those that are served.
    pub(super) fn register(&self, registry: &mut Registry) {
        let known = registry.sub_registry_with_prefix("volcano");
        known.register(
            "e2e_scheduling_latency_milliseconds",
            "Time of one decision about everything that waits",
            self.latency.clone(),
        );
        known.register("schedule_attempts", "Pods by what came of them", self.attempts.clone());
        known.register("pod_preemption_victims", "Pods evicted for others", self.victims.clone());
        known.register("unschedule_job_count", "Groups that wait", self.unscheduled_jobs.clone());
    }

    pub(super) fn decided(&self, outcome: &Outcome, took: Duration) {
        self.latency.observe(took.as_secs_f64() * 1000.0);
        self.unscheduled_jobs.set(i64::try_from(outcome.waiting).unwrap_or(i64::MAX));
        let attempts = |result| self.attempts.get_or_create(&ResultLabel { result }).clone();
        for decision in &outcome.decisions {
            match decision {
                Decision::Bind { .. } => drop(attempts("scheduled").inc()),
                Decision::Wait { .. } => drop(attempts("unschedulable").inc()),
                Decision::Evict { cause: Cause::Preempted(_) | Cause::Reclaimed(_), .. } => {
                    self.victims.inc();
                }
                _ => {}
            }
        }
    }
}
