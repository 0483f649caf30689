//! What is said about a pod that failed: which container, how, and its last words.
//!
//! Must not decide what a failure leads to.

use trainyard_api::{Failure, FailureKind};

use super::{
    draft::Draft,
    events::{is_condemned, members},
};
use crate::{
    end::{Decisive, culprit},
    phase::Phase,
    tfjob::{
        exit_code::signal_name,
        failure::{LAST_WORDS_MAX, sentence, tail},
    },
    view::{ContainerState, PodView},
};

/// No container of a Volcano Job is more than another.
pub(super) const WHOSE: Decisive = Decisive::All;

/// How a pod failed.
#[must_use]
pub(super) fn of(pod: &PodView) -> Failure {
    let mut failure = Failure {
        kind: FailureKind::ReplicaFailed,
        pod: pod.name.to_string(),
        reason: pod.reason.to_string(),
        message: pod.message.to_string(),
        ..Failure::default()
    };
    if let Some(container) = culprit(pod, WHOSE)
        && let ContainerState::Terminated { exit_code, reason, message, .. } = &container.state
    {
        failure.container = container.name.to_string();
        failure.exit_code = Some(*exit_code);
        signal_name(*exit_code).unwrap_or_default().clone_into(&mut failure.signal);
        if failure.reason.is_empty() {
            failure.reason = reason.to_string();
        }
        if failure.message.is_empty() {
            tail(message.trim_end(), LAST_WORDS_MAX).clone_into(&mut failure.message);
        }
    }
    failure
}

/// The same in a sentence.
#[must_use]
pub(super) fn words(pod: &PodView) -> String {
    sentence(&of(pod))
}

/// A sentence on the first pod that failed; empty when none did.
#[must_use]
pub(super) fn first(draft: &Draft<'_>) -> String {
    members(draft)
        .find(|(pod, _)| pod.phase == Phase::Failed && !is_condemned(draft, pod))
        .map(|(pod, _)| words(pod))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_ordinary_container_that_ended_badly_tells() {
        let ended = |name: &str, code: i64| {
            json!({"name": name, "state": {"terminated":
                {"exitCode": code, "reason": "Error", "message": format!("{name} says so\n")}}})
        };
        let pod: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "uid": "u"},
            "status": {"phase": "Failed", "initContainerStatuses": [ended("init", 1)],
                "containerStatuses": [ended("a", 0), ended("b", 137)]},
        }))
        .unwrap();
        assert_eq!(of(&pod).exit_code, Some(137));
        assert_eq!(
            words(&pod),
            "Pod p, container b exited with code 137 (SIGKILL, Error). Last words: b says so"
        );
        let pod: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p"}, "status": {"phase": "Failed", "reason": "Evicted"},
        }))
        .unwrap();
        assert_eq!((of(&pod).exit_code, words(&pod).as_str()), (None, "Pod p failed (Evicted)."));
    }
    #[test]
    fn a_sidecar_that_was_stopped_at_the_end_tells_nothing() {
        let pod: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]},
            "status": {"phase": "Failed", "reason": "DeadlineExceeded",
                "initContainerStatuses":
                    [{"name": "proxy", "state": {"terminated": {"exitCode": 143}}}],
                "containerStatuses": [{"name": "a", "state": {"terminated": {"exitCode": 0}}}]},
        }))
        .unwrap();
        assert_eq!((of(&pod).exit_code, &*of(&pod).reason), (None, "DeadlineExceeded"));
    }
}
