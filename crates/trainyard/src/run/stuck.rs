//! Jobs that wait without end: everything runs or waits, nobody prints, nobody computes.
//!
//! TensorFlow says nothing while it waits for a peer. Pure.

use std::time::Duration;

use super::board::{Board, OnBoard, State};
use super::words::listed;

/// Silence for so long is odd.
pub(crate) const SILENCE: Duration = Duration::from_mins(1);
/// On a machine with more work than processors, silence may be mere waiting for one.
const SILENCE_WHEN_BUSY: Duration = Duration::from_mins(5);
/// Whoever runs must have been looked at so often in this time and found idle, for each second of it: a
/// run that had no time to look knows nothing.
const LOOKS_PER_SECOND: u64 = 1;

/// Why a job is stuck, in words; none when it is not.
pub(crate) fn why(board: &Board, job: usize, now: Duration, is_busy: bool) -> Option<String> {
    let on_board = board.jobs.get(job).filter(|job| job.end.is_none())?;
    let silence = if is_busy { SILENCE_WHEN_BUSY } else { SILENCE };
    let looks = silence.as_secs() * LOOKS_PER_SECOND;
    let training = || on_board.replicas.iter().filter(|(name, _)| !(on_board.row.stays)(name));
    let silent = training().all(|(_, replica)| {
        let seen_idle = replica.state != State::Running || u64::from(replica.idle) >= looks;
        seen_idle && now.saturating_sub(replica.last_sign()) >= silence
    });
    let waiting = names(on_board, |state| matches!(state, State::Absent | State::Waiting(_)));
    let running = names(on_board, |state| *state == State::Running);
    let over = names(on_board, State::is_over);
    if !silent || running.is_empty() {
        return None;
    }
    let seconds = silence.as_secs();
    let reason = if !waiting.is_empty() {
        format!("{} did not come up, and the others wait for it", listed(&waiting))
    } else if !over.is_empty() {
        format!("{} ended, and the others seem to wait for it", listed(&over))
    } else if running.len() > 1 {
        "all replicas run: they seem to wait for each other; do they all use the addresses of TF_CONFIG, \
         and does each play its own part?"
            .to_owned()
    } else {
        "it runs and does nothing".to_owned()
    };
    Some(format!("stuck? nobody has printed or computed for {seconds} s: {reason}"))
}

fn names(job: &OnBoard, wanted: impl Fn(&State) -> bool) -> Vec<String> {
    let all = job.replicas.iter().filter(|(name, _)| !(job.row.stays)(name));
    all.filter(|(_, replica)| wanted(&replica.state)).map(|(name, _)| name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::board::tests::{board, ended, pod};
    use super::*;

    const LATER: Duration = Duration::from_secs(90);

    fn runs(name: &str) -> serde_json::Value {
        pod(name, name, "Running", &json!({"name": "tensorflow", "state": {"running": {}}}))
    }

    /// Looks twice a second from one second to another, and finds nobody at work.
    fn look(board: &mut Board, names: &[&str], from: u64, to: u64) {
        for half in 2 * from..2 * to {
            for name in names {
                board.see_use(name, 0, 1, Duration::from_millis(500 * half));
            }
        }
    }

    #[test]
    fn silence_without_work_is_called_stuck() {
        let mut board = board(&["chief-0", "worker-0"]);
        assert_eq!(why(&board, 0, LATER, false), None);
        board.see_pod(0, &runs("chief-0"), false);
        look(&mut board, &["chief-0"], 0, 90);
        let told = why(&board, 0, LATER, false).unwrap();
        assert!(told.contains("worker-0 did not come up"), "{told}");
        board.see_pod(0, &runs("worker-0"), false);
        look(&mut board, &["worker-0"], 0, 90);
        assert!(why(&board, 0, LATER, false).unwrap().contains("TF_CONFIG"));
        let end = ended(0, "2026-01-01T00:00:00Z", 0);
        board.see_pod(0, &pod("worker-0", "worker-0", "Succeeded", &end), false);
        assert!(why(&board, 0, LATER, false).unwrap().contains("worker-0 ended"));
    }

    #[test]
    fn work_or_words_are_signs_of_life() {
        let mut board = board(&["chief-0"]);
        board.see_pod(0, &runs("chief-0"), false);
        look(&mut board, &["chief-0"], 0, 90);
        assert!(why(&board, 0, LATER, false).is_some());
        assert_eq!(why(&board, 0, Duration::from_secs(30), false), None);
        board.see_line(0, "chief-0", "epoch 1", false, Duration::from_secs(80));
        assert_eq!(why(&board, 0, LATER, false), None);
        look(&mut board, &["chief-0"], 90, 199);
        assert!(why(&board, 0, Duration::from_secs(199), false).is_some());
        board.see_use("chief-0", 900_000, 1, Duration::from_secs(200));
        assert_eq!(why(&board, 0, Duration::from_secs(200), false), None);
    }

    #[test]
    fn one_that_has_only_just_begun_is_not_stuck() {
        let mut board = board(&["chief-0"]);
        board.see_pod(0, &runs("chief-0"), false);
        // Its environment took four minutes to be made.
        board.see_change(0, "chief-0", Duration::from_mins(4));
        look(&mut board, &["chief-0"], 240, 270);
        assert_eq!(why(&board, 0, Duration::from_secs(270), false), None);
        look(&mut board, &["chief-0"], 270, 301);
        assert!(why(&board, 0, Duration::from_secs(301), false).is_some());
    }

    #[test]
    fn a_busy_machine_gets_more_time() {
        let mut board = board(&["chief-0"]);
        board.see_pod(0, &runs("chief-0"), false);
        // There was no time to look either.
        look(&mut board, &["chief-0"], 0, 5);
        assert_eq!(why(&board, 0, Duration::from_secs(400), false), None);
        look(&mut board, &["chief-0"], 5, 290);
        assert_eq!(why(&board, 0, Duration::from_secs(290), true), None);
        look(&mut board, &["chief-0"], 290, 310);
        let told = why(&board, 0, Duration::from_secs(310), true).unwrap();
        assert!(told.contains("for 300 s"), "{told}");
    }
}
