//! What the status says after a pass, from any point at which the one before may have ended.

use serde_json::{Value, json};

use super::*;
use crate::controllers::jobs::backoff::Backoff;
use crate::controllers::jobs::decide::tally;
use crate::controllers::jobs::decide::tests::{indexed, job, noon, pod};

const QUIET: After = After { active: 0, terminating: 0, ready: 0, managed: true };

fn settled<'a>(job: &Job, pods: &'a [Pod], after: After, ends: Option<Condition>) -> Settled<'a> {
    settle(job, pods, &tally(job, pods, &Backoff::default()), after, ends, noon(60))
}

fn released(status: &mut Status) -> Value {
    count(status, &BTreeSet::new());
    json!([status.succeeded, status.failed, status.uncounted_terminated_pods])
}

#[test]
fn a_pod_is_noted_then_counted() {
    let one = job(&json!({}), &json!({}));
    let pods = [pod("a", "Succeeded", &json!({})), pod("b", "Failed", &json!({}))];
    let mut first = settled(&one, &pods, QUIET, None);
    let noted = first.status.uncounted_terminated_pods.clone().unwrap();
    assert_eq!((noted.succeeded, noted.failed), (vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!((first.status.succeeded, first.status.failed), (0, 0));
    assert_eq!(first.let_go.len(), 2);
    assert!(first.status.holds("SuccessCriteriaMet"));
    let end = first.end.clone().unwrap();
    assert!(!finish(&mut first.status, &end), "not before they are counted");
    assert_eq!(released(&mut first.status), json!([1, 1, {}]));
    assert!(finish(&mut first.status, &end));
    let kinds: Vec<&str> = first.status.conditions.iter().map(|one| &*one.r#type).collect();
    assert_eq!(kinds, ["SuccessCriteriaMet", "Complete"]);
    assert_eq!(end.reason, "CompletionsReached");
    assert_eq!(end.message, "Reached expected number of succeeded pods");
    assert_eq!(first.status.completion_time.as_deref(), Some("2026-01-01T12:01:00Z"));
}

#[test]
fn whoever_begins_again_counts_once() {
    // Noted, but the finalizer is still there: it is let go again and not noted again.
    let noted = json!({"uncountedTerminatedPods": {"failed": ["a"]}});
    let pods = [pod("a", "Failed", &json!({}))];
    let mut again = settled(&job(&json!({}), &noted), &pods, QUIET, None);
    assert_eq!(again.let_go.len(), 1);
    assert_eq!(released(&mut again.status), json!([0, 1, {}]));
    // Noted, and the finalizer is gone: it is counted at once.
    let free = [pod("a", "Failed", &json!({"metadata/finalizers": []}))];
    let again = settled(&job(&json!({}), &noted), &free, QUIET, None);
    assert_eq!((again.status.failed, again.let_go.len()), (1, 0));
    // Gone altogether.
    let gone = settled(&job(&json!({}), &noted), &[], QUIET, None);
    assert_eq!(gone.status.failed, 1);
}

#[test]
fn indexes_are_counted_by_themselves() {
    let spec = json!({"completionMode": "Indexed", "completions": 4, "parallelism": 4});
    let four = job(&spec, &json!({"completedIndexes": "0", "succeeded": 1}));
    let pods = [
        indexed("c", "Succeeded", 2),
        indexed("b", "Succeeded", 1),
        indexed("x", "Succeeded", 9),
        indexed("f", "Failed", 3),
        indexed("g", "Failed", 8),
    ];
    let after = settled(&four, &pods, QUIET, None);
    assert_eq!(after.status.completed_indexes, "0-2");
    assert_eq!(after.status.succeeded, 3);
    assert_eq!(after.status.uncounted_terminated_pods.unwrap().failed, ["f"]);
    assert_eq!(after.let_go.len(), 5);
}

#[test]
fn a_job_that_fails_waits_for_its_pods() {
    let two = job(&json!({"parallelism": 2, "completions": 2}), &json!({}));
    let pods = [pod("a", "Running", &json!({})), pod("b", "Failed", &json!({}))];
    let why = condition("FailureTarget", "BackoffLimitExceeded", "m", noon(60));
    let after = After { terminating: 1, ..QUIET };
    let mut ending = settled(&two, &pods, after, Some(why));
    // What still ran is counted as failed.
    assert_eq!(released(&mut ending.status), json!([0, 2, {}]));
    let end = ending.end.unwrap();
    assert!(ending.status.holds("FailureTarget"));
    assert!(!finish(&mut ending.status, &end), "not while one still runs");
    ending.status.terminating = Some(0);
    assert!(finish(&mut ending.status, &end));
    assert!(ending.status.holds("Failed") && ending.status.completion_time.is_none());
}

#[test]
fn suspension_is_told_once() {
    let held = job(&json!({"suspend": true}), &json!({}));
    let first = settled(&held, &[], QUIET, None);
    assert_eq!(first.said, Some(("Suspended", "Job suspended")));
    assert_eq!(first.status.start_time, None);
    assert_eq!(first.status.condition("Suspended").unwrap().reason, "JobSuspended");
    let status = json!(first.status);
    let again = settled(&job(&json!({"suspend": true}), &status), &[], QUIET, None);
    assert_eq!(again.said, None);
    let resumed = settled(&job(&json!({"suspend": false}), &status), &[], QUIET, None);
    assert_eq!(resumed.said, Some(("Resumed", "Job resumed")));
    assert_eq!(resumed.status.condition("Suspended").unwrap().status, "False");
    assert_eq!(resumed.status.start_time.as_deref(), Some("2026-01-01T12:01:00Z"));
    // One that was never suspended is not resumed.
    assert_eq!(settled(&job(&json!({}), &json!({})), &[], QUIET, None).said, None);
}

#[test]
fn a_job_on_its_way_out_holds_nobody() {
    let mut gone = job(&json!({"completions": 2}), &json!({}));
    gone.metadata.deletion_timestamp = Some("2026-01-01T12:00:30Z".to_owned());
    let pods = [pod("a", "Running", &json!({}))];
    let after = settled(&gone, &pods, After { active: 1, managed: false, ..QUIET }, None);
    assert_eq!(after.let_go.len(), 1);
    assert_eq!(
        after.status.uncounted_terminated_pods,
        Some(super::super::view::Uncounted::default())
    );
}

#[test]
fn the_status_stays_small() {
    let many = job(&json!({"completions": 2000, "parallelism": 2000}), &json!({}));
    let pods: Vec<Pod> =
        (0..700).map(|at| pod(&format!("p{at}"), "Succeeded", &json!({}))).collect();
    let why = condition("FailureTarget", "R", "m", noon(60));
    let some = settled(&many, &pods, QUIET, Some(why));
    assert_eq!(some.let_go.len(), NOTED_MAX);
    assert_eq!(some.end, None, "the rest comes first");
}
