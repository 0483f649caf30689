//! Jobs and their pods in small, and what is decided about them.

use serde_json::{Value, json};

use super::*;

/// A job of the given spec and status; one that has begun at noon.
pub(in crate::controllers::jobs) fn job(spec: &Value, status: &Value) -> Job {
    let mut job = json!({
        "metadata": {"name": "j", "namespace": "n", "uid": "u"},
        "spec": {"parallelism": 1, "completions": 1, "backoffLimit": 6},
        "status": {"startTime": "2026-01-01T12:00:00Z"},
    });
    for (part, more) in [("spec", spec), ("status", status)] {
        for (key, value) in more.as_object().unwrap() {
            job[part][key] = value.clone();
        }
    }
    serde_json::from_value(job).unwrap()
}

/// A pod that is counted; `more` by pointers below its metadata, spec and status.
pub(in crate::controllers::jobs) fn pod(uid: &str, phase: &str, more: &Value) -> Pod {
    let mut pod = json!({
        "metadata": {"name": uid, "uid": uid, "finalizers": ["batch.kubernetes.io/job-tracking"],
            "creationTimestamp": "2026-01-01T12:00:00Z", "annotations": {}},
        "spec": {"nodeName": "n"},
        "status": {"phase": phase, "conditions": []},
    });
    for (key, value) in more.as_object().unwrap() {
        let (part, field) = key.split_once('/').unwrap();
        pod[part][field] = value.clone();
    }
    serde_json::from_value(pod).unwrap()
}

pub(in crate::controllers::jobs) fn indexed(uid: &str, phase: &str, index: u32) -> Pod {
    let annotation = json!({"batch.kubernetes.io/job-completion-index": index.to_string()});
    pod(uid, phase, &json!({"metadata/annotations": annotation}))
}

pub(in crate::controllers::jobs) fn noon(seconds: i64) -> Timestamp {
    let noon: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    noon + SignedDuration::from_secs(seconds)
}

fn next(job: &Job, pods: &[Pod], now: i64) -> String {
    let tally = tally(job, pods, &Backoff::default());
    match work(job, &tally, noon(now)) {
        Work::Drop(pods) => {
            let mut names: Vec<&str> = pods.iter().map(|pod| pod.uid()).collect();
            names.sort_unstable();
            format!("drop {}", names.join(" "))
        }
        Work::Make(indexes) => {
            let indexes = indexes.iter().map(|one| one.map_or("-".into(), |one| one.to_string()));
            format!("make {}", indexes.collect::<Vec<_>>().join(" "))
        }
        Work::Wait(left) => format!("wait {}", left.as_secs()),
        Work::Nothing => String::new(),
    }
}

/// Before there was a bound pods were made, 500 in a pass, until the memory of the yard was full.
#[test]
fn a_job_that_wants_all_pods_that_a_number_can_hold_gets_as_many_as_a_yard_can() {
    let wanted = json!({"parallelism": i32::MAX, "completions": i32::MAX});
    let endless = job(&wanted, &json!({}));
    let made = |active: usize| {
        let pods: Vec<Pod> =
            (0..active).map(|n| pod(&n.to_string(), "Running", &json!({}))).collect();
        match work(&endless, &tally(&endless, &pods, &Backoff::default()), noon(0)) {
            Work::Make(pods) => pods.len(),
            Work::Nothing => 0,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([0, 9_700, 10_000].map(made), [500, 300, 0]);
}

#[test]
fn no_more_pods_than_are_wanted() {
    let none = json!({});
    let five =
        |parallelism: u32| job(&json!({"parallelism": parallelism, "completions": 5}), &none);
    assert_eq!(next(&five(2), &[], 0), "make - -");
    let run = |uid: &str| pod(uid, "Running", &json!({}));
    let done = |uid: &str| pod(uid, "Succeeded", &json!({}));
    assert_eq!(next(&five(2), &[run("a")], 0), "make -");
    assert_eq!(next(&five(2), &[run("a"), run("b")], 0), "");
    assert_eq!(next(&five(9), &[done("a"), done("b"), run("c")], 0), "make - -");
    assert_eq!(next(&five(0), &[run("a")], 0), "drop a");
    // What has been counted does not count twice.
    let counted = job(&json!({"parallelism": 9, "completions": 5}), &json!({"succeeded": 3}));
    let past = pod("a", "Succeeded", &json!({"metadata/finalizers": []}));
    assert_eq!(next(&counted, &[past], 0), "make - -");
}

#[test]
fn without_completions_the_first_success_ends_the_beginnings() {
    let open = job(&json!({"parallelism": 3, "completions": null}), &json!({}));
    let run = |uid: &str| pod(uid, "Running", &json!({}));
    assert_eq!(next(&open, &[run("a")], 0), "make - -");
    let done = pod("b", "Succeeded", &json!({}));
    assert_eq!(next(&open, &[run("a"), done], 0), "");
    assert!(!is_complete(&open, 1, 1) && is_complete(&open, 1, 0) && !is_complete(&open, 0, 0));
}

#[test]
fn indexes_are_begun_in_order() {
    let spec = json!({"parallelism": 3, "completions": 6, "completionMode": "Indexed"});
    let six = job(&spec, &json!({"completedIndexes": "0,2"}));
    assert_eq!(next(&six, &[indexed("a", "Running", 1)], 0), "make 3 4");
    // Fewer completions: what is beyond them goes.
    let spec = json!({"parallelism": 2, "completions": 2, "completionMode": "Indexed"});
    let two = job(&spec, &json!({"completedIndexes": "0,5"}));
    let pods = [indexed("a", "Running", 1), indexed("b", "Running", 4)];
    assert_eq!(next(&two, &pods, 0), "drop b");
    assert_eq!(tally(&two, &pods, &Backoff::default()).succeeded, 1);
    // A failed pod of an index that is no more does not count.
    let lost = [indexed("c", "Failed", 4)];
    assert_eq!(tally(&two, &lost, &Backoff::default()).failed, 0);
}

#[test]
fn failures_are_waited_for() {
    let one = job(&json!({}), &json!({}));
    let failed = pod(
        "a",
        "Failed",
        &json!({"status/containerStatuses": [
        {"name": "main", "state": {"terminated": {"finishedAt": "2026-01-01T12:00:05Z"}}}]}),
    );
    assert_eq!(next(&one, std::slice::from_ref(&failed), 8), "wait 7");
    assert_eq!(next(&one, &[failed], 15), "make -");
}

#[test]
fn a_suspended_job_has_no_pods() {
    let held = job(&json!({"suspend": true, "activeDeadlineSeconds": 1}), &json!({}));
    assert_eq!(next(&held, &[pod("a", "Running", &json!({}))], 90), "drop a");
    assert_eq!(next(&held, &[], 90), "");
    let tally = tally(&held, &[], &Backoff::default());
    assert_eq!(verdict(&held, &[], &tally, noon(90)), Verdict::GoesOn(None));
}

fn judged(job: &Job, pods: &[Pod], now: i64) -> String {
    match verdict(job, pods, &tally(job, pods, &Backoff::default()), noon(now)) {
        Verdict::Ends(why) => format!("{} {}: {}", why.r#type, why.reason, why.message),
        Verdict::GoesOn(left) => format!("{:?}", left.map(|left| left.as_secs())),
    }
}

#[test]
fn too_many_failures_end_a_job() {
    let one = |failed: u32| job(&json!({"backoffLimit": 1}), &json!({"failed": failed}));
    let failed = [pod("a", "Failed", &json!({}))];
    assert_eq!(judged(&one(0), &failed, 0), "None");
    let words = "FailureTarget BackoffLimitExceeded: Job has reached the specified backoff limit";
    assert_eq!(judged(&one(1), &failed, 0), words);
    // One that goes before it has ended has failed too.
    let going =
        [pod("a", "Running", &json!({"metadata/deletionTimestamp": "2026-01-01T12:00:00Z"}))];
    assert_eq!(judged(&one(1), &going, 0), words);
    // Noted, not yet counted.
    let noted = json!({"failed": 1, "uncountedTerminatedPods": {"failed": ["a"]}});
    assert_eq!(judged(&job(&json!({"backoffLimit": 1}), &noted), &failed, 0), words);
    assert_eq!(judged(&job(&json!({"backoffLimit": 2}), &noted), &failed, 0), "None");
}

#[test]
fn restarts_in_place_are_retries() {
    let template = json!({"spec": {"restartPolicy": "OnFailure"}});
    let restarting =
        |limit: u32| job(&json!({"backoffLimit": limit, "template": template}), &json!({}));
    let pods = |restarts: u32| {
        let containers = json!([{"name": "a", "restartCount": restarts}]);
        [pod("a", "Running", &json!({"status/containerStatuses": containers}))]
    };
    assert_eq!(judged(&restarting(0), &pods(0), 0), "None");
    assert!(judged(&restarting(0), &pods(1), 0).starts_with("FailureTarget Backoff"));
    assert_eq!(judged(&restarting(3), &pods(2), 0), "None");
    assert!(judged(&restarting(3), &pods(3), 0).starts_with("FailureTarget Backoff"));
    assert_eq!(judged(&job(&json!({"backoffLimit": 3}), &json!({})), &pods(9), 0), "None");
}

#[test]
fn time_runs_out() {
    let hasty = job(&json!({"activeDeadlineSeconds": 30}), &json!({}));
    assert_eq!(judged(&hasty, &[], 10), "Some(20)");
    let words = "FailureTarget DeadlineExceeded: Job was active longer than specified deadline";
    assert_eq!(judged(&hasty, &[], 30), words);
    // What was found before stands.
    let found = json!({"conditions": [{"type": "FailureTarget", "status": "True", "reason": "R",
        "message": "m"}]});
    assert_eq!(judged(&job(&json!({}), &found), &[], 0), "Failed R: m");
}

#[test]
fn finished_jobs_stay_as_long_as_they_say() {
    let ended = json!({"conditions": [{"type": "Failed", "status": "True",
        "lastTransitionTime": "2026-01-01T12:00:10Z"}]});
    let brief = job(&json!({"ttlSecondsAfterFinished": 5}), &ended);
    assert_eq!(stay(&brief, noon(12)), Some(Duration::from_secs(3)));
    assert_eq!(stay(&brief, noon(40)), Some(Duration::ZERO));
    assert_eq!(stay(&job(&json!({}), &ended), noon(40)), None);
    assert_eq!(stay(&job(&json!({"ttlSecondsAfterFinished": 5}), &json!({})), noon(40)), None);
    let forever = job(&json!({"ttlSecondsAfterFinished": u64::MAX}), &ended);
    assert!(stay(&forever, noon(40)).unwrap() > Duration::from_hours(24));
}
