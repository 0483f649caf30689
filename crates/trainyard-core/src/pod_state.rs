//! How a pod is, in one word, for whoever tells people of it.
//!
//! Puts together what is judged elsewhere: the phase, a node that is lost, a kubelet that waits before it
//! starts a container again. Must not know jobs.

use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    phase::Phase,
    view::{ContainerState, ContainerView, PodView},
};

/// How a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodState {
    /// Not all its containers have started.
    Waiting,
    /// It runs.
    Running,
    /// One of its containers ends again and again, and its kubelet waits before it starts it once more.
    Restarting,
    /// Nobody knows, for its node cannot be reached.
    Lost,
    /// It has ended well.
    Succeeded,
    /// It has ended otherwise.
    Failed,
}

impl PodState {
    /// Whether no container of the pod runs or will run again.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

impl PodView {
    /// A pod of the API; none for what is no pod.
    #[must_use]
    pub fn of_json(pod: &Value) -> Option<Self> {
        Self::deserialize(pod).ok()
    }

    /// How it is.
    #[must_use]
    pub fn state(&self) -> PodState {
        match self.phase {
            Phase::Succeeded => PodState::Succeeded,
            Phase::Failed => PodState::Failed,
            _ if self.unreachable.is_some() => PodState::Lost,
            Phase::Unknown => PodState::Lost,
            Phase::Running if self.containers.iter().any(backs_off) => PodState::Restarting,
            Phase::Running => PodState::Running,
            Phase::Pending => PodState::Waiting,
        }
    }
}

fn backs_off(container: &ContainerView) -> bool {
    matches!(&container.state, ContainerState::Waiting { reason, .. } if &**reason == "CrashLoopBackOff")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn state(status: &Value) -> PodState {
        let spec = json!({"restartPolicy": "OnFailure", "containers": [{"name": "main"}]});
        let pod = json!({"metadata": {"name": "p"}, "spec": spec, "status": status});
        PodView::of_json(&pod).unwrap().state()
    }

    fn with(phase: &str, container: &Value) -> PodState {
        state(&json!({"phase": phase, "containerStatuses": [{"name": "main", "state": container}]}))
    }

    #[test]
    fn a_pod_is_what_its_phase_and_its_containers_make_it() {
        let runs = json!({"running": {}});
        assert_eq!(with("Pending", &json!({"waiting": {}})), PodState::Waiting);
        assert_eq!(with("Running", &runs), PodState::Running);
        assert_eq!(with("Running", &json!({"terminated": {"exitCode": 0}})), PodState::Succeeded);
        assert_eq!(with("Running", &json!({"terminated": {"exitCode": 1}})), PodState::Running);
        assert_eq!(with("Failed", &runs), PodState::Failed);
        assert!(PodState::Failed.is_over() && PodState::Succeeded.is_over());
    }

    #[test]
    fn any_container_that_is_held_back_makes_its_pod_one_that_restarts() {
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        assert_eq!(with("Running", &waits), PodState::Restarting);
        assert_eq!(with("Failed", &waits), PodState::Failed);
        assert!(!PodState::Restarting.is_over());
    }

    #[test]
    fn a_pod_of_a_lost_node_is_lost_until_it_is_known_to_have_ended() {
        let away = json!([{"type": "Ready", "status": "False"}, {"type": "ContainersReady", "status": "True"}]);
        assert_eq!(state(&json!({"phase": "Running", "conditions": away})), PodState::Lost);
        assert_eq!(state(&json!({"phase": "Unknown"})), PodState::Lost);
        assert_eq!(state(&json!({"phase": "Succeeded", "conditions": away})), PodState::Succeeded);
    }

    #[test]
    fn what_is_no_pod_is_none() {
        assert_eq!(PodView::of_json(&json!("pod")), None);
    }
}
