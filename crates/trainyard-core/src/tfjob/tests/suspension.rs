//! Suspending and resuming.

use serde_json::Value;

use crate::tfjob::world::World;

#[test]
fn created_suspended() {
    let mut w = World::with(&[("Worker", 2, "Never")]).policy("suspend", true);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Suspended T"]);
    assert!(w.pods.is_empty() && w.services.is_empty());
    assert_eq!(w.status["startTime"], Value::Null);
    assert_eq!(w.reasons(), ["TFJobSuspended"]);
    assert!(w.plan().is_idle());
    w = w.policy("suspend", false);
    w.pass_ms(60_000);
    w.settle();
    assert_eq!(w.pods.len(), 2);
    assert_eq!(w.conditions(), ["Created T", "Suspended F"]);
    assert_eq!(w.typed().conditions[1].reason, "TFJobResumed");
    assert_eq!(w.typed().start_time, Some(w.now));
}

#[test]
fn suspended_while_running_and_resumed() {
    let mut w = World::with(&[("Worker", 2, "Never")]).policy("activeDeadlineSeconds", 100);
    w.settle();
    w.start_all();
    w.settle();
    w = w.policy("suspend", true);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running F", "Suspended T"]);
    assert_eq!(w.typed().conditions[1].reason, "TFJobSuspended");
    assert_eq!(w.typed().conditions[1].message, "TFJob j is suspended.");
    assert!(w.services.is_empty());
    w.finish_deletions();
    w.pass_ms(500_000);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Suspended T", "the clock stands still");
    w = w.policy("suspend", false);
    w.settle();
    w.start_all();
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Suspended F", "Running T"]);
    w.pass_ms(100_000);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Failed T", "and starts anew");
}

#[test]
fn what_had_completed_stays_completed() {
    let mut w = World::with(&[("Worker", 2, "Never")]);
    w.spec["successPolicy"] = "AllWorkers".into();
    w.settle();
    w.start_all();
    w.settle();
    w.exit("worker-1", 0);
    w = w.policy("suspend", true);
    w.settle();
    w.finish_deletions();
    w.settle();
    assert!(w.pods.is_empty());
    w = w.policy("suspend", false);
    w.settle();
    assert_eq!(w.live_replicas(), ["worker-0"]);
}

#[test]
fn success_comes_before_suspension() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.settle();
    w.start_all();
    w.settle();
    w.exit("worker-0", 0);
    w = w.policy("suspend", true);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running F", "Succeeded T"]);
}

#[test]
fn a_suspended_job_is_not_touched_by_its_ttl() {
    let mut w = World::with(&[("Worker", 1, "Never")])
        .policy("suspend", true)
        .policy("ttlSecondsAfterFinished", 0);
    w.settle();
    assert!(!w.deleted);
}
