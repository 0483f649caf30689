//! What is said of replicas without pods, case by case.

use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:00:30Z";

fn job(policy: Option<&str>, condition: &str) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "mnist"},
        "spec": {"runPolicy": {"cleanPodPolicy": policy}, "tfReplicaSpecs": {
            "PS": {"replicas": 1}, "Worker": {"replicas": 2}}},
        "status": {"conditions": [
            {"type": "Created", "status": "True"},
            {"type": condition, "status": "True", "message": "worker-1\nended",
             "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    })
}

fn volcanos(phase: &str) -> Value {
    json!({
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "vj"},
        "spec": {"tasks": [{"name": "ps", "replicas": 1}]},
        "status": {"state": {"phase": phase}},
    })
}

fn pod(role: &str, index: &str) -> Value {
    json!({"metadata": {"labels": {
        "training.kubeflow.org/replica-type": role,
        "training.kubeflow.org/replica-index": index}}})
}

/// What is said of the first replica that has no pod.
fn first(job: &Value, pods: &[Value]) -> String {
    let gone = replicas(job, pods, NOW.parse().unwrap());
    gone.into_iter().next().map(|(_, why)| why).unwrap_or_default()
}

#[test]
fn replicas_without_pods_are_named_with_what_the_policy_does() {
    let pods = [pod("worker", "0"), pod("worker", "1")];
    let gone = replicas(&job(Some("Running"), "Succeeded"), &pods, NOW.parse().unwrap());
    assert_eq!(gone.len(), 1);
    assert_eq!(gone[0].0, "ps-0");
    for (policy, said) in [
        (Some("All"), "cleanPodPolicy All deletes all pods when the job ends"),
        (
            Some("Running"),
            "cleanPodPolicy Running deletes pods that still wait or run when the job ends",
        ),
        (None, "unless it was told otherwise, the operator deletes pods that still wait or run"),
        (Some("None"), "it has no pod, though cleanPodPolicy None keeps those that are there"),
    ] {
        let told = first(&job(policy, "Succeeded"), &pods);
        assert!(told.contains(said), "{told}");
    }
}

#[test]
fn a_job_that_is_stopped_deletes_its_pods_whatever_the_policy() {
    let mut job = job(Some("None"), "Failed");
    job["status"]["failure"] = json!({"kind": "DeadlineExceeded"});
    let said = first(&job, &[]);
    assert!(said.ends_with("are deleted when a job fails by DeadlineExceeded"), "{said}");
    job["status"]["failure"] = json!({"kind": "InvalidSpec"});
    assert_eq!(first(&job, &[]), "it has no pod: the job cannot be run as it is written");
}

#[test]
fn a_completed_replica_is_no_victim_of_the_policy() {
    let counts = json!({"PS": {"completedIndexes": "0"}});
    for condition in ["Succeeded", "Running"] {
        let mut job = job(Some("Running"), condition);
        job["status"]["replicaStatuses"] = counts.clone();
        assert_eq!(first(&job, &[]), "it completed, and its pod has been deleted since");
    }
    let mut job = volcanos("Running");
    job["status"]["pods"] = json!({"vj-ps-0": {"uid": "u", "phase": "Succeeded"}});
    assert_eq!(first(&job, &[]), "it completed, and its pod has been deleted since");
    let mut job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"},
        "spec": {"completionMode": "Indexed", "completions": 1},
        "status": {"completedIndexes": "0"}});
    assert_eq!(first(&job, &[]), "it completed, and its pod has been deleted since");
    job["status"] = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    assert!(first(&job, &[]).starts_with("it has no pod: the Job has ended"));
}

#[test]
fn a_suspended_job_has_no_pods_even_of_replicas_that_completed() {
    let mut held = job(None, "Suspended");
    held["spec"]["runPolicy"]["suspend"] = json!(true);
    held["status"]["replicaStatuses"] = json!({"PS": {"completedIndexes": "0"}});
    assert_eq!(first(&held, &[]), "it has no pod: the job is suspended");
    assert_eq!(first(&volcanos("Aborted"), &[]), "it has no pod: the job is suspended");
    // A job that has ended is not suspended any more, whatever its field says.
    let mut ended = job(Some("All"), "Succeeded");
    ended["spec"]["runPolicy"]["suspend"] = json!(true);
    assert!(first(&ended, &[]).contains("cleanPodPolicy All"));
}

#[test]
fn a_job_that_goes_on_says_what_its_status_knows_of_the_replica() {
    let mut running = job(None, "Running");
    assert_eq!(first(&running, &[]), "it has no pod at present");
    running["status"]["unavailableReplicas"] = json!([{"replica": "ps-0",
        "since": "2026-01-01T00:00:00Z", "reason": "Deleted", "message": "its pod has been deleted."}]);
    let said = "it has no pod, and has not run for 30s: its pod has been deleted.";
    assert_eq!(first(&running, &[]), said);
    let refused = job(None, "ReplicaFailure");
    assert_eq!(first(&refused, &[]), "it has no pod: worker-1 ended");
    let mut new = refused;
    new["status"] = Value::Null;
    assert_eq!(first(&new, &[]), "it has no pod: no operator has looked at the job yet");
    assert_eq!(first(&volcanos("Pending"), &[]), "it has no pod: the job is Pending");
    assert!(first(&volcanos("Completed"), &[]).contains("when a Volcano Job ends"));
}

#[test]
fn a_finished_job_says_how() {
    assert_eq!(finished(&job(None, "Succeeded")).as_deref(), Some("Succeeded"));
    assert_eq!(finished(&job(None, "Failed")).as_deref(), Some("Failed: worker-1 ended"));
    assert_eq!(finished(&job(None, "Running")), None);
    assert_eq!(finished(&volcanos("Completed")).as_deref(), Some("Completed"));
    assert_eq!(finished(&volcanos("Aborted")).as_deref(), Some("Aborted"));
    assert_eq!(finished(&volcanos("Restarting")), None);
}

#[test]
fn status_tells_the_end_and_the_last_words() {
    let mut job = job(Some("All"), "Failed");
    job["status"]["failure"] = json!({"pod": "mnist-worker-1", "message": "Traceback\nKeyError"});
    let now = NOW.parse().unwrap();
    let said = what_is_known("mnist", &job, now);
    assert_eq!(
        said,
        "mnist: Failed 30s ago: worker-1 ended\n\
         last words of mnist-worker-1:\n  Traceback\n  KeyError\n"
    );
    let mut aborted = volcanos("Aborted");
    assert_eq!(what_is_known("vj", &aborted, now), "vj: Aborted\n");
    aborted["status"]["state"]["lastTransitionTime"] = json!("2026-01-01T00:00:20Z");
    assert_eq!(what_is_known("vj", &aborted, now), "vj: Aborted 10s ago\n");
    assert_eq!(what_is_known("x", &json!({}), Timestamp::UNIX_EPOCH), "");
}
