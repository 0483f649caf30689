//! Deadlines, start time-outs and the time to live.

use serde_json::{Value, json};

use crate::tfjob::world::World;

#[test]
fn the_deadline_fires_on_time_and_stops_everything() {
    let mut w = World::with(&[("Worker", 2, "OnFailure")])
        .policy("activeDeadlineSeconds", 60)
        .policy("cleanPodPolicy", "None");
    w.spec["successPolicy"] = "AllWorkers".into();
    w.settle();
    w.start_all();
    let plan = w.settle();
    assert_eq!(plan.requeue_at.unwrap().duration_since(w.now).as_secs(), 60);
    w.exit("worker-1", 0);
    w.settle_counts();
    w.pass_ms(59_000);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Failed T");
    assert_eq!(
        w.typed().conditions.last().unwrap().message,
        "Job j has failed because it was active longer than specified deadline"
    );
    w.finish_deletions();
    w.settle();
    assert_eq!(w.live_replicas(), ["worker-1"], "what has ended keeps its logs");
    assert!(w.typed().completion_time.is_some());
}

#[test]
fn the_start_timeout_says_who_waits_for_what() {
    let mut w = World::with(&[("Worker", 2, "Never")]).policy("startTimeoutSeconds", 30);
    w.settle();
    w.start("worker-0");
    w.pod("worker-1")["status"] = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/3 nodes are available: 3 Insufficient nvidia.com/gpu.",
    }]});
    let plan = w.settle();
    assert_eq!(plan.notices[0].reason, "Unschedulable");
    w.pass_ms(30_000);
    w.settle();
    let message = w.typed().conditions.last().unwrap().message.clone();
    assert_eq!(
        message,
        "Job j has failed because not all its pods ran within 30 s: j-worker-1 waits: \
         Unschedulable: 0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    );
    w.finish_deletions();
    w.settle();
    assert!(w.pods.is_empty());
}

#[test]
fn the_start_timeout_is_over_once_the_job_runs() {
    let mut w = World::with(&[("Worker", 1, "OnFailure")]).policy("startTimeoutSeconds", 30);
    w.settle();
    w.start_all();
    w.settle();
    w.exit("worker-0", 1);
    w.settle();
    w.pass_ms(60_000);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
}

#[test]
fn the_time_to_live() {
    for (ttl, top_level) in [(0, false), (100, false), (100, true)] {
        let mut w = World::with(&[("Worker", 1, "Never")]);
        if top_level {
            w.spec["ttlSecondsAfterFinished"] = ttl.into();
        } else {
            w = w.policy("ttlSecondsAfterFinished", ttl);
        }
        w.settle();
        w.start_all();
        w.exit("worker-0", 0);
        let plan = w.settle();
        if ttl > 0 {
            assert_eq!(plan.requeue_at.unwrap().duration_since(w.now).as_secs(), ttl);
            w.pass_ms(ttl * 1000);
            w.settle();
        }
        assert!(w.deleted, "{ttl} {top_level}");
        assert!(w.reasons().contains(&"SuccessfulDeleteJob"));
    }
}

#[test]
fn a_failed_job_has_a_completion_time_and_goes_by_its_ttl() {
    let mut w = World::with(&[("Worker", 1, "ExitCode"), ("PS", 1, "OnFailure")])
        .policy("ttlSecondsAfterFinished", 5);
    w.settle();
    w.start_all();
    w.settle();
    w.exit("ps-0", 1);
    w.settle();
    w.exit("worker-0", 1);
    w.settle();
    assert_ne!(w.status["completionTime"], Value::Null);
    w.pass_ms(5_000);
    w.settle();
    assert!(w.deleted);
}
