//! Replicas of which only their nodes tell that they cannot be reached.

use serde_json::json;
use trainyard_api::ConditionType::{Restarting, Running};

use crate::tfjob::world::World;

/// Replicas that are unavailable, with the reason of each.
fn away(w: &World) -> Vec<(String, String)> {
    let list = w.typed().unavailable_replicas;
    list.into_iter().map(|one| (one.replica, one.reason)).collect()
}

fn unreachable(replica: &str) -> (String, String) {
    (replica.to_owned(), "NodeUnreachable".to_owned())
}

fn message(w: &World) -> String {
    w.holding(Restarting).map(|condition| condition.message).unwrap_or_default()
}

fn told(w: &World) -> usize {
    w.reasons().iter().filter(|reason| **reason == "TFJobRestarting").count()
}

/// A job of two workers of which the second waits on its node.
fn half_started() -> World {
    let mut w = World::with(&[("Worker", 2, "OnFailure")]);
    w.settle();
    w.start("worker-0");
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T"]);
    w
}

#[test]
fn a_replica_that_was_not_ready_is_away_when_its_node_is_lost() {
    let mut w = World::with(&[("Worker", 2, "OnFailure")]);
    w.settle();
    w.start_all();
    w.unready("worker-1");
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    let since = w.now;
    w.silence_node("worker-1");
    w.pass_ms(7_000);
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(away(&w), [unreachable("worker-1")]);
    assert_eq!(w.typed().unavailable_replicas[0].since, since, "as the node says");
    assert_eq!(w.status["replicaStatuses"]["Worker"]["active"], 1);
    w.find_all_nodes();
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    assert_eq!((w.creates.len(), w.deletes.len()), (2, 0));
}

#[test]
fn a_replica_that_never_started_is_named_while_its_node_is_lost() {
    let mut w = half_started();
    let since = w.now;
    w.silence_node("worker-1");
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(away(&w), [unreachable("worker-1")]);
    let wanted = format!(
        "job j is restarting because worker-1 does not run since {since}: the node of pod \
         j-worker-1 cannot be reached."
    );
    assert_eq!((message(&w), told(&w)), (wanted, 1));
    assert_eq!(w.status["replicaStatuses"]["Worker"]["startedIndexes"], "0");
    w.find_all_nodes();
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T"], "it starts as if nothing had been");
    assert_eq!(away(&w), []);
    w.start("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
}

#[test]
fn a_replica_that_never_started_is_named_until_its_pod_has_gone() {
    let mut w = half_started();
    w.silence_node("worker-1");
    w.pass_ms(300_000);
    w.disrupt("worker-1", "DeletionByTaintManager");
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(away(&w), [unreachable("worker-1")]);
    w.pass_ms(330_000);
    w.settle_counts();
    assert_eq!(w.creates.iter().filter(|name| *name == "j-worker-1").count(), 2);
    assert_eq!(w.conditions(), ["Created T"], "its successor waits like any other pod");
    assert_eq!((away(&w).len(), told(&w)), (0, 1));
    w.start("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
}

#[test]
fn a_replica_that_was_added_and_never_started_is_named() {
    let mut w = half_started();
    w.start("worker-1");
    w.settle_counts();
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(3);
    w.settle_counts();
    w.silence_node("worker-2");
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(away(&w), [unreachable("worker-2")]);
    w.find_all_nodes();
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"], "as before it was lost");
    assert!(!w.has("worker-3") && w.deletes.is_empty());
}

#[test]
fn whoever_is_deleted_meanwhile_without_a_trace_is_made_anew() {
    let mut w = half_started();
    w.start("worker-1");
    w.unready("worker-1");
    w.settle_counts();
    w.silence_node("worker-1");
    w.settle_counts();
    assert_eq!(away(&w), [unreachable("worker-1")]);
    let since = w.typed().unavailable_replicas[0].since;
    w.pods.remove("j-worker-1");
    w.pass_ms(60_000);
    w.settle_counts();
    assert!(w.has("worker-1"));
    assert_eq!(away(&w), [("worker-1".to_owned(), "Deleted".to_owned())]);
    assert_eq!(w.typed().unavailable_replicas[0].since, since);
    assert!(w.holding(Running).is_none());
}

#[test]
fn an_attempt_that_cannot_begin_says_on_whom_it_waits() {
    let mut w = World::with(&[("Worker", 3, "OnFailure")]).policy("restartScope", "Job");
    w.settle();
    w.start_all();
    w.settle_counts();
    w.silence_node("worker-2");
    w.exit("worker-0", 1);
    w.settle();
    w.pods.retain(|name, _| name == "j-worker-2");
    w.settle_counts();
    assert_eq!(w.pod_names(), ["j-worker-2"], "nobody else is made before it has gone");
    assert!(away(&w).contains(&unreachable("worker-2")), "{:?}", away(&w));
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
}

#[test]
fn a_start_that_takes_too_long_names_the_lost_node() {
    let mut w = half_started().policy("startTimeoutSeconds", 30);
    w.silence_node("worker-1");
    w.pass_ms(60_000);
    w.settle();
    let failure = w.typed().failure.unwrap();
    assert_eq!(failure.pod, "j-worker-1");
    assert!(failure.message.contains("its node cannot be reached"), "{}", failure.message);
}

#[test]
fn a_node_of_which_nobody_knows_since_when_is_lost_since_it_is_told() {
    let mut w = half_started();
    w.pod("worker-1")["status"] = json!({"phase": "Unknown"});
    let now = w.now;
    w.settle();
    assert_eq!(w.typed().unavailable_replicas[0].since, now);
}
