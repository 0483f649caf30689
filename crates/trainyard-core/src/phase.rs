//! The phase of a pod, judged once for every rule.
//!
//! A kubelet publishes the end of a pod in two steps: first the phase `Running` with every
//! container terminated, then, when the sandbox is gone, `Succeeded` or `Failed`. A rule that
//! reads the published phase in between takes a finished pod for a running one and deletes it
//! together with its logs. The phase is therefore computed from the published one, the containers
//! and the restart policy, as the kubelet will publish it. Must not know jobs.

use serde::Deserialize;

use crate::{end::exit_code, view::ContainerView};

/// Phase of a pod.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Phase {
    /// Not all containers have started.
    #[default]
    Pending,
    /// At least one container runs, or will be started again.
    Running,
    /// All containers have terminated with exit code 0 and stay so.
    Succeeded,
    /// All containers have terminated, one of them with another exit code, and stay so.
    Failed,
    /// The node cannot be reached.
    #[serde(other)]
    Unknown,
}

impl Phase {
    /// Whether no container of the pod runs or will run again.
    #[must_use]
    pub const fn is_finished(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// When the kubelet starts a terminated container again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum InPlaceRestart {
    /// After any end.
    #[default]
    Always,
    /// After an exit code other than 0.
    OnFailure,
    /// Not at all.
    Never,
    /// By rules of its pod's containers about exit codes; only the kubelet knows.
    ByRules,
}

impl InPlaceRestart {
    /// Whether a container that terminated with this exit code certainly stays terminated.
    #[must_use]
    pub const fn is_final(self, exit_code: i64) -> bool {
        match self {
            Self::Always | Self::ByRules => false,
            Self::OnFailure => exit_code == 0,
            Self::Never => true,
        }
    }
}

/// The phase that the kubelet publishes for these containers once it has cleaned up after them.
///
/// Of a pod that the cluster ends only the published phase counts: the kubelet writes `Failed` for one that it
/// evicts, with whatever exit code the program answers the signal. Sidecars among the init containers do not
/// count: they are started again as long as the others run, and stopped after them.
#[must_use]
pub(crate) fn phase(
    published: Phase,
    is_disrupted: bool,
    init_containers: &[ContainerView],
    containers: &[ContainerView],
) -> Phase {
    if is_disrupted || !matches!(published, Phase::Pending | Phase::Running) {
        return published;
    }
    let init_failed = |container: &ContainerView| {
        let is_bad = exit_code(container).is_some_and(|code| code != 0);
        is_bad && container.restart == InPlaceRestart::Never
    };
    if published == Phase::Pending && init_containers.iter().any(init_failed) {
        return Phase::Failed;
    }
    let final_code = |container: &ContainerView| {
        exit_code(container).filter(|code| container.restart.is_final(*code))
    };
    match containers.iter().map(final_code).collect::<Option<Vec<i64>>>().as_deref() {
        None | Some([]) => published,
        Some(codes) if codes.iter().all(|code| *code == 0) => Phase::Succeeded,
        Some(_) => Phase::Failed,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::view::PodView;

    fn ended(name: &str, code: i64) -> Value {
        json!({"name": name, "state": {"terminated": {"exitCode": code}}})
    }

    fn runs(name: &str) -> Value {
        json!({"name": name, "state": {"running": {}}})
    }

    fn judged(published: &str, policy: &str, containers: &[Value]) -> Phase {
        let pod: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"restartPolicy": policy},
            "status": {"phase": published, "containerStatuses": containers},
        }))
        .unwrap();
        pod.phase
    }

    #[test]
    fn a_pod_whose_containers_have_all_terminated_is_finished_before_its_phase_says_so() {
        let cases = [
            ("Never", 0, Phase::Succeeded),
            ("Never", 1, Phase::Failed),
            ("OnFailure", 0, Phase::Succeeded),
            ("OnFailure", 1, Phase::Running),
            ("Always", 0, Phase::Running),
            ("Always", 1, Phase::Running),
            ("", 0, Phase::Running),
        ];
        for (policy, code, wanted) in cases {
            let phase = judged("Running", policy, &[ended("tensorflow", code)]);
            assert_eq!(phase, wanted, "{policy:?}, exit code {code}");
        }
    }

    #[test]
    fn a_pod_that_the_cluster_ends_is_finished_when_its_kubelet_says_so() {
        let published = |phase: &str| {
            let pod: PodView = serde_json::from_value(json!({
                "metadata": {"name": "p", "uid": "u"},
                "spec": {"restartPolicy": "Never"},
                "status": {"phase": phase, "containerStatuses": [ended("tensorflow", 0)],
                    "conditions": [{"type": "DisruptionTarget", "status": "True"}]},
            }))
            .unwrap();
            pod.phase
        };
        assert_eq!(published("Running"), Phase::Running);
        assert_eq!(published("Failed"), Phase::Failed);
        assert_eq!(published("Succeeded"), Phase::Succeeded);
    }

    #[test]
    fn one_failed_container_fails_a_finished_pod() {
        let both = [ended("tensorflow", 0), ended("proxy", 1)];
        assert_eq!(judged("Running", "Never", &both), Phase::Failed);
        assert_eq!(judged("Running", "OnFailure", &both), Phase::Running);
    }

    #[test]
    fn a_container_that_runs_keeps_the_pod_running() {
        for code in [0, 1] {
            let one = [ended("tensorflow", code), runs("proxy")];
            assert_eq!(judged("Running", "Never", &one), Phase::Running);
        }
    }

    #[test]
    fn a_final_phase_is_taken_as_it_is_published() {
        for (published, wanted) in [
            ("Succeeded", Phase::Succeeded),
            ("Failed", Phase::Failed),
            ("Unknown", Phase::Unknown),
        ] {
            assert_eq!(judged(published, "Always", &[runs("tensorflow")]), wanted);
        }
        assert_eq!(judged("Pending", "Never", &[]), Phase::Pending);
        assert_eq!(judged("Running", "Never", &[]), Phase::Running);
    }

    #[test]
    fn rules_of_single_containers_are_left_to_the_kubelet() {
        let pod: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"restartPolicy": "Never", "containers": [
                {"name": "tensorflow", "restartPolicy": "Never",
                 "restartPolicyRules": [{"action": "Restart"}]},
            ]},
            "status": {"phase": "Running", "containerStatuses": [ended("tensorflow", 42)]},
        }))
        .unwrap();
        assert_eq!(pod.phase, Phase::Running);
    }

    #[test]
    fn a_failed_init_container_fails_a_pod_that_is_never_restarted() {
        let init = |policy: &str| -> Phase {
            let pod: PodView = serde_json::from_value(json!({
                "metadata": {"name": "p", "uid": "u"},
                "spec": {"restartPolicy": policy},
                "status": {"phase": "Pending", "initContainerStatuses": [ended("fetch", 3)],
                    "containerStatuses": [{"name": "tensorflow", "state": {"waiting": {}}}]},
            }))
            .unwrap();
            pod.phase
        };
        assert_eq!(init("Never"), Phase::Failed);
        assert_eq!(init("OnFailure"), Phase::Pending);
        assert_eq!(init("Always"), Phase::Pending);
    }

    /// A pod with a sidecar beside the container that trains, both in these states.
    fn beside_a_sidecar(published: &str, policy: &str, sidecar: &Value, main: &Value) -> Phase {
        let pod: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"restartPolicy": policy, "containers": [{"name": "tensorflow"}],
                "initContainers": [{"name": "proxy", "restartPolicy": "Always"}]},
            "status": {"phase": published, "initContainerStatuses": [sidecar],
                "containerStatuses": [main]},
        }))
        .unwrap();
        pod.phase
    }

    #[test]
    fn a_sidecar_that_ends_is_started_again_and_fails_no_pod() {
        let waits = json!({"name": "tensorflow", "state": {"waiting": {}}});
        for policy in ["Never", "OnFailure", "Always"] {
            for code in [0, 1, 137] {
                let ended = ended("proxy", code);
                let phase = |published, main| beside_a_sidecar(published, policy, &ended, main);
                assert_eq!(phase("Pending", &waits), Phase::Pending, "{policy} {code}");
                assert_eq!(
                    phase("Running", &runs("tensorflow")),
                    Phase::Running,
                    "{policy} {code}"
                );
            }
        }
    }

    #[test]
    fn a_sidecar_that_is_stopped_at_the_end_changes_nothing_about_it() {
        for sidecar in [runs("proxy"), ended("proxy", 0), ended("proxy", 143), ended("proxy", 137)]
        {
            let phase =
                |code| beside_a_sidecar("Running", "Never", &sidecar, &ended("tensorflow", code));
            assert_eq!(phase(0), Phase::Succeeded, "{sidecar}");
            assert_eq!(phase(1), Phase::Failed, "{sidecar}");
        }
    }

    #[test]
    fn the_restart_policy_of_a_container_goes_before_that_of_its_pod() {
        let phase = |pod: &str, own: &str, code: i64| {
            let pod: PodView = serde_json::from_value(json!({
                "metadata": {"name": "p", "uid": "u"},
                "spec": {"restartPolicy": pod,
                    "containers": [{"name": "tensorflow", "restartPolicy": own}]},
                "status": {"phase": "Running", "containerStatuses": [ended("tensorflow", code)]},
            }))
            .unwrap();
            pod.phase
        };
        assert_eq!(phase("Never", "Always", 1), Phase::Running);
        assert_eq!(phase("Never", "OnFailure", 1), Phase::Running);
        assert_eq!(phase("Never", "OnFailure", 0), Phase::Succeeded);
        assert_eq!(phase("Always", "Never", 1), Phase::Failed);
    }

    #[test]
    fn a_rule_of_one_container_may_start_another_again() {
        let pod: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"restartPolicy": "Never",
                "initContainers": [{"name": "fetch", "restartPolicy": "Never",
                    "restartPolicyRules": [{"action": "RestartAllContainers"}]}],
                "containers": [{"name": "tensorflow"}]},
            "status": {"phase": "Pending", "initContainerStatuses": [ended("fetch", 3)],
                "containerStatuses": [{"name": "tensorflow", "state": {"waiting": {}}}]},
        }))
        .unwrap();
        assert_eq!(pod.phase, Phase::Pending);
    }

    #[test]
    fn lists_that_are_null_are_empty() {
        let pod: PodView = serde_json::from_value(json!({
            "metadata": {"name": "p", "uid": "u"},
            "spec": {"restartPolicy": "Never", "initContainers": null, "containers": [
                {"name": "tensorflow", "restartPolicy": null, "restartPolicyRules": null}]},
            "status": {"phase": "Running", "containerStatuses": [ended("tensorflow", 0)]},
        }))
        .unwrap();
        assert_eq!(pod.phase, Phase::Succeeded);
    }
}
