//! The pause between new pods, and the policy table.

use super::*;

#[test]
fn pauses_double_up_to_a_limit() {
    let config = Config::default();
    let pauses: Vec<i64> = (0..10).map(|streak| pause_ms(streak, &config) / 1000).collect();
    assert_eq!(pauses, [0, 0, 10, 20, 40, 80, 160, 300, 300, 300]);
    assert_eq!(pause_ms(i64::MAX, &config), config.restart_backoff_ms_max);
    assert_eq!(pause_ms(-1, &config), 0);
}

#[test]
fn a_policy_allows_or_forbids() {
    use RestartPolicy::{Always, ExitCode, Never, OnFailure};
    let exit = |code| Cause { exit_code: Some(code), ..Cause::default() };
    let evicted = Cause { disrupted: true, ..Cause::default() };
    let unknown = Cause::default();
    let bad_and_evicted = Cause { disrupted: true, exit_code: Some(1), ..Cause::default() };
    for (policy, cause, expected) in [
        (Always, exit(1), true),
        (OnFailure, exit(1), true),
        (Never, exit(137), false),
        (Never, evicted.clone(), true),
        (ExitCode, exit(1), false),
        (ExitCode, exit(137), true),
        (ExitCode, unknown, true),
        (ExitCode, evicted, true),
        (ExitCode, bad_and_evicted, true),
    ] {
        assert_eq!(may_restart(policy, &cause), expected, "{policy:?} {cause:?}");
    }
}

#[test]
fn records_stay_in_order() {
    let mut status = JobStatus::default();
    for replica in ["worker-1", "ps-0", "worker-0", "ps-0"] {
        record(&mut status, replica).restarts += 1;
    }
    let names: Vec<&str> = status.replica_records.iter().map(|r| r.replica.as_str()).collect();
    assert_eq!(names, ["ps-0", "worker-0", "worker-1"]);
    assert_eq!(status.replica_records[0].restarts, 2);
}
