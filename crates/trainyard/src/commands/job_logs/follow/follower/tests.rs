//! What is shown, waited for and missed, news by news.

use clap::Parser;
use serde_json::{Value, json};

use super::*;
use crate::cluster::Kind;
use crate::present::paint::When;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    logs: Logs,
}

fn logs(words: &[&str]) -> Logs {
    Line::parse_from([&["logs", "mnist"], words].concat()).logs
}

fn job(status: &Value) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
        "metadata": {"name": "mnist", "uid": "j"},
        "spec": {"runPolicy": {"cleanPodPolicy": "All"},
            "tfReplicaSpecs": {"Worker": {"replicas": 2}}},
        "status": status,
    })
}

fn ended(kind: &str) -> Value {
    json!({"conditions": [{"type": kind, "status": "True"}]})
}

fn found(job: Option<Value>) -> Found {
    let kind = || Kind::example("kubeflow.org", "v1", "TFJob", "tfjobs", true);
    Found {
        namespace: "team".to_owned(),
        name: "mnist".to_owned(),
        pods: Kind::example("", "v1", "Pod", "pods", true),
        events: None,
        selector: job.is_some().then(|| "x=mnist".to_owned()),
        job: job.map(|job| (kind(), job)),
    }
}

fn follower<'a>(logs: &'a Logs, found: &'a Found) -> Follower<'a> {
    Follower::new(logs, found, Painter::new(When::Never, When::Auto, false), Vec::new())
}

fn pod(index: u32, uid: &str, phase: &str, state: &Value) -> Value {
    json!({
        "metadata": {"name": format!("mnist-worker-{index}"), "uid": uid, "labels": {
            "training.kubeflow.org/replica-type": "worker",
            "training.kubeflow.org/replica-index": index.to_string()}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "tensorflow"}]},
        "status": {"phase": phase, "containerStatuses": [
            {"name": "tensorflow", "restartCount": 0, "state": state}]},
    })
}

fn waits(index: u32, uid: &str) -> Value {
    pod(index, uid, "Pending", &json!({"waiting": {"reason": "ImagePullBackOff"}}))
}

fn runs(index: u32, uid: &str) -> Value {
    pod(index, uid, "Running", &json!({"running": {}}))
}

/// The replicas whose logs are to be read after some news.
fn hear(follower: &mut Follower<'_>, news: News) -> Vec<String> {
    let runs = follower.hear(news).unwrap();
    runs.into_iter().map(|run| format!("{} of {}", run.label, run.uid)).collect()
}

fn never(follower: &Follower<'_>) -> Vec<(String, String)> {
    follower.never(Timestamp::UNIX_EPOCH)
}

#[test]
fn a_pending_pod_that_is_replaced_is_followed_by_its_successor() {
    let (logs, found) = (logs(&[]), found(Some(job(&Value::Null))));
    let mut follower = follower(&logs, &found);
    let none: Vec<String> = Vec::new();
    assert_eq!(
        hear(&mut follower, News::Pods(vec![waits(0, "a"), runs(1, "b")])),
        ["worker-1 of b"]
    );
    assert_eq!(hear(&mut follower, News::Gone(waits(0, "a"))), none);
    assert_eq!(hear(&mut follower, News::Pod(waits(0, "c"))), none);
    assert_eq!(hear(&mut follower, News::Pod(runs(0, "c"))), ["worker-0 of c"]);
    assert_eq!(hear(&mut follower, News::Job(job(&ended("Succeeded")))), none);
    assert!(follower.has_finished());
    assert_eq!(never(&follower), []);
    assert!(follower.end(Timestamp::UNIX_EPOCH).is_ok());
}

#[test]
fn that_a_pod_is_deleted_is_told_once_while_its_job_goes_on() {
    let (logs, found) = (logs(&["--replica", "worker-1"]), found(Some(job(&Value::Null))));
    let leaves = |index: u32, uid: &str| {
        let mut pod = runs(index, uid);
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:30Z");
        pod
    };
    let told = |follower: &Follower<'_>| {
        let all = follower.told.iter();
        all.map(|(replica, words)| format!("{replica}: {words}")).collect::<Vec<_>>()
    };
    let mut follower = follower(&logs, &found);
    hear(&mut follower, News::Pods(vec![runs(0, "a"), runs(1, "b")]));
    assert_eq!(told(&follower), [""; 0]);
    hear(&mut follower, News::Pod(leaves(0, "a")));
    hear(&mut follower, News::Pod(leaves(1, "b")));
    assert_eq!(told(&follower), ["worker-1: its pod is being deleted"], "only what is asked for");
    hear(&mut follower, News::Pod(runs(1, "c")));
    assert_eq!(told(&follower), [""; 0], "that of its successor is news");
    hear(&mut follower, News::Job(job(&ended("Succeeded"))));
    hear(&mut follower, News::Pod(leaves(1, "c")));
    assert_eq!(told(&follower), [""; 0], "it goes with its job");
}

#[test]
fn a_successor_that_is_first_seen_in_a_list_counts_as_well() {
    let (logs, found) = (logs(&[]), found(Some(job(&Value::Null))));
    let mut follower = follower(&logs, &found);
    hear(&mut follower, News::Pods(vec![waits(0, "a"), runs(1, "b")]));
    let all = vec![runs(0, "c"), runs(1, "b")];
    assert_eq!(hear(&mut follower, News::Pods(all)), ["worker-0 of c"]);
    assert_eq!(never(&follower), []);
}

#[test]
fn who_never_started_is_named_whether_its_pod_is_there_or_not() {
    let (logs, found) = (logs(&[]), found(Some(job(&Value::Null))));
    let mut follower = follower(&logs, &found);
    hear(&mut follower, News::Pods(vec![waits(0, "a"), waits(1, "b")]));
    hear(&mut follower, News::Gone(waits(0, "a")));
    hear(&mut follower, News::Job(job(&ended("Failed"))));
    let why = "it has not started: ImagePullBackOff";
    let wanted = [("worker-0", format!("{why}; its pod is gone")), ("worker-1", why.to_owned())];
    assert_eq!(never(&follower), wanted.map(|(label, why)| (label.to_owned(), why)));
    assert!(follower.end(Timestamp::UNIX_EPOCH).is_err());
}

#[test]
fn a_replica_that_is_no_part_of_the_job_any_more_is_not_missed() {
    let (logs, found) = (logs(&[]), found(Some(job(&Value::Null))));
    let mut follower = follower(&logs, &found);
    let all = vec![runs(0, "a"), runs(1, "b"), waits(7, "scaled-away")];
    hear(&mut follower, News::Pods(all));
    hear(&mut follower, News::Gone(waits(7, "scaled-away")));
    assert_eq!(never(&follower), []);
}

#[test]
fn replicas_that_had_no_pod_at_all_are_named_as_without_following() {
    let (logs, found) = (logs(&[]), found(Some(job(&ended("Succeeded")))));
    let mut follower = follower(&logs, &found);
    hear(&mut follower, News::Pods(vec![runs(0, "a")]));
    let told = never(&follower);
    assert_eq!(told.len(), 1);
    assert!(told[0].0 == "worker-1" && told[0].1.contains("cleanPodPolicy All"), "{told:?}");
    // What was read before its pod went is no loss.
    hear(&mut follower, News::Gone(runs(0, "a")));
    assert_eq!(never(&follower).len(), 1);
}

#[test]
fn a_log_that_was_away_and_came_back_is_not_missed() {
    let (logs, found) = (logs(&[]), found(Some(job(&Value::Null))));
    let mut follower = follower(&logs, &found);
    hear(&mut follower, News::Pods(vec![runs(0, "a"), runs(1, "b")]));
    hear(&mut follower, News::Away("worker-0".into(), "its node is away".into()));
    hear(&mut follower, News::Away("worker-1".into(), "its node is away".into()));
    let line = crate::commands::job_logs::source::Line { time: None, text: Vec::new() };
    hear(&mut follower, News::Line("worker-0".into(), line));
    assert_eq!(never(&follower), [("worker-1".to_owned(), "its node is away".to_owned())]);
    hear(&mut follower, News::End("worker-1".into()));
    assert_eq!(never(&follower), []);
}

#[test]
fn a_pod_alone_is_over_when_its_containers_are_whatever_its_phase_says() {
    let (logs, found) = (logs(&[]), found(None));
    let mut follower = follower(&logs, &found);
    hear(&mut follower, News::Pods(vec![runs(0, "a")]));
    assert!(!follower.has_finished());
    let done = pod(0, "a", "Running", &json!({"terminated": {"exitCode": 0}}));
    hear(&mut follower, News::Pod(done));
    assert!(follower.has_finished());
}

#[test]
fn pods_without_their_job_are_followed_until_the_last_has_ended() {
    let (logs, found) = (logs(&[]), found(None));
    let mut follower = follower(&logs, &found);
    let done = |index, uid| pod(index, uid, "Succeeded", &json!({"terminated": {"exitCode": 0}}));
    hear(&mut follower, News::Pods(vec![runs(0, "a"), runs(1, "b")]));
    hear(&mut follower, News::Pod(done(0, "a")));
    assert!(!follower.has_finished());
    hear(&mut follower, News::Gone(runs(1, "b")));
    hear(&mut follower, News::Gone(done(0, "a")));
    assert!(follower.has_finished());
}

#[test]
fn only_replicas_that_are_wanted_are_missed() {
    let (logs, found) = (logs(&["--replica=worker-1"]), found(Some(job(&ended("Failed")))));
    let mut follower = follower(&logs, &found);
    hear(&mut follower, News::Pods(vec![waits(0, "a"), runs(1, "b")]));
    assert_eq!(never(&follower), []);
}

#[test]
fn of_many_replicas_that_wait_for_the_same_a_few_are_told() {
    let (logs, found) = (logs(&[]), found(Some(job(&Value::Null))));
    let mut follower = follower(&logs, &found);
    let all: Vec<Value> = (0..20).map(|index| waits(index, &index.to_string())).collect();
    hear(&mut follower, News::Pods(all));
    assert_eq!(follower.same.values().copied().collect::<Vec<_>>(), [20]);
    assert_eq!(follower.told.len(), 20, "each is known to wait for it");
}
