//! What is deleted when a job has ended, and what is kept for its logs.
//!
//! Services and the PodGroup always go: nobody is left to be found or to start. TensorBoard stays until the job itself goes.
//! Must not touch anything that has no place in the job.

use jiff::Timestamp;
use trainyard_api::{CleanPodPolicy, FailureKind};

use super::{
    Observed, gang,
    removal::{pod_removal, service_removal},
};
use crate::{
    config::Config,
    plan::{Plan, Stage},
    view::{PodView, Role},
};

/// Whether an ended job's pod is to be deleted.
#[must_use]
pub(super) fn is_doomed(
    pod: &PodView,
    policy: CleanPodPolicy,
    failure: Option<FailureKind>,
) -> bool {
    let finished = pod.phase.is_finished();
    let stopped = failure.is_some_and(FailureKind::stops_everything);
    matches!(pod.role, Role::Replica(_))
        && match policy {
            CleanPodPolicy::All => true,
            CleanPodPolicy::Running => !finished,
            CleanPodPolicy::None => stopped && !finished,
        }
}

/// Adds the deletions that are still due for an ended job.
pub(super) fn clean(
    plan: &mut Plan,
    seen: &Observed<'_>,
    policy: CleanPodPolicy,
    failure: Option<FailureKind>,
    now: Timestamp,
    config: &Config,
) {
    let mut stage = Stage::default();
    for pod in seen.pods.iter().filter(|pod| is_doomed(pod, policy, failure)) {
        stage.writes.extend(pod_removal(pod, now, config, plan));
    }
    let services = seen.services.iter();
    for service in services.filter(|service| matches!(service.role, Role::Replica(_))) {
        stage.writes.extend(service_removal(service));
    }
    plan.push(stage);
    gang::dissolve(plan, seen, config);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(phase: &str, kind: &str) -> PodView {
        serde_json::from_value(json!({
            "metadata": {"name": format!("j-{kind}-0"), "uid": "u", "labels": {
                "training.kubeflow.org/replica-type": kind,
                "training.kubeflow.org/replica-index": "0",
            }},
            "status": {"phase": phase},
        }))
        .unwrap()
    }

    #[test]
    fn by_policy() {
        use CleanPodPolicy::{All, None as Keep, Running};
        let phases = ["Pending", "Running", "Succeeded", "Failed"];
        let doomed = |policy, failure| {
            phases
                .into_iter()
                .filter(|phase| is_doomed(&pod(phase, "worker"), policy, failure))
                .collect::<Vec<_>>()
        };
        assert_eq!(doomed(Running, None), ["Pending", "Running"]);
        assert_eq!(doomed(All, None), phases);
        assert_eq!(doomed(Keep, None), [""; 0]);
        let replica = Some(FailureKind::ReplicaFailed);
        assert_eq!(doomed(Keep, replica), [""; 0]);
        for limit in [
            FailureKind::DeadlineExceeded,
            FailureKind::BackoffLimitExceeded,
            FailureKind::StartTimeout,
        ] {
            assert_eq!(doomed(Keep, Some(limit)), ["Pending", "Running"]);
            assert_eq!(doomed(Running, Some(limit)), ["Pending", "Running"]);
            assert_eq!(doomed(All, Some(limit)), phases);
        }
    }

    #[test]
    fn tensorboard_and_strangers_stay() {
        for kind in ["tensorboard", "gardener"] {
            assert!(!is_doomed(&pod("Running", kind), CleanPodPolicy::All, None), "{kind}");
        }
    }
}
