//! The state machine: what an action does in a phase, and which phase the counts lead to.
//!
//! Must not know pods, nor how anything is ended.

use trainyard_api::volcano::{Action, JobPhase, JobSpec, VolcanoStatus};

use super::{draft::Draft, failure};

/// Which pods outlive a kill of the whole job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retain {
    /// None.
    Nothing,
    /// Those that have ended, for their logs.
    Ended,
}

/// What an action does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Nothing,
    /// Ends all pods.
    Kill {
        /// But those.
        retain: Retain,
        /// And enters this phase.
        to: JobPhase,
        /// Whether it is one more restart.
        is_retry: bool,
    },
    /// Ends the pods it is about, and enters `Restarting`.
    KillTarget {
        /// Whether it is one more restart.
        is_retry: bool,
    },
}

/// What an action does in a phase. A job that is being restarted can be stopped like one that runs.
#[must_use]
pub(super) fn effect(phase: JobPhase, action: Action) -> Effect {
    use JobPhase::{Aborted, Aborting, Completing, Pending, Restarting, Running, Terminating};
    let soft = |to| Effect::Kill { retain: Retain::Ended, to, is_retry: false };
    match (phase, action) {
        (Pending | Running | Restarting, Action::RestartJob) => Effect::Kill {
            retain: Retain::Nothing,
            to: Restarting,
            is_retry: !matches!(phase, Restarting),
        },
        (Pending | Running | Restarting, Action::RestartTask | Action::RestartPod) => {
            Effect::KillTarget { is_retry: !matches!(phase, Restarting) }
        }
        (Pending | Running | Restarting, Action::AbortJob) => soft(Aborting),
        (Pending | Running | Restarting, Action::CompleteJob) => soft(Completing),
        (Pending | Running | Restarting, Action::TerminateJob) => soft(Terminating),
        (Aborting | Aborted, Action::ResumeJob) => {
            Effect::Kill { retain: Retain::Ended, to: Restarting, is_retry: true }
        }
        _ => Effect::Nothing,
    }
}

/// Why a job that is to be restarted is not, if it has been restarted too often.
#[must_use]
pub(super) fn retries_are_spent(status: &VolcanoStatus, spec: &JobSpec) -> Option<String> {
    let is_restarting = status.state.phase == Some(JobPhase::Restarting);
    (is_restarting && status.retry_count >= spec.max_retry).then(|| {
        let words = format!(
            "It was to be restarted for the {} time and spec.maxRetry is {}. {}",
            ordinal(status.retry_count),
            spec.max_retry,
            status.state.message
        );
        words.trim_end().to_owned()
    })
}

/// Enters the phase that the counts lead to, if it is another one.
pub(super) fn advance(draft: &mut Draft<'_>, spec: &JobSpec) {
    let status = &draft.status;
    let none_alive = status.terminating + status.pending + status.running + status.unknown == 0;
    let kept = (status.state.reason.clone(), status.state.message.clone());
    let ended = |phase| none_alive.then_some((phase, kept.0.clone(), kept.1.clone()));
    let quiet = |phase| Some((phase, String::new(), String::new()));
    let next = match draft.phase() {
        JobPhase::Pending => {
            let started = status.running + status.succeeded + status.failed;
            if spec.min_available <= started { quiet(JobPhase::Running) } else { None }
        }
        JobPhase::Running => completion(draft, spec),
        JobPhase::Restarting => {
            let left = spec.total() - status.terminating;
            if left >= status.min_available { quiet(JobPhase::Pending) } else { None }
        }
        JobPhase::Aborting => ended(JobPhase::Aborted),
        JobPhase::Completing => ended(JobPhase::Completed),
        JobPhase::Terminating => ended(JobPhase::Terminated),
        JobPhase::Aborted | JobPhase::Completed | JobPhase::Terminated | JobPhase::Failed => None,
    };
    if let Some((phase, reason, message)) = next {
        draft.enter(phase, &reason, message);
    }
}

/// Where a job that runs goes.
fn completion(draft: &Draft<'_>, spec: &JobSpec) -> Option<(JobPhase, String, String)> {
    let (status, total) = (&draft.status, spec.total());
    if total == 0 {
        return None;
    }
    let told = |phase, reason: &str, message| Some((phase, reason.to_owned(), message));
    if let Some(enough) = spec.min_success
        && status.succeeded >= enough
    {
        let message = format!("{} pods succeeded; minSuccess is {enough}.", status.succeeded);
        return told(JobPhase::Completed, "MinSuccessReached", message);
    }
    if status.succeeded + status.failed == total {
        let message = match shortage(status, spec) {
            None => {
                let words = format!(
                    "{} of {total} pods succeeded; minAvailable is {}.",
                    status.succeeded, spec.min_available
                );
                return told(JobPhase::Completed, "PodsSucceeded", words);
            }
            Some(shortage) => format!("{shortage} {}", failure::first(draft)),
        };
        return told(JobPhase::Failed, "PodFailed", message.trim_end().to_owned());
    }
    if status.pending > total - spec.min_available {
        return told(JobPhase::Pending, "", String::new());
    }
    None
}

/// What is short in a job all of whose pods have ended.
fn shortage(status: &VolcanoStatus, spec: &JobSpec) -> Option<String> {
    let minimums: i64 = spec.tasks.iter().map(|task| task.min_available).sum();
    if spec.min_available >= minimums {
        for task in &spec.tasks {
            let Some(counts) = status.task_status_count.get(&task.name) else {
                continue;
            };
            let succeeded = counts.phase.get("Succeeded").copied().unwrap_or(0);
            if succeeded < task.min_available {
                return Some(format!(
                    "{succeeded} of {} pods of task {} succeeded; its minAvailable is {}.",
                    task.replicas, task.name, task.min_available
                ));
            }
        }
    }
    if let Some(enough) = spec.min_success {
        return Some(format!(
            "All pods have ended and {} succeeded; minSuccess is {enough}.",
            status.succeeded
        ));
    }
    (status.succeeded < spec.min_available).then(|| {
        format!(
            "{} of {} pods succeeded; minAvailable is {}.",
            status.succeeded,
            spec.total(),
            spec.min_available
        )
    })
}

fn ordinal(number: i64) -> String {
    let tens = number % 100;
    let end = match number % 10 {
        1 if tens != 11 => "st",
        2 if tens != 12 => "nd",
        3 if tens != 13 => "rd",
        _ => "th",
    };
    format!("{number}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row of the table, and that all others do nothing.
    #[test]
    fn what_each_action_does_in_each_phase() {
        use Action::{
            AbortJob, CompleteJob, RestartJob, RestartPartition, RestartPod, RestartTask,
            ResumeJob, TerminateJob,
        };
        use JobPhase::{
            Aborted, Aborting, Completed, Completing, Failed, Pending, Restarting, Running,
            Terminated, Terminating,
        };
        let kill = |retain, to, is_retry| Effect::Kill { retain, to, is_retry };
        let wanted = |phase, action| match (phase, action) {
            (Pending | Running, RestartJob) => kill(Retain::Nothing, Restarting, true),
            (Restarting, RestartJob) => kill(Retain::Nothing, Restarting, false),
            (Pending | Running, RestartTask | RestartPod) => Effect::KillTarget { is_retry: true },
            (Restarting, RestartTask | RestartPod) => Effect::KillTarget { is_retry: false },
            (Pending | Running | Restarting, AbortJob) => kill(Retain::Ended, Aborting, false),
            (Pending | Running | Restarting, CompleteJob) => kill(Retain::Ended, Completing, false),
            (Pending | Running | Restarting, TerminateJob) => {
                kill(Retain::Ended, Terminating, false)
            }
            (Aborting | Aborted, ResumeJob) => kill(Retain::Ended, Restarting, true),
            _ => Effect::Nothing,
        };
        let phases = [
            Pending,
            Running,
            Restarting,
            Aborting,
            Aborted,
            Completing,
            Completed,
            Terminating,
            Terminated,
            Failed,
        ];
        let actions = [
            AbortJob,
            RestartJob,
            RestartTask,
            RestartPod,
            RestartPartition,
            TerminateJob,
            CompleteJob,
            ResumeJob,
        ];
        for phase in phases {
            for action in actions {
                assert_eq!(effect(phase, action), wanted(phase, action), "{phase:?} {action:?}");
            }
        }
    }

    #[test]
    fn ordinals() {
        for (number, text) in
            [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (22, "22nd")]
        {
            assert_eq!(ordinal(number), text);
        }
    }
}
