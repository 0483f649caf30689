//! Whose fault a failure is: the replica that failed by itself, those that died because it did, and
//! those that failed as well. Pure.

use jiff::Timestamp;

use super::board::{Ended, OnBoard, Replica, State};
use super::hints;
use super::kinds::End;

/// A cause may be seen to end so much later than those who felt it, in seconds: a program that fails
/// closes its connections before it has ended.
const LATE: i64 = 5;

/// What peers say when one of them is gone.
const ECHOES: [&str; 14] = [
    "UnavailableError",
    "AbortedError",
    "CancelledError",
    "Connection reset by peer",
    "Socket closed",
    "Broken pipe",
    "failed to connect to all addresses",
    "Connection refused",
    "is not available",
    "heartbeat timeout",
    "Collective ops is aborted",
    "is already in error",
    "Coordination service",
    "coordination service",
];

/// Why a job failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blame {
    /// Who failed first by itself.
    pub(crate) replica: String,
    pub(crate) end: Ended,
    pub(crate) last_words: Vec<String>,
    pub(crate) hint: Option<String>,
    /// Who died because of it.
    pub(crate) because: Vec<String>,
    /// Who failed beside it.
    pub(crate) also: Vec<String>,
}

struct Suspect<'a> {
    name: &'a str,
    replica: &'a Replica,
    end: &'a Ended,
    is_echo: bool,
}

impl Suspect<'_> {
    fn at(&self) -> Timestamp {
        self.end.at.unwrap_or(Timestamp::MAX)
    }
}

/// Finds who is to blame for a job that failed; nobody where no replica failed.
pub(crate) fn blame(job: &OnBoard) -> Option<Blame> {
    let accused = match &job.end {
        Some(End::Failed { replica, .. }) => replica.as_deref(),
        _ => job.gave_up_on.as_deref(),
    };
    let mut suspects: Vec<Suspect<'_>> = job
        .replicas
        .iter()
        .filter(|(name, _)| !(job.row.stays)(name))
        .filter_map(|(name, replica)| suspect(name, replica, accused))
        .collect();
    suspects.sort_by_key(|one| (one.at(), one.is_echo));
    let first = suspects.first()?.at();
    let by_itself = suspects.iter().position(|one| {
        let late = one.at().as_second().saturating_sub(first.as_second());
        !one.is_echo && late <= LATE
    });
    let cause = suspects.remove(by_itself.unwrap_or(0));
    let names = |wanted: bool| {
        let some = suspects.iter().filter(|one| is_consequence(one) == wanted);
        some.map(|one| one.name.to_owned()).collect()
    };
    let last_words = cause.replica.last_words();
    let hint = hints::hint(cause.end.code, &cause.end.reason, &last_words);
    Some(Blame {
        replica: cause.name.to_owned(),
        end: cause.end.clone(),
        last_words,
        hint,
        because: names(true),
        also: names(false),
    })
}

/// A replica that has failed and has not recovered; or the one that the job's status names.
fn suspect<'a>(name: &'a str, replica: &'a Replica, accused: Option<&str>) -> Option<Suspect<'a>> {
    let failed = |end: &&Ended| end.code != 0 && !end.stopped;
    let is_down = matches!(replica.state, State::Failed(_) | State::Waiting(_));
    let end = replica.ends.iter().rev().find(failed)?;
    let is_echo = says_echo(replica);
    (is_down || accused == Some(name)).then_some(Suspect { name, replica, end, is_echo })
}

/// Whether it died because of another: it says so, or it was killed from outside.
fn is_consequence(one: &Suspect<'_>) -> bool {
    one.is_echo || (one.end.code == 143 && one.end.reason != "OOMKilled")
}

fn says_echo(replica: &Replica) -> bool {
    let lines = replica.tail.iter().chain(&replica.noise);
    let mut lines = lines.rev().take(2 * super::board::TAIL);
    lines.any(|line| ECHOES.iter().any(|echo| line.contains(echo)))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::board::tests::{board, ended, pod};
    use super::*;

    /// Replica, exit code, second of its end, last line.
    type Row = (&'static str, i64, u32, &'static str);

    /// Who failed, who is to blame, who died because of it, who failed as well.
    type Judged<'a> = (&'a [Row], &'a str, &'a [&'a str], &'a [&'a str]);

    fn judged(rows: &[Row]) -> Option<Blame> {
        let mut board = board(&["chief-0", "ps-0", "worker-0", "worker-1"]);
        for (name, code, second, line) in rows {
            let at = format!("2026-01-01T00:00:{second:02}Z");
            let phase = if *code == 0 { "Succeeded" } else { "Failed" };
            board.see_line(0, name, line, false, Duration::ZERO);
            board.see_pod(0, &pod(name, name, phase, &ended(*code, &at, 0)), false);
        }
        blame(&board.jobs[0])
    }

    #[test]
    fn the_first_that_failed_by_itself_is_to_blame() {
        let unavailable = "UnavailableError: failed to connect to all addresses";
        let table: [Judged<'_>; 5] = [
            (&[("worker-1", 1, 3, "ValueError: x")], "worker-1", &[], &[]),
            (
                &[("ps-0", 137, 3, "serves"), ("chief-0", 1, 5, unavailable)],
                "ps-0",
                &["chief-0"],
                &[],
            ),
            // The chief was quicker to end than the worker whose failure it felt.
            (
                &[("chief-0", 1, 3, unavailable), ("worker-0", 1, 4, "KeyError: 'a'")],
                "worker-0",
                &["chief-0"],
                &[],
            ),
            (
                &[("worker-0", 1, 3, "KeyError: 'a'"), ("worker-1", 1, 3, "KeyError: 'a'")],
                "worker-0",
                &[],
                &["worker-1"],
            ),
            // Nobody but echoes: the first of them.
            (
                &[("worker-1", 1, 9, unavailable), ("worker-0", 1, 3, unavailable)],
                "worker-0",
                &["worker-1"],
                &[],
            ),
        ];
        for (rows, culprit, because, also) in table {
            let blame = judged(rows).unwrap();
            assert_eq!(blame.replica, culprit, "{rows:?}");
            assert_eq!((blame.because, blame.also), (own(because), own(also)), "{rows:?}");
        }
    }

    fn own(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn where_nobody_failed_nobody_is_blamed() {
        assert_eq!(judged(&[("worker-0", 0, 3, "done")]), None);
        assert_eq!(judged(&[]), None);
    }

    #[test]
    fn the_last_words_and_a_hint_come_with_it() {
        let line = "ModuleNotFoundError: No module named 'sklearn'";
        let blame = judged(&[("worker-0", 1, 3, line)]).unwrap();
        assert_eq!(blame.last_words, [line]);
        assert!(blame.hint.unwrap().contains("--with scikit-learn"));
    }
}
