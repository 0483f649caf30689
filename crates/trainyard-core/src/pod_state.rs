//! How a pod is, in one word, for whoever tells people of it.
//!
//! Puts together what is judged elsewhere: the phase, a node that is lost, a deletion, a kubelet that waits before
//! it starts a container again. Must not know jobs.

use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    end::Decisive,
    phase::Phase,
    view::{ContainerState, ContainerView, PodView},
};

/// The reason of a container that waits for its next attempt.
pub(crate) const CRASH_LOOP: &str = "CrashLoopBackOff";

/// How a pod is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodState {
    /// Not all its containers have started.
    Waiting,
    /// It runs.
    Running,
    /// It is being deleted, and has not ended.
    Leaving,
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
            _ if self.deletion.is_some() => PodState::Leaving,
            Phase::Running if self.is_in_crash_loop(Decisive::All) => PodState::Restarting,
            Phase::Running => PodState::Running,
            Phase::Pending => PodState::Waiting,
        }
    }

    /// The words of its kubelet while that waits before it starts a container once more; none where none waits.
    #[must_use]
    pub fn back_off(&self) -> Option<&str> {
        self.containers.iter().find_map(back_off)
    }

    /// Returns true while its kubelet waits before it starts a container once more, one of those that are asked for.
    #[must_use]
    pub(crate) fn is_in_crash_loop(&self, whose: Decisive) -> bool {
        let held_back = match whose {
            Decisive::Training => self.main_container().and_then(back_off),
            Decisive::All => self.back_off(),
        };
        held_back.is_some()
    }
}

fn back_off(container: &ContainerView) -> Option<&str> {
    match &container.state {
        ContainerState::Waiting { reason, message } if &**reason == CRASH_LOOP => Some(message),
        _ => None,
    }
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
    fn a_pod_that_is_deleted_is_leaving_until_it_has_ended_or_nobody_knows() {
        let leaving = |status: &Value| {
            let meta = json!({"name": "p", "deletionTimestamp": "2026-01-01T00:00:30Z"});
            PodView::of_json(&json!({"metadata": meta, "status": status})).unwrap().state()
        };
        let waits = json!([{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
        for status in [
            json!({"phase": "Pending"}),
            json!({"phase": "Running"}),
            json!({"phase": "Running", "containerStatuses": waits}),
        ] {
            assert_eq!(leaving(&status), PodState::Leaving, "{status}");
        }
        assert!(!PodState::Leaving.is_over());
        assert_eq!(leaving(&json!({"phase": "Succeeded"})), PodState::Succeeded);
        assert_eq!(leaving(&json!({"phase": "Failed"})), PodState::Failed);
        assert_eq!(leaving(&json!({"phase": "Unknown"})), PodState::Lost);
    }

    #[test]
    fn whose_crash_loop_is_meant_is_said_by_who_asks() {
        let waits = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let pod = |main: &Value, beside: &Value| {
            let all =
                json!([{"name": "tensorflow", "state": main}, {"name": "proxy", "state": beside}]);
            let status = json!({"phase": "Running", "containerStatuses": all});
            let pod = json!({"metadata": {"name": "p"}, "status": status});
            let pod = PodView::of_json(&pod).unwrap();
            (pod.is_in_crash_loop(Decisive::Training), pod.is_in_crash_loop(Decisive::All))
        };
        let runs = json!({"running": {}});
        assert_eq!(pod(&runs, &runs), (false, false));
        assert_eq!(pod(&runs, &waits), (false, true), "the training goes on");
        assert_eq!(pod(&waits, &runs), (true, true));
    }

    #[test]
    fn what_is_no_pod_is_none() {
        assert_eq!(PodView::of_json(&json!("pod")), None);
    }
}
