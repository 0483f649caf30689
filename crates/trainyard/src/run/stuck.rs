//! Jobs that wait without end: everything runs or waits, nobody prints, nobody computes.
//!
//! TensorFlow says nothing while it waits for a peer. Pure.

use std::time::Duration;

use super::board::{Board, OnBoard, State};
use super::words::listed;

/// Silence for so long is odd.
pub(crate) const SILENCE: Duration = Duration::from_mins(1);

/// Why a job is stuck, in words; none when it is not.
pub(crate) fn why(board: &Board, job: usize, now: Duration) -> Option<String> {
    let on_board = board.jobs.get(job).filter(|job| job.end.is_none())?;
    let training = || on_board.replicas.iter().filter(|(name, _)| !(on_board.row.stays)(name));
    let silent = training().all(|(_, replica)| {
        let alive = replica.spoke.max(replica.worked).unwrap_or_default();
        now.saturating_sub(alive) >= SILENCE
    });
    let waiting = names(on_board, |state| matches!(state, State::Absent | State::Waiting(_)));
    let running = names(on_board, |state| *state == State::Running);
    let over = names(on_board, State::is_over);
    if !silent || running.is_empty() {
        return None;
    }
    let minute = SILENCE.as_secs();
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
    Some(format!("stuck? nobody has printed or computed for {minute} s: {reason}"))
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

    #[test]
    fn silence_without_work_is_called_stuck() {
        let mut board = board(&["chief-0", "worker-0"]);
        assert_eq!(why(&board, 0, LATER), None);
        board.see_pod(0, &runs("chief-0"), false);
        let told = why(&board, 0, LATER).unwrap();
        assert!(told.contains("worker-0 did not come up"), "{told}");
        board.see_pod(0, &runs("worker-0"), false);
        assert!(why(&board, 0, LATER).unwrap().contains("TF_CONFIG"));
        let end = ended(0, "2026-01-01T00:00:00Z", 0);
        board.see_pod(0, &pod("worker-0", "worker-0", "Succeeded", &end), false);
        assert!(why(&board, 0, LATER).unwrap().contains("worker-0 ended"));
    }

    #[test]
    fn work_or_words_are_signs_of_life() {
        let mut board = board(&["chief-0"]);
        board.see_pod(0, &runs("chief-0"), false);
        assert!(why(&board, 0, LATER).is_some());
        assert_eq!(why(&board, 0, Duration::from_secs(30)), None);
        board.see_line(0, "chief-0", "epoch 1", false, Duration::from_secs(80));
        assert_eq!(why(&board, 0, LATER), None);
        board.see_use("chief-0", 0, 1, Duration::from_secs(199));
        board.see_use("chief-0", 900_000, 1, Duration::from_secs(200));
        assert_eq!(why(&board, 0, Duration::from_secs(200)), None);
    }
}
