//! What is counted, under which names.
//!
//! Names and labels of the job counters are those of the reference operators; everything else
//! begins with `trainyard_`. Must not decide when something is counted.

use std::{fmt, time::Duration};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct JobLabels {
    job_namespace: String,
    framework: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    verb: &'static str,
    resource: &'static str,
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResourceLabel {
    resource: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndLabels {
    job_name: String,
    queue_name: String,
}

/// A turn in a job's life that has a counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobCount {
    Created,
    Deleted,
    Successful,
    Failed,
    Restarted,
}

type Jobs = Family<JobLabels, Counter>;
/// Per job, as Volcano counts them. Gauges, because the library gives counters another name.
type Ends = Family<EndLabels, Gauge>;

/// All counters and gauges of an operator.
pub struct Metrics {
    registry: Registry,
    created: Jobs,
    deleted: Jobs,
    successful: Jobs,
    failed: Jobs,
    restarted: Jobs,
    completed_phase: Ends,
    failed_phase: Ends,
    queue_depth: Gauge,
    reconciles: Family<ResultLabel, Counter>,
    reconcile_seconds: Histogram,
    calls: Family<CallLabels, Counter>,
    cached: Family<ResourceLabel, Gauge>,
    leader: Gauge,
    events_dropped: Counter,
    reference_webhook: Gauge,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            created: Jobs::default(),
            deleted: Jobs::default(),
            successful: Jobs::default(),
            failed: Jobs::default(),
            restarted: Jobs::default(),
            completed_phase: Ends::default(),
            failed_phase: Ends::default(),
            queue_depth: Gauge::default(),
            reconciles: Family::default(),
            reconcile_seconds: Histogram::new([
                0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
                10.0, 30.0,
            ]),
            calls: Family::default(),
            cached: Family::default(),
            leader: Gauge::default(),
            events_dropped: Counter::default(),
            reference_webhook: Gauge::default(),
        };
        metrics.register_jobs();
        metrics.register_own();
        metrics
    }
}

impl Metrics {
    /// The same with more beside them.
    pub(crate) fn with(register: impl FnOnce(&mut Registry)) -> Self {
        let mut metrics = Self::default();
        register(&mut metrics.registry);
        metrics
    }

    /// The metrics as Prometheus text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string fails only if a metric refuses to be written, and ours do not.
        if encode(&mut text, &self.registry).is_err() {
            tracing::error!("the metrics could not be written as text");
        }
        text
    }

    // The library appends `_total` to the names of counters.
    fn register_jobs(&mut self) {
        let jobs = self.registry.sub_registry_with_prefix("training_operator_jobs");
        jobs.register("created", "Jobs accepted", self.created.clone());
        jobs.register("deleted", "Jobs deleted", self.deleted.clone());
        jobs.register("successful", "Jobs that succeeded", self.successful.clone());
        jobs.register("failed", "Jobs that failed", self.failed.clone());
        jobs.register("restarted", "Restarts of replicas", self.restarted.clone());
        let ends = self.registry.sub_registry_with_prefix("volcano_job");
        ends.register(
            "completed_phase_count",
            "How often a Volcano Job has completed",
            self.completed_phase.clone(),
        );
        ends.register(
            "failed_phase_count",
            "How often a Volcano Job has failed",
            self.failed_phase.clone(),
        );
    }

    fn register_own(&mut self) {
        let own = self.registry.sub_registry_with_prefix("trainyard");
        own.register("queue_depth", "Jobs that wait for a pass", self.queue_depth.clone());
        own.register("reconciles", "Passes over a job by how they ended", self.reconciles.clone());
        own.register(
            "reconcile_seconds",
            "Time of one pass over a job, its writes included",
            self.reconcile_seconds.clone(),
        );
        own.register("api_calls", "Requests to the API server", self.calls.clone());
        own.register("cached_objects", "Objects held in memory", self.cached.clone());
        own.register("leader", "1 while this operator acts", self.leader.clone());
        own.register(
            "events_dropped",
            "Events that could not be written",
            self.events_dropped.clone(),
        );
        own.register(
            "reference_webhook",
            "1 if the reference operator's validating webhook is still installed",
            self.reference_webhook.clone(),
        );
    }

    pub(crate) fn job(&self, count: JobCount, namespace: &str, framework: &'static str) {
        let family = match count {
            JobCount::Created => &self.created,
            JobCount::Deleted => &self.deleted,
            JobCount::Successful => &self.successful,
            JobCount::Failed => &self.failed,
            JobCount::Restarted => &self.restarted,
        };
        family.get_or_create(&JobLabels { job_namespace: namespace.to_owned(), framework }).inc();
    }

    /// A job that is counted by itself has ended.
    pub(crate) fn end(&self, well: bool, namespace: &str, name: &str, queue: &str) {
        let ends = if well { &self.completed_phase } else { &self.failed_phase };
        ends.get_or_create(&EndLabels::new(namespace, name, queue)).inc();
    }

    /// Such a job does not exist any more: what is counted by job is bounded by the jobs there are.
    pub(crate) fn forget_end(&self, namespace: &str, name: &str, queue: &str) {
        let labels = EndLabels::new(namespace, name, queue);
        self.completed_phase.remove(&labels);
        self.failed_phase.remove(&labels);
    }

    /// Jobs of one kind that wait: how many it was before, how many it is now.
    pub(crate) fn queue_depth(&self, before: usize, now: usize) {
        self.queue_depth.inc_by(saturated(now) - saturated(before));
    }

    pub(crate) fn reconciled(&self, result: &'static str, took: Duration) {
        self.reconciles.get_or_create(&ResultLabel { result }).inc();
        self.reconcile_seconds.observe(took.as_secs_f64());
    }

    pub(crate) fn called(&self, verb: &'static str, resource: &'static str, code: &'static str) {
        self.calls.get_or_create(&CallLabels { verb, resource, code }).inc();
    }

    /// So many more objects are held; less than none when there are fewer.
    pub(crate) fn cached(&self, resource: &'static str, growth: i64) {
        self.cached.get_or_create(&ResourceLabel { resource }).inc_by(growth);
    }

    pub(crate) fn leader(&self, acting: bool) {
        self.leader.set(i64::from(acting));
    }

    pub(crate) fn event_dropped(&self) {
        self.events_dropped.inc();
    }

    pub(crate) fn reference_webhook(&self, there: bool) {
        self.reference_webhook.set(i64::from(there));
    }
}

impl EndLabels {
    fn new(namespace: &str, name: &str, queue: &str) -> Self {
        Self { job_name: format!("{namespace}/{name}"), queue_name: queue.to_owned() }
    }
}

fn saturated(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_counters_have_the_known_names_and_labels() {
        let metrics = Metrics::default();
        metrics.job(JobCount::Created, "team-a", "tensorflow");
        metrics.job(JobCount::Created, "team-a", "tensorflow");
        metrics.job(JobCount::Deleted, "team-a", "tensorflow");
        metrics.job(JobCount::Successful, "b", "tensorflow");
        metrics.job(JobCount::Failed, "b", "tensorflow");
        metrics.job(JobCount::Restarted, "b", "tensorflow");
        let text = metrics.encode();
        for line in [
            r#"training_operator_jobs_created_total{job_namespace="team-a",framework="tensorflow"} 2"#,
            r#"training_operator_jobs_deleted_total{job_namespace="team-a",framework="tensorflow"} 1"#,
            r#"training_operator_jobs_successful_total{job_namespace="b",framework="tensorflow"} 1"#,
            r#"training_operator_jobs_failed_total{job_namespace="b",framework="tensorflow"} 1"#,
            r#"training_operator_jobs_restarted_total{job_namespace="b",framework="tensorflow"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
        }
    }

    #[test]
    fn the_end_of_a_volcano_job_has_the_known_name_until_the_job_is_deleted() {
        let metrics = Metrics::default();
        metrics.end(true, "team", "a", "q");
        metrics.end(false, "team", "b", "q");
        let text = metrics.encode();
        for line in [
            r#"volcano_job_completed_phase_count{job_name="team/a",queue_name="q"} 1"#,
            r#"volcano_job_failed_phase_count{job_name="team/b",queue_name="q"} 1"#,
        ] {
            assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
        }
        metrics.forget_end("team", "a", "q");
        metrics.forget_end("team", "b", "q");
        assert!(!metrics.encode().contains("team/"));
    }

    #[test]
    fn the_operator_tells_of_itself() {
        let metrics = Metrics::default();
        metrics.queue_depth(0, 5);
        metrics.queue_depth(0, 1);
        metrics.queue_depth(5, 2);
        metrics.cached("pods", 4);
        metrics.cached("pods", -1);
        metrics.reconciled("ok", Duration::from_millis(2));
        metrics.called("create", "pods", "2xx");
        metrics.leader(true);
        let text = metrics.encode();
        for line in [
            "trainyard_queue_depth 3",
            r#"trainyard_reconciles_total{result="ok"} 1"#,
            "trainyard_reconcile_seconds_count 1",
            r#"trainyard_api_calls_total{verb="create",resource="pods",code="2xx"} 1"#,
            r#"trainyard_cached_objects{resource="pods"} 3"#,
            "trainyard_leader 1",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} not in\n{text}");
        }
    }
}
