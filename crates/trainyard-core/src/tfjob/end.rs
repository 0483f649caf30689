//! How a pod ended, if it did.
//!
//! Judges by the container that trains, not by the pod's phase alone: a sidecar that never stops
//! does not keep a job alive. A pod that somebody deletes is not judged at all unless it had ended
//! before. Must not know policies.

use jiff::{SignedDuration, Timestamp};

use crate::{
    phase::Phase,
    view::{ContainerState, ContainerView, PodView},
};

/// By how much the clock of a node may be behind that of the API server.
const SKEW: SignedDuration = SignedDuration::from_secs(5);

/// How a pod ended.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum End {
    /// It has not.
    Live,
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
    /// Exit code of the container that trains.
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
pub(super) fn end(pod: &PodView) -> End {
    if let Some(deletion) = pod.deletion {
        let ended_before = finished_at(pod)
            .zip(deletion.asked_at())
            .is_some_and(|(finished_at, asked_at)| asked_at.duration_since(finished_at) > SKEW);
        if !ended_before {
            return End::Leaving;
        }
    }
    let main = pod.main_container().map(|container| &container.state);
    // A program may well answer a signal by exit code 0. That of the cluster is no success.
    let is_stopped = pod.disrupted || is_disruption(&pod.reason);
    match (pod.phase, main) {
        (Phase::Succeeded, _) => End::Completed,
        (Phase::Failed, Some(ContainerState::Terminated { exit_code: 0, .. })) if !is_stopped => {
            End::Completed
        }
        (Phase::Failed, _) => End::Failed(cause(pod)),
        (Phase::Running, Some(ContainerState::Terminated { exit_code, .. }))
            if !pod.disrupted && pod.restart.is_final(*exit_code) =>
        {
            if *exit_code == 0 {
                End::Completed
            } else {
                End::Failed(cause(pod))
            }
        }
        _ => End::Live,
    }
}

fn cause(pod: &PodView) -> Cause {
    let main = pod.main_container().filter(|container| code(container).is_some());
    let guilty = main.or_else(|| {
        let all = pod.init_containers.iter().chain(&pod.containers);
        all.clone()
            .find(|container| code(container).is_some_and(|code| code != 0))
            .or_else(|| all.clone().find(|container| code(container).is_some()))
    });
    let mut cause = Cause {
        disrupted: pod.disrupted || (is_disruption(&pod.reason) && !is_over_its_limit(pod)),
        exit_code: pod.main_container().and_then(code),
        reason: pod.reason.to_string(),
        message: pod.message.to_string(),
        ..Cause::default()
    };
    if let Some(container) = guilty {
        cause.container = container.name.to_string();
        cause.container_code = code(container);
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

/// Words with which the kubelet or the control plane says that it ended a pod for its own reasons.
fn is_disruption(reason: &str) -> bool {
    matches!(
        reason,
        "Evicted" | "Preempting" | "NodeLost" | "NodeShutdown" | "Shutdown" | "Terminated"
    )
}

/// Returns true if the kubelet evicted a pod for using more local storage than it had asked for. It sets no
/// `DisruptionTarget` then, and only its message tells this from a node that is short of something.
fn is_over_its_limit(pod: &PodView) -> bool {
    &*pod.reason == "Evicted"
        && ["exceeds the limit", "exceeds the total limit", "exceeded its local ephemeral storage"]
            .iter()
            .any(|words| pod.message.contains(words))
}

fn code(container: &ContainerView) -> Option<i64> {
    match container.state {
        ContainerState::Terminated { exit_code, .. } => Some(exit_code),
        _ => None,
    }
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
    use crate::phase::InPlaceRestart;

    fn pod(status: &Value, deleted: Option<(&str, i64)>) -> PodView {
        let mut metadata = json!({"name": "j-worker-0", "uid": "u"});
        if let Some((due, grace)) = deleted {
            metadata["deletionTimestamp"] = due.into();
            metadata["deletionGracePeriodSeconds"] = grace.into();
        }
        serde_json::from_value(
            json!({"metadata": metadata, "spec": {"restartPolicy": "Never"}, "status": status}),
        )
        .unwrap()
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
            let mut pod = pod(&status, None);
            pod.restart = match policy {
                "Never" => InPlaceRestart::Never,
                "OnFailure" => InPlaceRestart::OnFailure,
                _ => InPlaceRestart::Always,
            };
            end(&pod)
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

    /// The messages are those of the kubelet's eviction manager.
    #[test]
    fn a_pod_evicted_for_its_own_use_of_storage_has_failed() {
        for (message, disrupted) in [
            ("The node was low on resource: memory. ", true),
            ("Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\". ", false),
            (
                "Pod ephemeral local storage usage exceeds the total limit of containers 2Gi. ",
                false,
            ),
            ("Container tensorflow exceeded its local ephemeral storage limit \"1Gi\". ", false),
        ] {
            let status = json!({"phase": "Failed", "reason": "Evicted", "message": message});
            let End::Failed(cause) = end(&pod(&status, None)) else { unreachable!("failed") };
            assert_eq!(cause.disrupted, disrupted, "{message}");
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
