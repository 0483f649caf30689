//! `logs -f` of jobs whose pods, nodes and server come and go.

use serde_json::json;

use crate::mnist::{JOB, PODS, condition, job, list, pod, runs, waits};
use crate::server::{Asked, Route, Server, refusal};

const LOG: &str = "/api/v1/namespaces/team/pods/mnist-worker-0/log";
const BEFORE: &str = "/api/v1/namespaces/team/pods/mnist-worker-0/log?previous";
const POD: &str = "/api/v1/namespaces/team/pods/mnist-worker-0";

/// A job of one worker that succeeds at some time.
fn until(when: fn(&Asked) -> bool) -> Route {
    let running = Route::new(JOB, 200, job(1, &condition("Running")));
    running.then(when, 200, job(1, &condition("Succeeded")))
}

/// Its pod, which has ended.
fn done() -> Route {
    let status = json!({"phase": "Succeeded", "containerStatuses": [{"name": "tensorflow",
        "restartCount": 0, "state": {"terminated": {"exitCode": 0}}}]});
    Route::new(POD, 200, pod(0, "p0", &json!({"nodeName": "b"}), &status))
}

fn text(lines: &str) -> serde_json::Value {
    json!(lines)
}

#[test]
fn the_successor_of_a_pod_that_never_started_is_followed() {
    let server = Server::with(vec![
        until(|asked| asked.times(LOG) > 0),
        Route::new(PODS, 200, list(&[waits(0, "a")])).then(
            |asked| asked.times(PODS) > 2,
            200,
            list(&[runs(0, "b")]),
        ),
        Route::new(LOG, 200, text("2026-01-01T00:00:00Z one\n")),
        done(),
    ]);
    let ended = server.run(&["logs", "-f", "mnist"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "worker-0 | one\n"), "{}", ended.err);
    let said = "worker-0 waits: 0/3 nodes are available: 3 Insufficient cpu.\nmnist: Succeeded\n";
    assert_eq!(ended.err, said);
}

#[test]
fn a_node_that_comes_back_is_asked_for_the_rest() {
    let server = Server::with(vec![
        until(|asked| asked.times(LOG) > 4),
        Route::new(PODS, 200, list(&[runs(0, "p0")])),
        Route::new(LOG, 500, refusal(500, "dial tcp: no route to host")).then(
            |asked| asked.times(LOG) > 4,
            200,
            text("2026-01-01T00:00:00Z one\n"),
        ),
        done(),
    ]);
    let ended = server.run(&["logs", "-f", "mnist"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "worker-0 | one\n"), "{}", ended.err);
    let said = "worker-0: its node b cannot be asked: dial tcp: no route to host; it is asked again and \
        again\n";
    assert!(ended.err.starts_with(said), "{}", ended.err);
}

#[test]
fn a_node_that_does_not_come_back_leaves_its_log_unshown() {
    let server = Server::with(vec![
        until(|asked| asked.times(LOG) > 3),
        Route::new(PODS, 200, list(&[runs(0, "p0")])),
        Route::new(POD, 200, runs(0, "p0")),
        Route::new(LOG, 500, refusal(500, "dial tcp: no route to host")),
    ]);
    let ended = server.run(&["logs", "-f", "mnist"]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{}", ended.err);
    let said = "mnist: Succeeded\nnot shown: worker-0: its node b cannot be asked: dial tcp: no route to \
        host\n";
    assert!(ended.err.ends_with(said), "{}", ended.err);
}

#[test]
fn a_run_that_ended_while_its_node_was_away_is_read_to_its_end_and_the_next_one_once() {
    let mut again = runs(0, "p0");
    again["status"]["containerStatuses"][0]["restartCount"] = json!(1);
    let is_back: fn(&Asked) -> bool = |asked| asked.times(LOG) > 1;
    let server = Server::with(vec![
        until(|asked| asked.times(BEFORE) > 0 && asked.times(LOG) > 2),
        Route::new(PODS, 200, list(&[runs(0, "p0")])).then(is_back, 200, list(&[again.clone()])),
        Route::new(POD, 200, runs(0, "p0")).then(is_back, 200, again),
        Route::new(LOG, 500, refusal(500, "dial tcp: no route to host")).then(
            |asked| asked.times(LOG) > 2,
            200,
            text("2026-01-01T00:01:00Z second\n"),
        ),
        Route::new(BEFORE, 200, text("2026-01-01T00:00:00Z first\n")),
    ]);
    let ended = server.run(&["logs", "-f", "mnist"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for line in ["worker-0 | first\n", "worker-0 | second\n"] {
        assert_eq!(ended.out.matches(line).count(), 1, "{}", ended.out);
    }
}

#[test]
fn a_log_that_ends_before_its_container_is_taken_up_again() {
    let server = Server::with(vec![
        until(|asked| asked.times(LOG) > 1),
        Route::new(PODS, 200, list(&[runs(0, "p0")])),
        Route::new(LOG, 200, text("2026-01-01T00:00:00Z one\n")).then(
            |asked| asked.times(LOG) > 1,
            200,
            text("2026-01-01T00:00:00Z one\n2026-01-01T00:00:00.5Z two\n"),
        ),
        Route::new(POD, 200, runs(0, "p0")).then(
            |asked| asked.times(LOG) > 1,
            200,
            pod(0, "p0", &json!({}), &json!({"phase": "Succeeded"})),
        ),
    ]);
    let ended = server.run(&["logs", "-f", "mnist"]);
    let lines = "worker-0 | one\nworker-0 | two\n";
    assert_eq!((ended.code, ended.out.as_str()), (0, lines), "{}", ended.err);
}

#[test]
fn a_server_that_is_away_for_moments_ends_nothing() {
    let away = refusal(500, "etcdserver: leader changed");
    let is_away: fn(&Asked) -> bool = |asked| (3..5).contains(&asked.times(PODS));
    let server = Server::with(vec![
        until(|asked| asked.times(PODS) > 5),
        Route::new(PODS, 200, list(&[runs(0, "p0")])).then(is_away, 500, away),
        Route::new(LOG, 200, text("2026-01-01T00:00:00Z one\n")),
        done(),
    ]);
    let ended = server.run(&["logs", "-f", "mnist"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "worker-0 | one\n"), "{}", ended.err);
    assert_eq!(ended.err, "etcdserver: leader changed; it is asked again\nmnist: Succeeded\n");
}

#[test]
fn a_job_that_ends_without_a_pod_of_a_replica_names_it() {
    let server =
        Server::with(vec![until(|asked| asked.times(PODS) > 3), Route::new(PODS, 200, list(&[]))]);
    let ended = server.run(&["logs", "-f", "mnist"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    let said = "mnist: Succeeded\nnot shown: worker-0: it has no pod: cleanPodPolicy All deletes all pods \
        when the job ends\n";
    assert!(ended.err.ends_with(said), "{}", ended.err);
}

#[test]
fn a_suspended_job_says_that_it_is_waited_for() {
    let mut suspended = job(1, &condition("Suspended"));
    suspended["spec"]["runPolicy"]["suspend"] = json!(true);
    let ended = |asked: &Asked| asked.times(JOB) > 4;
    let server = Server::with(vec![
        Route::new(JOB, 200, suspended).then(ended, 200, job(1, &condition("Succeeded"))),
        Route::new(PODS, 200, list(&[])),
    ]);
    let ended = server.run(&["logs", "-f", "mnist"]);
    let said = "mnist: it is suspended; its lines come when it goes on\nmnist: Succeeded\n";
    assert!(ended.err.starts_with(said), "{}", ended.err);
}
