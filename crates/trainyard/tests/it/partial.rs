//! `logs`, `explain` and `describe` where not everything may be read or reached.

use serde_json::{Value, json};

use crate::mnist::{EVENTS, JOB, PODS, condition, event, events, job, list, pod, runs, waits};
use crate::server::{Route, Server, refusal};

const AWAY: &str = "Get \"https://10.0.0.3:10250/containerLogs/x\": dial tcp: no route to host";

fn forbidden(path: &'static str, resource: &str) -> Route {
    let words = format!(
        "{resource} is forbidden: User \"ann\" cannot list resource \"{resource}\" at the cluster scope"
    );
    Route::new(path, 403, refusal(403, &words))
}

fn running() -> Route {
    Route::new(JOB, 200, job(4, &condition("Running")))
}

/// Four workers: three run, one waits for a node.
fn pods() -> Route {
    Route::new(PODS, 200, list(&[runs(0, "p0"), runs(1, "p1"), runs(2, "p2"), waits(3, "p3")]))
}

fn no_pods() -> Route {
    Route::new(PODS, 200, list(&[]))
}

/// The log of the first worker.
fn log() -> Route {
    let log = "2026-01-01T00:00:00Z one\n2026-01-01T00:00:01Z two\n";
    Route::new("/api/v1/namespaces/team/pods/mnist-worker-0/log", 200, json!(log))
}

#[test]
fn logs_show_what_they_reach_and_name_the_rest() {
    let no_right =
        "pods \"mnist-worker-1\" is forbidden: User \"ann\" cannot get resource \"pods/log\"";
    let second = "/api/v1/namespaces/team/pods/mnist-worker-1/log";
    let third = "/api/v1/namespaces/team/pods/mnist-worker-2/log";
    let server = Server::with(vec![
        running(),
        pods(),
        log(),
        Route::new(second, 403, refusal(403, no_right)),
        Route::new(third, 500, refusal(500, AWAY)),
    ]);
    let ended = server.run(&["logs", "mnist"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert_eq!(ended.out, "worker-0 | one\nworker-0 | two\n");
    // What is known before anything is asked comes first.
    let said = [
        "worker-3: it has not started: 0/3 nodes are available: 3 Insufficient cpu.".to_owned(),
        "worker-1: forbidden: User \"ann\" cannot get resource \"pods/log\"".to_owned(),
        format!("worker-2: its node b cannot be asked: {AWAY}"),
    ];
    assert_eq!(ended.err, said.map(|line| format!("not shown: {line}\n")).concat());
    let ended = server.run(&["logs", "mnist", "--replica", "worker-0"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "one\ntwo\n"), "{}", ended.err);
    let ended = server.run(&["logs", "mnist", "--replica", "worker-7"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("\"mnist\" has no replica \"worker-7\""), "{}", ended.err);
    assert!(
        ended.err.contains("it has worker-0, worker-1, worker-2 and worker-3"),
        "{}",
        ended.err
    );
}

#[test]
fn a_lost_node_is_said_to_be_lost() {
    let mut lost = runs(0, "p0");
    lost["status"]["conditions"] = json!([
        {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"},
        {"type": "ContainersReady", "status": "True"}]);
    let first = "/api/v1/namespaces/team/pods/mnist-worker-0/log";
    let server = Server::with(vec![
        Route::new(JOB, 200, job(1, &condition("Running"))),
        Route::new(PODS, 200, list(&[lost])),
        Route::new(first, 500, refusal(500, AWAY)),
        Route::new(EVENTS, 200, list(&[])),
    ]);
    let ended = server.run(&["logs", "mnist"]);
    assert_eq!(ended.code, 1);
    let said = "not shown: worker-0: its node b, which the cluster has not reached for ";
    assert!(ended.err.starts_with(said), "{}", ended.err);
    assert!(ended.err.ends_with(&format!(", cannot be asked: {AWAY}\n")), "{}", ended.err);
    let ended = server.run(&["describe", "mnist"]);
    let said = "mnist-worker-0: Running (its node cannot be reached) on b";
    assert!(ended.out.contains(said), "{}", ended.out);
}

#[test]
fn a_job_that_may_not_be_read_is_known_by_its_pods() {
    let first = "/api/v1/namespaces/team/pods/mnist-worker-0/log";
    let server = Server::with(vec![
        forbidden(JOB, "tfjobs"),
        Route::new(PODS, 200, list(&[runs(0, "p0")])),
        Route::new(first, 200, json!("2026-01-01T00:00:00Z one\n")),
    ]);
    let ended = server.run(&["logs", "mnist"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "one\n"), "{}", ended.err);
    assert!(ended.err.contains("only its pods are known: tfjobs is forbidden"), "{}", ended.err);
}

#[test]
fn of_a_replaced_pod_is_said_what_became_of_the_one_before() {
    let mut status = condition("Running");
    status["replicaRecords"] = json!([
        {"replica": "worker-0", "restarts": 1, "lastRestartTime": "2026-01-01T00:00:00Z"}]);
    let drained = json!({"kind": "Pod", "name": "mnist-worker-1", "uid": "before"});
    let present = json!({"kind": "Pod", "name": "mnist-worker-2", "uid": "p2"});
    let all =
        [event("Killing", "Stopping\ncontainer tensorflow", &drained), event("X", "y", &present)];
    let server = Server::with(vec![
        Route::new(JOB, 200, job(4, &status)),
        pods(),
        Route::new(EVENTS, 200, list(&all)),
    ]);
    let ended = server.run(&["logs", "mnist", "--previous"]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{}", ended.err);
    let said = "not shown: worker-0 and worker-1: the pod before the present one is gone, and a cluster \
        keeps the logs of deleted pods nowhere\n  worker-0: its present pod was made ";
    assert!(ended.err.starts_with(said), "{}", ended.err);
    assert!(ended.err.contains("ago; the operator replaced one "), "{}", ended.err);
    assert!(ended.err.contains(": Killing: Stopping container tensorflow\n"), "{}", ended.err);
    assert!(!ended.err.contains("worker-2"), "{}", ended.err);
}

#[test]
fn where_nothing_tells_of_an_earlier_pod_that_is_said() {
    let routes = || vec![running(), pods()];
    let mut all = routes();
    all.push(events());
    let ended = Server::with(all).run(&["logs", "mnist", "--previous"]);
    assert_eq!(ended.code, 1);
    let said = "no earlier run of \"mnist\" is known: no container was restarted in its present pod, and \
        neither the job's status nor events tell of earlier pods";
    assert!(ended.err.contains(said), "{}", ended.err);
    let mut all = routes();
    all.push(forbidden(EVENTS, "events"));
    let ended = Server::with(all).run(&["logs", "mnist", "--previous"]);
    let said = "warning: events, which tell of earlier pods, cannot be read: events is forbidden";
    assert!(ended.err.starts_with(said), "{}", ended.err);
}

#[test]
fn a_job_whose_pods_are_gone_tells_what_its_status_knows() {
    let status = json!({
        "conditions": [{"type": "Failed", "status": "True", "message": "worker-1 failed"}],
        "failure": {"pod": "mnist-worker-1", "message": "Traceback\nKeyError"},
    });
    let server = Server::with(vec![Route::new(JOB, 200, job(4, &status)), no_pods(), events()]);
    let expected = "mnist: Failed: worker-1 failed\n\
        last words of mnist-worker-1:\n  Traceback\n  KeyError\n\
        not shown: worker-0, worker-1, worker-2 and worker-3: it has no pod: cleanPodPolicy All deletes \
        all pods when the job ends\n";
    // Whoever follows it is told as much.
    for words in [&["logs", "mnist"][..], &["logs", "-f", "mnist"]] {
        let ended = server.run(words);
        assert_eq!((ended.code, ended.err.as_str()), (1, expected), "{words:?}");
    }
    // One that is gone itself is known by its events.
    let ended = server.run(&["logs", "digits"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("the job \"digits\" is gone"), "{}", ended.err);
    assert!(ended.err.contains("TFJobSucceeded: all is done"), "{}", ended.err);
    // So is a pod.
    let ended = server.run(&["logs", "pod/mnist-worker-3"]);
    assert_eq!(ended.code, 1);
    let said = "the pod \"mnist-worker-3\" is gone, and its log with it; the last event of it, ";
    assert!(ended.err.contains(said), "{}", ended.err);
}

#[test]
fn pods_that_outlive_their_job_are_shown() {
    let first = "/api/v1/namespaces/team/pods/mnist-worker-0/log";
    let server = Server::with(vec![
        Route::new(PODS, 200, list(&[runs(0, "p0")])),
        Route::new(first, 200, json!("2026-01-01T00:00:00Z one\n")),
        events(),
    ]);
    for word in ["mnist", "tfjob/mnist"] {
        let ended = server.run(&["logs", word]);
        assert_eq!((ended.code, ended.out.as_str()), (0, "one\n"), "{}", ended.err);
        assert!(ended.err.contains("the job \"mnist\" is gone; these are pods"), "{}", ended.err);
    }
}

#[test]
fn explain_works_with_rights_in_one_namespace() {
    let server = Server::with(vec![
        running(),
        pods(),
        events(),
        forbidden("/api/v1/pods", "pods"),
        forbidden("/api/v1/nodes", "nodes"),
    ]);
    let ended = server.run(&["explain", "mnist"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for part in [
        "tfjob.kubeflow.org/mnist: 1 pod has no node\n",
        "  pods       worker-3: 0/3 nodes are available: 3 Insufficient cpu.\n",
        "FailedScheduling of pod/mnist-worker-3: no room\n",
        "  not seen   nodes (what each has left, and what keeps it out): forbidden: User \"ann\" cannot",
        "takes the right to list pods and nodes\n",
        "ClusterRole trainyard-explain",
    ] {
        assert!(ended.out.contains(part), "{part}\n--- in\n{}", ended.out);
    }
    let ended = server.run(&["explain", "mnist", "-o", "json"]);
    let shown: Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(shown["notSeen"][1]["resource"], "nodes");
    assert_eq!(shown["waitingPods"][0]["replica"], "worker-3");
}

#[test]
fn explain_tells_what_pods_wait_for_that_have_their_nodes() {
    let status = json!({"phase": "Pending", "containerStatuses": [{"name": "tensorflow", "state":
        {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]});
    let placed = pod(0, "p0", &json!({"nodeName": "b"}), &status);
    let own = json!({"kind": "Pod", "name": "mnist-worker-0"});
    let mut old = event("Failed", "of a job of the same name before this one", &own);
    old["lastTimestamp"] = json!("2025-12-30T00:00:00Z");
    let all = [event("Failed", "no such image", &own), old];
    let server = Server::with(vec![
        Route::new(JOB, 200, job(1, &condition("Created"))),
        Route::new(PODS, 200, list(&[placed])),
        Route::new(EVENTS, 200, list(&all)),
    ]);
    let ended = server.run(&["explain", "mnist"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let said = "tfjob.kubeflow.org/mnist: 1 pod has not started yet\n  \
        pods       worker-0: ImagePullBackOff: no such image\n  event      ";
    assert!(ended.out.starts_with(said), "{}", ended.out);
    assert_eq!(ended.out.lines().count(), 3, "{}", ended.out);
}

#[test]
fn a_job_is_described_without_the_pods_and_events_that_may_not_be_read() {
    let server =
        Server::with(vec![running(), forbidden(PODS, "pods"), forbidden(EVENTS, "events")]);
    let ended = server.run(&["describe", "mnist"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for part in
        ["State:        Running\n", "Pods:         not seen: pods is", "Events:       not seen:"]
    {
        assert!(ended.out.contains(part), "{part}\n--- in\n{}", ended.out);
    }
}

#[test]
fn messages_of_several_lines_do_not_tear_tables() {
    let server = Server::with(vec![events()]);
    let ended = server.run(&["events", "--no-headers"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let rows: Vec<&str> = ended.out.lines().collect();
    assert_eq!(rows.len(), 2, "{}", ended.out);
    assert!(rows[0].ends_with("Pod/mnist-worker-3   no room"), "{}", ended.out);
}
