//! How a run ends: what became of each job, and the exit code. Pure.

use super::board::{Board, OnBoard};
use super::kinds::{Cause, End};
use crate::failure::{DEADLINE, INTERRUPTED, INVALID, OTHER, UNSCHEDULABLE};

/// What ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All jobs have ended.
    Finished,
    /// A signal.
    Interrupted,
    /// `--timeout`.
    TimedOut,
    /// Something that this machine does not have is waited for.
    Hopeless,
    /// A replica failed again and again.
    Looping,
}

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Succeeded,
    Failed,
    /// A time was over, the manifest's or the user's.
    Deadline,
    Invalid,
    /// This machine does not have what it needs.
    Impossible,
    Interrupted,
}

impl Outcome {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Deadline => "deadline",
            Self::Invalid => "invalid",
            Self::Impossible => "impossible",
            Self::Interrupted => "interrupted",
        }
    }

    const fn code(self) -> u8 {
        match self {
            Self::Succeeded => 0,
            Self::Failed => OTHER,
            Self::Deadline => DEADLINE,
            Self::Invalid => INVALID,
            Self::Impossible => UNSCHEDULABLE,
            Self::Interrupted => INTERRUPTED,
        }
    }
}

/// What became of a job, given what ended the run.
pub(crate) fn outcome(job: &OnBoard, ending: Ending) -> Outcome {
    match (&job.end, ending) {
        (Some(End::Succeeded), _) => Outcome::Succeeded,
        (Some(End::Failed { cause, .. }), _) => match cause {
            Cause::Replica => Outcome::Failed,
            Cause::Deadline => Outcome::Deadline,
            Cause::Invalid => Outcome::Invalid,
        },
        (None, Ending::TimedOut) => Outcome::Deadline,
        (None, Ending::Hopeless) => Outcome::Impossible,
        (None, Ending::Interrupted) => Outcome::Interrupted,
        // It was deleted by somebody while it ran.
        (None, Ending::Finished | Ending::Looping) => Outcome::Failed,
    }
}

/// The exit code: an interruption's, else that of the first job that did not succeed; or that of the
/// replica that was asked for.
pub(crate) fn code(board: &Board, ending: Ending, from: Option<&str>) -> u8 {
    let outcomes: Vec<Outcome> = board.jobs.iter().map(|job| outcome(job, ending)).collect();
    if outcomes.contains(&Outcome::Interrupted) {
        return INTERRUPTED;
    }
    if let (Some(wanted), Ending::Finished) = (from, ending) {
        return of_replica(board, wanted);
    }
    outcomes.into_iter().map(Outcome::code).find(|code| *code != 0).unwrap_or(0)
}

/// The code of a replica's last end; 1 when it has none or was told to end.
fn of_replica(board: &Board, wanted: &str) -> u8 {
    let all =
        board.jobs.iter().enumerate().flat_map(|(at, job)| {
            job.replicas.iter().map(move |(name, replica)| (at, name, replica))
        });
    let mut found =
        all.filter(|(at, name, _)| name.as_str() == wanted || board.label(*at, name) == wanted);
    let end = found.next().and_then(|(_, _, replica)| replica.ends.last());
    end.filter(|end| !end.stopped).and_then(|end| u8::try_from(end.code).ok()).unwrap_or(OTHER)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::super::board::tests::{board, ended, pod};
    use super::*;

    fn job(kind: &str, failure: &str) -> Value {
        json!({"metadata": {"name": "mnist"}, "status": {"failure": {"kind": failure},
            "conditions": [{"type": kind, "status": "True"}]}})
    }

    #[test]
    fn every_ending_has_its_code() {
        for (kind, failure, ending, wanted) in [
            ("Succeeded", "", Ending::Finished, 0),
            ("Failed", "ReplicaFailed", Ending::Finished, 1),
            ("Failed", "InvalidSpec", Ending::Finished, 3),
            ("Failed", "DeadlineExceeded", Ending::Finished, 5),
            ("Running", "", Ending::TimedOut, 5),
            ("Running", "", Ending::Hopeless, 4),
            ("Running", "", Ending::Looping, 1),
            ("Running", "", Ending::Interrupted, 130),
            ("Running", "", Ending::Finished, 1),
            ("Succeeded", "", Ending::Interrupted, 0),
        ] {
            let mut board = board(&["worker-0"]);
            board.see_job(0, &job(kind, failure), Duration::ZERO);
            assert_eq!(code(&board, ending, None), wanted, "{kind} {failure} {ending:?}");
        }
    }

    #[test]
    fn a_replica_may_decide() {
        let mut board = board(&["worker-0", "worker-1"]);
        let end = ended(42, "2026-01-01T00:00:00Z", 0);
        board.see_pod(0, &pod("worker-1", "b", "Failed", &end), false);
        board.see_job(0, &job("Succeeded", ""), Duration::ZERO);
        assert_eq!(code(&board, Ending::Finished, Some("worker-1")), 42);
        assert_eq!(code(&board, Ending::Finished, Some("worker-0")), 1);
    }
}
