//! What is said of a job at its end: as data, for people and programs alike. Pure.

use std::path::PathBuf;
use std::time::Duration;

use super::board::{Board, State};
use super::finish::{Ending, Outcome, outcome};
use super::kinds::End;
use super::verdict::{Blame, blame};

/// The end of one job.
#[derive(Debug)]
pub(crate) struct Summary {
    pub(crate) job: String,
    pub(crate) namespace: String,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
    pub(crate) restarts: u64,
    pub(crate) replicas: Vec<Row>,
    /// What the job's own status says of its failure.
    pub(crate) message: String,
    pub(crate) blame: Option<Blame>,
    pub(crate) logs: PathBuf,
    /// Where claims are; none when the job has none.
    pub(crate) claims: Option<PathBuf>,
}

/// One replica.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) state: &'static str,
    /// Of its last end.
    pub(crate) code: Option<i64>,
    pub(crate) reason: String,
    pub(crate) restarts: u64,
    pub(crate) peak: u64,
}

/// Sums a job up.
pub(crate) fn of(
    board: &Board,
    job: usize,
    ending: Ending,
    now: Duration,
    logs: PathBuf,
    claims: Option<PathBuf>,
) -> Option<Summary> {
    let on_board = board.jobs.get(job)?;
    let outcome = outcome(on_board, ending);
    let replicas = on_board
        .replicas
        .iter()
        .map(|(name, replica)| {
            let end = replica.ends.last();
            Row {
                name: name.clone(),
                state: match &replica.state {
                    // What still runs is stopped with the yard.
                    State::Running if (on_board.row.stays)(name) => "running",
                    State::Running | State::Stopping => "stopped",
                    state => state.word(),
                },
                code: end.map(|end| end.code),
                reason: end.map(|end| end.reason.clone()).unwrap_or_default(),
                restarts: replica.restarts,
                peak: replica.peak,
            }
        })
        .collect();
    let message = match &on_board.end {
        Some(End::Failed { message, .. }) => message.clone(),
        _ => String::new(),
    };
    let failed =
        !matches!(outcome, Outcome::Succeeded | Outcome::Interrupted | Outcome::Impossible);
    Some(Summary {
        job: on_board.name.clone(),
        namespace: on_board.namespace.clone(),
        outcome,
        took: on_board.ended.unwrap_or(now),
        restarts: board.restarts(job),
        replicas,
        message,
        blame: failed.then(|| blame(on_board)).flatten(),
        logs,
        claims,
    })
}
