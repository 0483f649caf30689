//! Timers, and the rules by which a job that runs ends.

use serde_json::{Value, json};
use trainyard_api::volcano::JobPhase::{
    self, Aborting, Completed, Failed, Pending, Restarting, Running,
};

use crate::{
    child::Child,
    volcano::world::{World, task},
};

fn timed(event: &str, action: &str) -> World {
    World::new(json!({"tasks": [task("w", 2)],
        "policies": [{"event": event, "action": action, "timeout": "10m"}]}))
}

#[test]
fn a_pod_that_waits_too_long_is_acted_on_once() {
    let mut w = timed("PodPending", "AbortJob");
    w.settle();
    w.admit();
    w.settle();
    assert_eq!(w.told("ExecuteAction"), ["Execute action AbortJob after 10m0s"; 2]);
    assert_eq!(w.typed().timers.len(), 2);
    let due = w.plan().requeue_at.unwrap();
    w.start("w-0");
    w.settle_counts();
    assert_eq!(w.typed().timers.len(), 1, "the one that runs is waited for no more");
    w.now = due;
    w.settle();
    assert_eq!((w.phase(), w.typed().timers.len()), (Aborting, 0));
    assert_eq!(w.typed().state.message, "AbortJob: Pod j-w-1 has been pending for too long.");
}

#[test]
fn a_timer_is_kept_not_begun_again() {
    let mut w = timed("PodPending", "RestartJob");
    w.settle();
    w.admit();
    w.settle();
    let due = w.typed().timers[0].due;
    w.pass_ms(300_000);
    w.settle_counts();
    assert_eq!(w.typed().timers[0].due, due);
    assert_eq!(w.plan().requeue_at, Some(due));
}

#[test]
fn a_pod_that_is_back_in_time_calls_the_action_off() {
    let mut w = timed("PodEvicted", "RestartJob");
    w.run();
    w.vanish("w-0");
    w.settle();
    assert_eq!(w.names(Child::Pod), ["j-w-0", "j-w-1"], "the pod is made again at once");
    assert_eq!(w.typed().timers.len(), 1);
    w.pass_ms(60_000);
    w.run();
    assert_eq!((w.phase(), w.typed().timers.len()), (Running, 0));
    w.pass_ms(600_000);
    w.settle_counts();
    assert_eq!((w.phase(), w.typed().retry_count), (Running, 0));
}

#[test]
fn a_pod_that_is_not_back_in_time_leads_to_the_action() {
    let mut w = timed("PodFailed", "RestartJob");
    w.run();
    w.exit("w-0", 1);
    w.settle();
    assert_eq!(w.phase(), Running);
    w.pass_ms(600_000);
    w.settle();
    assert_eq!((w.phase(), w.typed().retry_count), (Restarting, 1));
    w.finish_deletions();
    w.run();
    w.pass_ms(6_000_000);
    w.settle_counts();
    assert_eq!((w.phase(), w.typed().retry_count), (Running, 1), "once");
}

#[test]
fn an_action_calls_off_others_of_its_scope() {
    let mut spec = json!({"tasks": [task("a", 3), task("b", 1)]});
    spec["policies"] = json!([
        {"event": "PodFailed", "action": "RestartPod", "timeout": "1m"},
        {"event": "Unknown", "action": "RestartJob"}]);
    spec["tasks"][1]["policies"] =
        json!([{"event": "PodFailed", "action": "RestartTask", "timeout": "2m"}]);
    let mut w = World::running(spec);
    w.exit("a-0", 1);
    w.settle();
    w.pass_ms(30_000);
    w.exit("a-1", 1);
    w.exit("b-0", 1);
    w.settle();
    assert_eq!(w.typed().timers.len(), 3);
    w.pass_ms(30_000);
    w.settle();
    let left: Vec<String> = w.typed().timers.into_iter().map(|timer| timer.pod).collect();
    assert_eq!(left, ["j-a-1", "j-b-0"], "the pod's action is only the pod's");
    w.set_group("Unknown");
    w.settle();
    assert!(w.typed().timers.is_empty(), "the whole job's is everybody's");
}

/// What becomes of a job whose pods end so.
fn ends(spec: Value, codes: &[(&str, i64)]) -> JobPhase {
    let mut w = World::running(spec);
    assert_eq!(w.phase(), Running);
    for (place, code) in codes {
        w.exit(place, *code);
    }
    w.settle();
    w.phase()
}

#[test]
fn the_rules_of_completion() {
    let two = |min: i64, a: Option<i64>, b: Option<i64>, success: Option<i64>| {
        let mut spec = json!({"minAvailable": min, "minSuccess": success,
            "tasks": [task("a", 2), task("b", 1)]});
        spec["tasks"][0]["minAvailable"] = json!(a);
        spec["tasks"][1]["minAvailable"] = json!(b);
        spec
    };
    let all = |a0, a1, b0| vec![("a-0", a0), ("a-1", a1), ("b-0", b0)];
    let rows = [
        (two(0, None, None, None), all(0, 0, 0), Completed),
        (two(0, None, None, None), vec![("a-0", 0), ("a-1", 0)], Running),
        (two(0, None, None, None), all(0, 1, 0), Failed),
        (two(2, Some(1), Some(1), None), all(0, 1, 0), Completed),
        (two(2, Some(1), Some(1), None), all(0, 0, 1), Failed),
        (two(1, Some(2), Some(1), None), all(1, 1, 0), Completed),
        (two(1, Some(2), Some(1), None), all(1, 1, 1), Failed),
        (two(0, None, None, Some(1)), vec![("a-0", 0)], Completed),
        (two(2, Some(1), Some(1), Some(3)), all(0, 1, 0), Failed),
        (two(1, Some(0), Some(1), Some(2)), all(1, 1, 0), Failed),
    ];
    for (at, (spec, codes, wanted)) in rows.into_iter().enumerate() {
        assert_eq!(ends(spec, &codes), wanted, "row {at}");
    }
}

#[test]
fn enough_successes_end_what_still_runs() {
    let mut w = World::running(json!({"minSuccess": 1, "tasks": [task("w", 3)]}));
    w.exit("w-1", 0);
    w.settle_counts();
    let status = w.typed();
    assert_eq!((w.phase(), status.succeeded, status.terminating), (Completed, 1, 2));
    w.finish_deletions();
    w.settle_counts();
    assert_eq!((w.typed().succeeded, w.typed().terminating), (1, 0));
    assert_eq!(w.names(Child::Pod), ["j-w-1"]);
    assert_eq!(w.typed().state.reason, "MinSuccessReached");
}

#[test]
fn a_job_whose_pods_wait_again_waits_again() {
    let mut w = World::running(json!({"tasks": [task("w", 2)]}));
    w.vanish("w-0");
    w.settle_counts();
    assert_eq!(w.visited(), [Running, Pending]);
    w.start_all();
    w.settle_counts();
    assert_eq!(w.visited(), [Pending, Running]);
}

#[test]
fn contradictory_policies_never_loop() {
    let spec = json!({"tasks": [task("w", 1)],
        "policies": [{"event": "*", "action": "RestartJob"}]});
    let mut w = World::running(spec);
    for _ in 0..5 {
        if w.phase() == Running {
            w.exit("w-0", 0);
        }
        w.settle();
        w.finish_deletions();
        w.run();
    }
    assert_eq!((w.phase(), w.typed().retry_count), (Failed, 3));
}

/// A job with this policy, one of whose pods has ended as far as its containers say.
fn with_an_ended_pod(event: &str) -> World {
    let mut spec = json!({"tasks": [task("a", 2)]});
    spec["tasks"][0]["template"]["spec"]["restartPolicy"] = "Never".into();
    spec["policies"] = json!([{"event": event, "action": "RestartJob"}]);
    let mut w = World::running(spec);
    w.terminate("a-0", 143);
    let plan = w.settle();
    assert_eq!((w.phase(), w.typed().running, w.typed().failed), (Running, 2, 0));
    assert_eq!(plan.requeue_at.map(|at| at.duration_since(w.now).as_secs()), Some(5));
    w
}

#[test]
fn an_eviction_is_one_although_the_containers_were_seen_to_end_before() {
    for reason in ["Evicted", "Terminated", "OutOfcpu"] {
        let mut w = with_an_ended_pod("PodEvicted");
        w.pass_ms(1_000);
        w.pod("a-0")["status"]["phase"] = "Failed".into();
        w.pod("a-0")["status"]["reason"] = reason.into();
        w.settle();
        assert_eq!(w.phase(), Restarting, "{reason}");
    }
}

#[test]
fn a_failure_is_one_when_nobody_else_claims_it() {
    let published = |w: &mut World| w.pod("a-0")["status"]["phase"] = "Failed".into();
    // A kubelet that is frozen does not publish the phase.
    let frozen = |w: &mut World| w.pass_ms(5_000);
    for then in [published as fn(&mut World), frozen] {
        for (event, phase) in [("PodFailed", Restarting), ("PodEvicted", Running)] {
            let mut w = with_an_ended_pod(event);
            then(&mut w);
            w.settle_counts();
            assert_eq!((w.phase(), w.typed().failed), (phase, i64::from(phase == Running)));
        }
    }
}
