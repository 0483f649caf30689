//! Objects that the API server refuses to create, and changes that come too late.

use serde_json::json;
use trainyard_api::ConditionType::ReplicaFailure;

use crate::tfjob::world::World;

const QUOTA: &str = "pods \"j-worker-1\" is forbidden: exceeded quota: small, requested: pods=1, \
                     used: pods=1, limited: pods=1";

fn words(w: &World) -> Option<String> {
    w.holding(ReplicaFailure)
        .map(|condition| format!("{}: {}", condition.reason, condition.message))
}

#[test]
fn a_refusal_is_a_condition_in_the_servers_words_until_it_heals() {
    let mut w = World::with(&[("Worker", 2, "Never")]);
    w.settle_refused(QUOTA);
    assert_eq!(w.conditions(), ["Created T", "ReplicaFailure T"]);
    assert_eq!(words(&w), Some(format!("FailedCreate: {QUOTA}")));
    assert!(!w.plan().is_idle(), "it is tried again");
    let since = w.holding(ReplicaFailure).unwrap().last_transition_time;
    w.pass_ms(60_000);
    let others = QUOTA.replace("used: pods=1", "used: pods=3");
    w.settle_refused(&others);
    w.pass_ms(1_000);
    w.settle_refused(&others);
    assert_eq!(words(&w), Some(format!("FailedCreate: {others}")), "the latest words");
    assert_eq!(w.holding(ReplicaFailure).unwrap().last_transition_time, since);
    // Another operator, which has not tried yet.
    w.create_failure = None;
    let plan = w.plan();
    let status =
        |write: &crate::plan::Write| matches!(write, crate::plan::Write::PatchStatus { .. });
    assert!(!plan.writes().any(status), "it stays until the pods are there");
    w.settle();
    assert_eq!(w.conditions(), ["Created T"]);
    w.start_all();
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
}

#[test]
fn a_replica_of_a_running_job_may_be_refused_too() {
    let mut w = World::with(&[("Worker", 2, "OnFailure")]);
    w.settle();
    w.start_all();
    w.settle_counts();
    w.pods.remove("j-worker-1");
    w.settle_refused(QUOTA);
    assert_eq!(w.conditions(), ["Created T", "Restarting T", "ReplicaFailure T"]);
    w.create_failure = None;
    w.settle();
    w.start("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
}

#[test]
fn a_half_made_gang_says_what_it_lacks() {
    let mut w = World::with(&[("Worker", 3, "Never")]).gang("trainyard");
    w.settle();
    w.group_phase("Inqueue");
    w.settle();
    w.pods.remove("j-worker-2");
    w.settle_refused(QUOTA);
    assert_eq!(words(&w), Some(format!("FailedCreate: {QUOTA}")));
    w.group_phase("Pending");
    w.settle_refused(QUOTA);
    assert!(words(&w).is_some(), "it is tried while the group waits");
    w.create_failure = None;
    w.settle();
    assert_eq!(words(&w), None);
}

#[test]
fn the_start_timeout_quotes_the_refusal() {
    let mut w = World::with(&[("Worker", 2, "Never")]).policy("startTimeoutSeconds", 30);
    w.settle_refused(QUOTA);
    w.pass_ms(30_000);
    w.settle_refused(QUOTA);
    assert_eq!(w.conditions(), ["Created T", "Failed T"], "and the refusal is over");
    let failure = w.typed().failure.unwrap();
    assert_eq!(failure.pod, "j-worker-0");
    assert!(failure.message.contains("exceeded quota"), "{}", failure.message);
}

#[test]
fn a_refusal_is_over_when_the_replicas_are_not_asked_for_any_more() {
    let mut w = World::with(&[("Worker", 1, "OnFailure")]);
    w.settle();
    w.start_all();
    w.settle_counts();
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(4);
    w.settle_refused(QUOTA);
    assert_eq!(w.conditions(), ["Created T", "Running T", "ReplicaFailure T"]);
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(1);
    w.settle();
    assert_eq!(w.create_failure.as_deref(), Some(QUOTA), "nobody has created anything since");
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
}

#[test]
fn a_suspended_job_is_refused_nothing() {
    let mut w = World::with(&[("Worker", 2, "Never")]);
    w.settle_refused(QUOTA);
    let mut w = w.policy("suspend", true);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Suspended T"]);
}

#[test]
fn a_change_of_an_ended_job_is_seen_and_said_to_do_nothing_once() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.settle();
    w.start_all();
    w.exit("worker-0", 0);
    w.settle();
    let writes = w.status_writes;
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(4);
    w.generation += 1;
    w.settle();
    assert_eq!(w.typed().observed_generation, Some(2));
    assert_eq!(w.status_writes, writes + 1);
    let last = w.events.last().unwrap();
    assert_eq!(last.reason, "TFJobAlreadyFinished");
    assert!(last.message.contains("delete it and create it anew"), "{}", last.message);
    assert_eq!(w.conditions(), ["Created T", "Succeeded T"]);
    let told = w.events.len();
    w.settle();
    assert_eq!((w.events.len(), w.status_writes), (told, writes + 1), "once");
    assert_eq!(w.creates.len(), 1);
}

#[test]
fn changes_of_the_clean_up_take_effect_after_the_end_and_are_not_warned_of() {
    let mut w = World::with(&[("Worker", 2, "Never")]);
    w.settle();
    w.start_all();
    w.exit("worker-0", 0);
    w.settle();
    w.finish_deletions();
    let warned =
        |w: &World| w.reasons().iter().filter(|one| **one == "TFJobAlreadyFinished").count();
    let mut w = w.policy("ttlSecondsAfterFinished", 100).policy("cleanPodPolicy", "All");
    w.generation += 1;
    w.settle();
    assert_eq!((w.typed().observed_generation, warned(&w)), (Some(2), 0));
    assert_eq!((w.pods.len(), w.deleted), (0, false));
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(4);
    w.generation += 1;
    w.settle();
    assert_eq!((w.typed().observed_generation, warned(&w)), (Some(3), 1));
    w = w.policy("ttlSecondsAfterFinished", 10);
    w.generation += 1;
    w.settle();
    assert_eq!((w.typed().observed_generation, warned(&w)), (Some(4), 1), "warned of once");
    w.pass_ms(10_000);
    w.settle();
    assert!(w.deleted);
}

#[test]
fn a_change_of_a_job_that_ended_under_an_older_operator_is_warned_of_once() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.settle();
    w.start_all();
    w.exit("worker-0", 0);
    w.settle();
    w.status.as_object_mut().unwrap().remove("endedSpec");
    assert!(w.plan().is_idle());
    for seconds in [100, 200] {
        w = w.policy("ttlSecondsAfterFinished", seconds);
        w.generation += 1;
        w.settle();
    }
    let warned = w.reasons().iter().filter(|one| **one == "TFJobAlreadyFinished").count();
    assert_eq!(warned, 1, "nobody knows what was changed first");
}

#[test]
fn an_ended_job_of_an_operator_that_observed_no_generation_is_left_alone() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.settle();
    w.start_all();
    w.exit("worker-0", 0);
    w.settle();
    w.status.as_object_mut().unwrap().remove("observedGeneration");
    assert!(w.plan().is_idle());
}
