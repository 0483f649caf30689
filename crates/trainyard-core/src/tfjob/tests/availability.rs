//! A job of which a replica is away says so: which, since when, and why.

use jiff::Timestamp;
use serde_json::json;
use trainyard_api::ConditionType::{Restarting, Running};

use crate::tfjob::world::World;

fn running(replicas: &[(&str, u32, &str)]) -> World {
    let mut w = World::with(replicas);
    w.settle();
    w.start_all();
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    w
}

/// Replicas that are unavailable, with the reason of each.
fn away(w: &World) -> Vec<(String, String)> {
    let list = w.typed().unavailable_replicas;
    list.into_iter().map(|one| (one.replica, one.reason)).collect()
}

fn pair(replica: &str, reason: &str) -> (String, String) {
    (replica.to_owned(), reason.to_owned())
}

fn message(w: &World) -> String {
    w.holding(Restarting).map(|condition| condition.message).unwrap_or_default()
}

#[test]
fn a_deleted_replica_is_named_until_its_successor_runs() {
    let mut w = running(&[("Worker", 2, "OnFailure")]);
    let since = w.now;
    w.delete_pod("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(away(&w), [pair("worker-1", "Deleted")]);
    assert_eq!(
        message(&w),
        format!(
            "job j is restarting because worker-1 does not run since {since}: pod j-worker-1 has \
             been deleted."
        )
    );
    let told = |w: &World| w.reasons().iter().filter(|it| **it == "TFJobRestarting").count();
    assert_eq!(told(&w), 1);
    w.pass_ms(20_000);
    w.finish_deletions();
    w.settle_counts();
    assert!(w.has("worker-1"), "its successor waits for room");
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(w.typed().unavailable_replicas[0].since, since);
    assert_eq!(told(&w), 1, "and nothing new is to be told");
    w.start("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    assert_eq!(away(&w), []);
}

#[test]
fn a_replica_on_a_lost_node_is_named_from_the_first_sign_to_its_return() {
    let mut w = running(&[("Worker", 1, "OnFailure"), ("PS", 1, "Never")]);
    let since = w.now;
    w.lose_node("ps-0");
    w.pass_ms(7_000);
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(away(&w), [pair("ps-0", "NodeUnreachable")]);
    assert_eq!(w.typed().unavailable_replicas[0].since, since, "as the control plane says");
    assert_eq!(w.status["replicaStatuses"]["PS"]["active"], json!(null));
    assert!(w.deletes.is_empty(), "it may come back");
    w.pass_ms(300_000);
    w.disrupt("ps-0", "DeletionByTaintManager");
    w.settle_counts();
    assert_eq!(away(&w), [pair("ps-0", "DeletionByTaintManager")]);
    assert_eq!(w.typed().unavailable_replicas[0].since, since);
    w.pass_ms(330_000);
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"], "the new pod has not started");
    assert_eq!(w.creates.iter().filter(|name| *name == "j-ps-0").count(), 2);
    assert_eq!(w.typed().unavailable_replicas[0].since, since);
    w.start("ps-0");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
}

#[test]
fn a_node_that_comes_back_in_time_costs_nothing() {
    let mut w = running(&[("Worker", 2, "Never")]);
    w.lose_node("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    w.find_node("worker-1");
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    assert_eq!((w.creates.len(), w.typed().restarts), (2, 0));
}

#[test]
fn pods_of_phase_unknown_and_of_reason_node_lost_are_unreachable() {
    for status in [json!({"phase": "Unknown"}), json!({"phase": "Running", "reason": "NodeLost"})] {
        let mut w = running(&[("Worker", 2, "OnFailure")]);
        w.pod("worker-0")["status"] = status;
        w.settle();
        assert_eq!(away(&w), [pair("worker-0", "NodeUnreachable")]);
    }
}

#[test]
fn a_pod_that_its_own_probe_calls_unready_runs() {
    let mut w = running(&[("Worker", 1, "OnFailure")]);
    for (containers, reason) in
        [("False", "ContainersNotReady"), ("True", "ReadinessGatesNotReady")]
    {
        w.pod("worker-0")["status"]["conditions"] = json!([
            {"type": "ContainersReady", "status": containers, "reason": reason},
            {"type": "Ready", "status": "False", "reason": reason},
        ]);
        w.settle();
        assert_eq!(w.conditions(), ["Created T", "Running T"], "{reason}");
    }
}

#[test]
fn an_operator_that_was_away_says_so_too() {
    let mut w = running(&[("Worker", 3, "OnFailure")]);
    w.pods.remove("j-worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(away(&w), [pair("worker-1", "Deleted")]);
    assert!(w.has("worker-1"), "and has made its successor");
}

#[test]
fn a_replica_of_a_job_taken_over_may_be_away() {
    let mut w = running(&[("Worker", 2, "OnFailure")]);
    w.status["replicaStatuses"] = json!({"Worker": {"active": 2}});
    w.pods.remove("j-worker-0");
    w.settle();
    assert_eq!(away(&w), [pair("worker-0", "Deleted")]);
}

#[test]
fn a_replica_that_waits_to_come_back_keeps_the_job_restarting() {
    let mut w = running(&[("Worker", 2, "ExitCode")]);
    for round in 0..2 {
        w.exit("worker-1", 137);
        w.settle();
        assert_eq!(away(&w), [pair("worker-1", "Error")], "round {round}");
        assert!(message(&w).starts_with("job j is restarting because Worker replica(s) failed."));
        if round == 1 {
            assert!(!w.has("worker-1"), "ten seconds' pause");
            let since = w.typed().unavailable_replicas[0].since;
            w.pass_ms(9_000);
            w.settle_counts();
            assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
            assert_eq!(w.typed().unavailable_replicas[0].since, since);
            w.pass_ms(1_000);
            w.settle();
        }
        w.start("worker-1");
        w.settle_counts();
        assert_eq!(w.conditions(), ["Created T", "Running T"]);
    }
}

#[test]
fn a_kubelet_that_waits_before_the_next_start_is_named() {
    let mut w = running(&[("Worker", 1, "OnFailure")]);
    w.pod("worker-0")["status"]["containerStatuses"][0] = json!({"name": "tensorflow",
        "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "10s"}}});
    w.settle();
    assert_eq!(away(&w), [pair("worker-0", "CrashLoopBackOff")]);
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    w.restart_in_place("worker-0", 3);
    w.start("worker-0");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
}

#[test]
fn replicas_that_have_never_started_are_not_away() {
    let mut w = running(&[("Worker", 1, "OnFailure")]);
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(3);
    w.settle_counts();
    w.delete_pod("worker-2");
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"], "it is being scaled up");
    w.finish_deletions();
    w.settle();
    w.start_all();
    w.settle_counts();
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(1);
    w.settle_counts();
    w.finish_deletions();
    w.settle_counts();
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(3);
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"], "and down, and up again");
}

#[test]
fn a_job_runs_again_before_replicas_that_were_added_meanwhile() {
    let mut w = running(&[("Worker", 2, "ExitCode")]);
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(3);
    w.settle_counts();
    w.exit("worker-1", 137);
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    w.start("worker-1");
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"], "there is no room for the third yet");
}

#[test]
fn dynamic_workers_come_and_go_and_parameter_servers_do_not() {
    let mut w = World::with(&[("Worker", 2, "OnFailure"), ("PS", 1, "OnFailure")]);
    w.spec["enableDynamicWorker"] = true.into();
    w.settle();
    w.start_all();
    w.settle_counts();
    w.delete_pod("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    w.delete_pod("ps-0");
    w.settle();
    assert_eq!(away(&w), [pair("ps-0", "Deleted")]);
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    w.finish_deletions();
    w.settle();
    w.start("ps-0");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    w.delete_pod("worker-0");
    w.settle();
    assert_eq!(away(&w), [pair("worker-0", "Deleted"), pair("worker-1", "Deleted")]);
}

#[test]
fn of_many_the_first_are_listed_and_all_are_counted() {
    let mut w = running(&[("Worker", 50, "OnFailure")]);
    for index in 0..50 {
        w.delete_pod(&format!("worker-{index}"));
    }
    w.settle();
    assert_eq!(away(&w).len(), 20);
    assert!(message(&w).contains("Nor do 49 others: worker-1, worker-2, "), "{}", message(&w));
    let before = w.status_writes;
    w.finish_deletions();
    w.settle();
    w.start_all();
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    assert!(w.status_writes - before <= 3, "{} writes", w.status_writes - before);
}

#[test]
fn the_culprit_of_a_restart_of_the_whole_job_is_named() {
    let mut w = World::with(&[("Worker", 3, "OnFailure")]).policy("restartScope", "Job");
    w.settle();
    w.start_all();
    w.settle_counts();
    w.delete_pod("worker-1");
    w.settle();
    assert_eq!(away(&w), [pair("worker-1", "Deleted")], "its peers follow it");
    w.finish_deletions();
    w.settle_counts();
    w.start("worker-1");
    w.settle_counts();
    assert_eq!(away(&w), []);
    assert!(w.holding(Running).is_none(), "not before all run");
    w.start_all();
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
}

#[test]
fn a_job_that_has_ended_misses_nobody() {
    let mut w = running(&[("Worker", 2, "OnFailure")]);
    w.delete_pod("worker-1");
    w.settle();
    assert_eq!(away(&w), [pair("worker-1", "Deleted")]);
    w.exit("worker-0", 0);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting F", "Succeeded T"]);
    assert_eq!(away(&w), []);
}

#[test]
fn a_suspended_job_misses_nobody() {
    let mut w = running(&[("Worker", 2, "OnFailure")]);
    w.delete_pod("worker-1");
    w.settle();
    let mut w = w.policy("suspend", true);
    w.settle();
    assert_eq!(away(&w), []);
    w.finish_deletions();
    w.settle();
    let mut w = w.policy("suspend", false);
    w.settle_counts();
    assert!(w.holding(Restarting).is_none(), "it starts anew: {:?}", w.conditions());
}

#[test]
fn times_are_whole_seconds() {
    let mut w = running(&[("Worker", 1, "OnFailure")]);
    w.pass_ms(1_234);
    w.pods.clear();
    w.settle();
    let since = w.typed().unavailable_replicas[0].since;
    assert_eq!(since, Timestamp::from_second(since.as_second()).unwrap());
}
