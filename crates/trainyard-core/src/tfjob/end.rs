//! How a pod ended, if it did.
//!
//! Judges by the container that trains, not by the pod's phase alone: a sidecar that never stops
//! does not keep a job alive. A pod that somebody deletes is not judged at all unless it had ended
//! before; nor is one, for a few seconds, that somebody else than its program may have ended. Must not know policies.

use jiff::{SignedDuration, Timestamp};

use crate::{
    config::Config,
    end::{Decisive, EndedBy, culprit, ended_by, exit_code, has_ended, unclear_until},
    phase::Phase,
    view::{ContainerState, PodView},
};

/// By how much the clock of a node may be behind that of the API server.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// Judged is the container that trains.
pub(super) const WHOSE: Decisive = Decisive::Training;

/// How a pod ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// It has not.
    Live,
    /// Its program has ended; until then its kubelet may say that this was not the program's doing.
    Ending(Timestamp),
    /// It is being deleted.
    Leaving,
    /// Its program ended well.
    Completed,
    /// Its program ended badly, or was ended.
    Failed(Cause),
}

/// Why a pod failed.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Cause {
    /// The cluster ended it: eviction, preemption, node loss.
    pub disrupted: bool,
    /// Exit code of the container that trains; none where it only says how the program took being ended.
    pub exit_code: Option<i64>,
    /// Container that ended badly.
    pub container: String,
    /// Exit code of that container.
    pub container_code: Option<i64>,
    /// One word from the kubelet.
    pub reason: String,
    /// Last words.
    pub message: String,
    /// How long the container ran, in milliseconds.
    pub ran_ms: Option<i64>,
}

/// How this pod ended.
#[must_use]
pub(super) fn end(pod: &PodView, now: Timestamp, config: &Config) -> End {
    if let Some(deletion) = pod.deletion {
        let ended_before = finished_at(pod)
            .zip(deletion.asked_at())
            .is_some_and(|(finished_at, asked_at)| asked_at.duration_since(finished_at) > SKEW);
        if !ended_before {
            return End::Leaving;
        }
    }
    match unclear_until(pod, WHOSE, now, config.final_phase_ms) {
        Some(until) => End::Ending(until),
        None => judge(pod),
    }
}

/// How this pod ended, if nothing more becomes known.
fn judge(pod: &PodView) -> End {
    let ended_well = || pod.main_container().and_then(exit_code) == Some(0);
    match pod.phase {
        _ if !has_ended(pod, WHOSE) => End::Live,
        Phase::Succeeded => End::Completed,
        // A program may well answer a signal by exit code 0. That is no success.
        Phase::Failed if ended_by(pod, WHOSE) != EndedBy::Program => End::Failed(cause(pod)),
        _ if ended_well() => End::Completed,
        _ => End::Failed(cause(pod)),
    }
}

fn cause(pod: &PodView) -> Cause {
    let by = ended_by(pod, WHOSE);
    let mut cause = Cause {
        disrupted: by == EndedBy::Cluster,
        exit_code: pod.main_container().and_then(exit_code).filter(|_| by == EndedBy::Program),
        reason: pod.reason.to_string(),
        message: pod.message.to_string(),
        ..Cause::default()
    };
    if let Some(container) = culprit(pod, WHOSE) {
        cause.container = container.name.to_string();
        cause.container_code = exit_code(container);
        if let ContainerState::Terminated { reason, message, started_at, finished_at, .. } =
            &container.state
        {
            if cause.reason.is_empty() {
                cause.reason = reason.to_string();
            }
            if cause.message.is_empty() {
                cause.message = message.to_string();
            }
            cause.ran_ms = started_at.zip(*finished_at).map(|(from, to)| {
                i64::try_from(to.duration_since(from).as_millis()).unwrap_or(i64::MAX)
            });
        }
    }
    cause
}

/// When the pod's last container ended; none while one may still run.
fn finished_at(pod: &PodView) -> Option<Timestamp> {
    if !pod.phase.is_finished() {
        return None;
    }
    let mut last = None;
    for container in &pod.containers {
        match &container.state {
            ContainerState::Terminated { finished_at, .. } => last = last.max(*finished_at),
            _ => return None,
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(status: &Value, deleted: Option<(&str, i64)>) -> PodView {
        pod_with("Never", status, deleted)
    }

    fn pod_with(policy: &str, status: &Value, deleted: Option<(&str, i64)>) -> PodView {
        let mut metadata = json!({"name": "j-worker-0", "uid": "u"});
        if let Some((due, grace)) = deleted {
            metadata["deletionTimestamp"] = due.into();
            metadata["deletionGracePeriodSeconds"] = grace.into();
        }
        serde_json::from_value(
            json!({"metadata": metadata, "spec": {"restartPolicy": policy}, "status": status}),
        )
        .unwrap()
    }

    /// How a pod ended, long after.
    fn end(pod: &PodView) -> End {
        super::end(pod, Timestamp::MAX, &Config::default())
    }

    fn ended(phase: &str, code: i64, at: &str) -> Value {
        json!({"phase": phase, "containerStatuses": [{"name": "tensorflow", "state":
            {"terminated": {"exitCode": code, "reason": "Error", "finishedAt": at}}}]})
    }

    const NOON: &str = "2026-01-01T12:00:00Z";

    #[test]
    fn by_phase() {
        for phase in ["Pending", "Running", "Unknown"] {
            assert_eq!(end(&pod(&json!({"phase": phase}), None)), End::Live, "{phase}");
        }
        assert_eq!(end(&pod(&json!({"phase": "Succeeded"}), None)), End::Completed);
        assert!(matches!(end(&pod(&json!({"phase": "Failed"}), None)), End::Failed(_)));
    }

    #[test]
    fn the_training_container_decides_beside_a_sidecar() {
        let beside = |code: i64, policy: &str| {
            let status = json!({"phase": "Running", "containerStatuses": [
                {"name": "istio-proxy", "state": {"running": {}}},
                {"name": "tensorflow", "state": {"terminated": {"exitCode": code}}},
            ]});
            end(&pod_with(policy, &status, None))
        };
        assert_eq!(beside(0, "Never"), End::Completed);
        assert!(matches!(beside(7, "Never"), End::Failed(Cause { exit_code: Some(7), .. })));
        assert_eq!(beside(0, "OnFailure"), End::Completed);
        assert_eq!(beside(7, "OnFailure"), End::Live);
        assert_eq!(beside(0, "Always"), End::Live);
    }

    #[test]
    fn a_failed_sidecar_does_not_undo_success() {
        let status = json!({"phase": "Failed", "containerStatuses": [
            {"name": "tensorflow", "state": {"terminated": {"exitCode": 0}}},
            {"name": "proxy", "state": {"terminated": {"exitCode": 1}}},
        ]});
        assert_eq!(end(&pod(&status, None)), End::Completed);
    }

    #[test]
    fn a_deleted_pod_is_judged_only_if_it_had_ended_before() {
        // Asked for at 12:00:00, due at 12:00:30.
        let deleted = Some(("2026-01-01T12:00:30Z", 30));
        let early = ended("Failed", 1, "2026-01-01T11:59:50Z");
        let at_once = ended("Failed", 143, "2026-01-01T11:59:58Z");
        let late = ended("Failed", 143, "2026-01-01T12:00:02Z");
        let done = ended("Succeeded", 0, "2026-01-01T11:00:00Z");
        assert!(matches!(end(&pod(&early, deleted)), End::Failed(_)));
        assert_eq!(end(&pod(&late, deleted)), End::Leaving);
        assert_eq!(end(&pod(&at_once, deleted)), End::Leaving, "by the clock of its node");
        assert_eq!(end(&pod(&done, deleted)), End::Completed);
        assert_eq!(end(&pod(&json!({"phase": "Running"}), deleted)), End::Leaving);
    }

    #[test]
    fn a_pod_whose_kubelet_completes_the_deletion_is_not_judged() {
        // Stopped at 12:00:02; its kubelet deletes it a second later, without any grace.
        let completed = Some(("2026-01-01T12:00:03Z", 0));
        let stopped = ended("Failed", 143, "2026-01-01T12:00:02Z");
        assert_eq!(end(&pod(&stopped, completed)), End::Leaving);
    }

    #[test]
    fn eviction_is_a_disruption_without_an_exit_code() {
        let status = json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"});
        let End::Failed(cause) = end(&pod(&status, None)) else { unreachable!("failed") };
        assert!(cause.disrupted);
        assert_eq!(cause.exit_code, None);
        assert_eq!(cause.reason, "Evicted");
        let mut preempted = ended("Failed", 143, NOON);
        preempted["conditions"] = json!([{"type": "DisruptionTarget", "status": "True"}]);
        let End::Failed(cause) = end(&pod(&preempted, None)) else { unreachable!("failed") };
        assert!(cause.disrupted);
    }

    #[test]
    fn an_evicted_program_that_ends_politely_has_not_succeeded() {
        let mut evicted = ended("Failed", 0, NOON);
        evicted["reason"] = "Evicted".into();
        let End::Failed(cause) = end(&pod(&evicted, None)) else { unreachable!("failed") };
        assert!(cause.disrupted);
        let mut marked = ended("Running", 0, NOON);
        marked["conditions"] = json!([{"type": "DisruptionTarget", "status": "True"}]);
        assert_eq!(end(&pod(&marked, None)), End::Live, "before its kubelet has judged it");
    }

    #[test]
    fn what_its_kubelet_ended_for_its_own_limits_has_failed_without_an_exit_code() {
        let limits = [
            ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"),
            ("Evicted", "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\". "),
        ];
        for (reason, message) in limits {
            for code in [0, 1, 143] {
                let mut status = ended("Failed", code, NOON);
                status["reason"] = reason.into();
                status["message"] = message.into();
                let End::Failed(cause) = end(&pod(&status, None)) else {
                    unreachable!("{reason} {code}")
                };
                assert!(!cause.disrupted, "{reason}");
                assert_eq!((cause.exit_code, cause.container_code), (None, Some(code)), "{reason}");
                assert_eq!((&*cause.reason, &*cause.message), (reason, message));
            }
        }
    }

    #[test]
    fn a_pod_that_its_kubelet_does_not_let_in_is_disrupted() {
        let status = json!({"phase": "Failed", "reason": "OutOfcpu",
            "message": "Pod was rejected: Node didn't have enough resource: cpu"});
        let End::Failed(cause) = end(&pod(&status, None)) else { unreachable!("failed") };
        assert!(cause.disrupted);
        assert_eq!((cause.exit_code, &*cause.reason), (None, "OutOfcpu"));
    }

    #[test]
    fn who_ended_a_program_is_judged_by_the_final_phase_or_after_a_while() {
        let at =
            |second: i64| NOON.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(second);
        let judged = |status: &Value, second: i64| {
            super::end(&pod(status, None), at(second), &Config::default())
        };
        let (open, failed) = (ended("Running", 143, NOON), ended("Failed", 143, NOON));
        assert_eq!(judged(&open, 1), End::Ending(at(5)));
        assert_eq!(judged(&open, 4), End::Ending(at(5)));
        assert!(matches!(judged(&open, 5), End::Failed(Cause { disrupted: false, .. })));
        assert!(matches!(judged(&failed, 1), End::Failed(Cause { disrupted: false, .. })));
        let mut evicted = failed;
        evicted["reason"] = "Evicted".into();
        assert!(matches!(judged(&evicted, 1), End::Failed(Cause { disrupted: true, .. })));
    }

    #[test]
    fn success_of_all_containers_is_judged_at_once_that_of_some_is_not() {
        let beside = |proxy: Value| {
            let mut status = ended("Running", 0, NOON);
            let proxy = json!({"name": "proxy", "state": proxy});
            status["containerStatuses"].as_array_mut().unwrap().push(proxy);
            super::end(&pod(&status, None), NOON.parse().unwrap(), &Config::default())
        };
        assert_eq!(beside(json!({"terminated": {"exitCode": 0}})), End::Completed);
        assert!(matches!(beside(json!({"terminated": {"exitCode": 137}})), End::Ending(_)));
        assert!(matches!(beside(json!({"running": {}})), End::Ending(_)));
    }

    #[test]
    fn a_sidecar_that_is_stopped_after_the_training_does_not_undo_its_success() {
        for published in ["Running", "Succeeded", "Failed"] {
            let mut status = ended(published, 0, NOON);
            status["initContainerStatuses"] =
                json!([{"name": "proxy", "state": {"terminated": {"exitCode": 137}}}]);
            let pod: PodView =
                serde_json::from_value(json!({"metadata": {"name": "p", "uid": "u"},
                "spec": {"restartPolicy": "Never",
                    "initContainers": [{"name": "proxy", "restartPolicy": "Always"}]},
                "status": status}))
                .unwrap();
            assert_eq!(end(&pod), End::Completed, "{published}");
        }
    }

    #[test]
    fn a_failed_init_container_is_named() {
        let status = json!({"phase": "Failed",
            "initContainerStatuses": [{"name": "fetch", "state":
                {"terminated": {"exitCode": 3, "reason": "Error", "message": "no such bucket"}}}],
            "containerStatuses": [{"name": "tensorflow", "state": {"waiting": {"reason": "PodInitializing"}}}],
        });
        let End::Failed(cause) = end(&pod(&status, None)) else { unreachable!("failed") };
        assert_eq!((cause.container.as_str(), cause.container_code), ("fetch", Some(3)));
        assert_eq!(cause.exit_code, None);
        assert_eq!(cause.message, "no such bucket");
    }
}
