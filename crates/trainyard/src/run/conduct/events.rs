//! Which events are worth telling in the middle of a training. Pure.

use serde_json::Value;

use crate::present::text;
use crate::run::board::{Board, Notice, Weight};

/// Told already, by the states of pods, in better words.
const KNOWN: [&str; 19] = [
    "BackOff",
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
    "Error",
    "OOMKilled",
    "ExitedWithCode",
    "TFJobRestarting",
    "TFJobFailed",
    "TFJobDeadlineExceeded",
    "FailedScheduling",
    "Unschedulable",
    "Failed",
    "ErrImagePull",
    "Unhealthy",
    "SettedPodTemplateRestartPolicy",
    "MemoryLimitTooSmall",
    "FailedCreatePodSandBox",
];

/// What is made of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) notice: Notice,
    /// It is a step of making an environment; the pod that waits for it, by identity.
    pub(super) waits: Option<String>,
}

/// What an event says; none when it is not worth a line.
pub(super) fn heard(
    event: &Value,
    job_of: impl Fn(&str) -> Option<usize>,
    board: &Board,
) -> Option<Heard> {
    let reason = text(event, &["reason"]);
    let message = text(event, &["message"]);
    let uid = text(event, &["involvedObject", "uid"]);
    let is_progress = reason == "Pulling" && !message.starts_with("Pulling image");
    let is_warning = text(event, &["type"]) == "Warning" && !KNOWN.contains(&reason);
    if !is_progress && !is_warning {
        return None;
    }
    let weight = if is_warning { Weight::Warning } else { Weight::Normal };
    let notice = Notice::new(weight, reason, message);
    let waits = is_progress.then(|| uid.to_owned());
    if let Some(job) = job_of(uid) {
        return Some(Heard { notice: notice.about(job, None), waits });
    }
    let replica = board.jobs.iter().enumerate().find_map(|(at, job)| {
        let name = job.replicas.iter().find(|(_, replica)| replica.uid == uid)?.0;
        Some((at, name.clone()))
    });
    let notice = match replica {
        // Several replicas wait for one environment: it is told once, about nobody.
        Some(_) if is_progress => notice,
        Some((job, name)) => notice.about(job, Some(&name)),
        // Something else of the namespace: a claim, a node.
        None => notice,
    };
    Some(Heard { notice, waits })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::run::board::tests::{board, pod};

    fn told(kind: &str, reason: &str, message: &str, uid: &str) -> Option<Heard> {
        let mut board = board(&["worker-0"]);
        board.see_pod(0, &pod("worker-0", "p", "Pending", &Value::Null), false);
        let event = json!({"type": kind, "reason": reason, "message": message,
            "involvedObject": {"uid": uid}});
        heard(&event, |uid| (uid == "j").then_some(0), &board)
    }

    #[test]
    fn warnings_and_progress_are_told() {
        let heard = told("Warning", "FailedMount", "no such secret", "p").unwrap();
        assert_eq!(heard.notice.replica.as_deref(), Some("worker-0"));
        let heard = told("Normal", "Pulling", "installing tensorflow-cpu 2.21.0", "p").unwrap();
        assert!(heard.waits.as_deref() == Some("p") && heard.notice.replica.is_none());
        let heard = told("Warning", "SlowValidation", "odd", "j").unwrap();
        assert_eq!((heard.notice.job, heard.notice.replica), (Some(0), None));
    }

    #[test]
    fn the_rest_is_not() {
        assert_eq!(told("Normal", "Started", "Started container", "p"), None);
        assert_eq!(told("Normal", "Pulling", "Pulling image \"x\"", "p"), None);
        assert_eq!(told("Warning", "TFJobRestarting", "job is restarting", "j"), None);
    }
}
