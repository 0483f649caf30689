//! The phase of a pod, from what its containers do.

use super::{ContainerRecord, PodRecord, State, restarts};

/// A pod's phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    /// As in a status.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Running => "Running",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// No container will run again.
    pub(crate) const fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed)
    }
}

/// The phase of a pod with this restart policy.
pub(crate) fn phase(record: &PodRecord, policy: &str) -> Phase {
    if record.verdict.is_some() && !any_running(record) {
        return Phase::Failed;
    }
    if let Some(phase) = initialising(record, policy) {
        return phase;
    }
    let never_ran = |container: &ContainerRecord| {
        matches!(container.state, State::Waiting { .. }) && container.last.is_none()
    };
    if record.containers.iter().any(never_ran) {
        return if record.ending && !any_running(record) { Phase::Failed } else { Phase::Pending };
    }
    if any_running(record) {
        return Phase::Running;
    }
    let ended = || record.containers.iter().filter_map(ContainerRecord::last_run);
    if ended().any(|run| restarts(policy, run.exit_code)) && !record.ending {
        return Phase::Running;
    }
    if ended().all(|run| run.exit_code == 0) { Phase::Succeeded } else { Phase::Failed }
}

fn any_running(record: &PodRecord) -> bool {
    record.init.iter().chain(&record.containers).any(|c| matches!(c.state, State::Running(_)))
}

/// The phase while init containers are not all done; init containers of a pod that restarts always
/// are still run once only, when they succeed.
fn initialising(record: &PodRecord, policy: &str) -> Option<Phase> {
    for container in &record.init {
        match container.last_run() {
            Some(run) if run.exit_code == 0 => {}
            Some(_) if policy == "Never" || record.ending => return Some(Phase::Failed),
            None if record.ending && !any_running(record) => return Some(Phase::Failed),
            _ => return Some(Phase::Pending),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::status::{Terminated, Verdict};

    fn waiting() -> State {
        State::Waiting { reason: String::new(), message: String::new() }
    }

    fn exited(exit_code: i32) -> State {
        State::Terminated(Terminated {
            exit_code,
            signal: None,
            reason: String::new(),
            message: String::new(),
            started: None,
            finished: Timestamp::UNIX_EPOCH,
            id: String::new(),
        })
    }

    fn running() -> State {
        State::Running(Timestamp::UNIX_EPOCH)
    }

    fn container(state: State) -> ContainerRecord {
        ContainerRecord {
            name: "c".into(),
            image: String::new(),
            image_id: String::new(),
            id: String::new(),
            state,
            last: None,
            restarts: 0,
            ready: false,
            started: false,
        }
    }

    fn record(init: Vec<State>, containers: Vec<State>) -> PodRecord {
        PodRecord {
            init: init.into_iter().map(container).collect(),
            containers: containers.into_iter().map(container).collect(),
            ..PodRecord::default()
        }
    }

    #[test]
    fn phases_follow_the_containers() {
        use Phase::{Failed, Pending, Running, Succeeded};
        let rows = [
            (vec![], vec![waiting()], "Never", Pending),
            (vec![], vec![running()], "Never", Running),
            (vec![], vec![running(), waiting()], "Never", Pending),
            (vec![], vec![running(), exited(1)], "Never", Running),
            (vec![], vec![exited(0)], "Never", Succeeded),
            (vec![], vec![exited(0), exited(2)], "Never", Failed),
            (vec![], vec![exited(0)], "OnFailure", Succeeded),
            (vec![], vec![exited(1)], "OnFailure", Running),
            (vec![], vec![exited(0)], "Always", Running),
            (vec![running()], vec![waiting()], "Never", Pending),
            (vec![exited(1)], vec![waiting()], "Never", Failed),
            (vec![exited(1)], vec![waiting()], "OnFailure", Pending),
            (vec![exited(0)], vec![running()], "Always", Running),
        ];
        for (init, containers, policy, expected) in rows {
            let record = record(init, containers);
            assert_eq!(phase(&record, policy), expected, "{policy} {record:?}");
        }
    }

    #[test]
    fn a_pod_that_is_being_ended_does_not_wait_for_a_restart() {
        for (state, policy, expected) in [
            (exited(143), "Always", Phase::Failed),
            (exited(0), "Always", Phase::Succeeded),
            (waiting(), "Never", Phase::Failed),
        ] {
            let mut record = record(vec![], vec![state]);
            record.ending = true;
            assert_eq!(phase(&record, policy), expected);
        }
    }

    #[test]
    fn a_verdict_holds_once_nothing_runs() {
        let mut record = record(vec![], vec![running()]);
        record.verdict =
            Some(Verdict { reason: "R".into(), message: String::new(), disruption: false });
        assert_eq!(phase(&record, "Always"), Phase::Running);
        record.containers[0].state = exited(0);
        assert_eq!(phase(&record, "Always"), Phase::Failed);
    }

    #[test]
    fn a_crash_loop_is_running() {
        let mut record = record(vec![], vec![exited(1)]);
        record.containers[0].move_to(waiting());
        assert_eq!(phase(&record, "OnFailure"), Phase::Running);
    }
}
