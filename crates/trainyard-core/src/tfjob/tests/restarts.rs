//! Restarts: by policy, by exit code, in place, of the whole job, and their limit.

use serde_json::json;

use crate::{plan::Mark, tfjob::world::World};

fn running(replicas: &[(&str, u32, &str)]) -> World {
    started(World::with(replicas))
}

fn started(mut w: World) -> World {
    w.settle();
    w.start_all();
    w.settle();
    w
}

#[test]
fn by_policy_and_exit_code() {
    let cases: [(&str, i64, bool); 20] = [
        ("Always", 1, true),
        ("OnFailure", 1, true),
        ("OnFailure", 137, true),
        ("Never", 1, false),
        ("Never", 137, false),
        ("ExitCode", 1, false),
        ("ExitCode", 2, false),
        ("ExitCode", 126, false),
        ("ExitCode", 127, false),
        ("ExitCode", 128, false),
        ("ExitCode", 139, false),
        ("ExitCode", 130, true),
        ("ExitCode", 137, true),
        ("ExitCode", 138, true),
        ("ExitCode", 143, true),
        ("ExitCode", 3, false),
        ("ExitCode", 127, false),
        ("ExitCode", 129, true),
        ("ExitCode", 134, true),
        ("ExitCode", 255, true),
    ];
    for (policy, code, restarted) in cases {
        let mut w = running(&[("Worker", 1, policy)]);
        w.exit("worker-0", code);
        w.settle();
        let expected: &[&str] = if restarted {
            &["Created T", "Restarting T"]
        } else {
            &["Created T", "Running F", "Failed T"]
        };
        assert_eq!(w.conditions(), expected, "{policy} {code}");
        assert_eq!(w.creates.len(), if restarted { 2 } else { 1 }, "{policy} {code}");
    }
}

#[test]
fn the_trace_of_a_restart() {
    let mut w = running(&[("Worker", 2, "ExitCode"), ("PS", 1, "Never")]);
    w.exit("worker-1", 143);
    let plan = w.plan();
    let first = &plan.stages[0];
    assert!(matches!(first.writes[0], crate::plan::Write::PatchStatus { .. }), "evidence first");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(w.typed().restarts, 1);
    assert_eq!(w.deletes, ["j-worker-1"]);
    assert_eq!(w.services.len(), 3, "services stay");
    assert!(
        w.typed().conditions[1]
            .message
            .starts_with("job j is restarting because Worker replica(s) failed.")
    );
    w.start("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    assert_eq!(w.marks, [Mark::Created, Mark::Running, Mark::Restarted, Mark::Running]);
}

#[test]
fn restarting_does_not_mask_a_failure_for_good() {
    let mut w = running(&[("Worker", 2, "OnFailure"), ("PS", 1, "Never")]);
    w.exit("worker-1", 1);
    w.settle();
    w.exit("ps-0", 1);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting F", "Failed T"]);
}

#[test]
fn new_pods_come_back_later_and_later() {
    let mut w = running(&[("Worker", 1, "ExitCode")]);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        w.exit("worker-0", 137);
        let plan = w.settle();
        let pause = plan.requeue_at.map_or(0, |at| at.duration_since(w.now).as_secs());
        pauses.push(pause);
        if pause > 0 {
            assert!(!w.has("worker-0"));
            w.pass_ms(pause * 1000);
            w.settle();
        }
        assert!(w.has("worker-0"));
        w.start("worker-0");
        w.settle();
    }
    assert_eq!(pauses, [0, 10, 20, 40, 80, 160, 300, 300]);
    w.pass_ms(600_000);
    w.exit("worker-0", 137);
    w.settle();
    assert!(w.has("worker-0"), "a long run starts the series anew");
}

#[test]
fn the_backoff_limit_counts_new_pods() {
    let mut w = started(World::with(&[("Worker", 1, "ExitCode")]).policy("backoffLimit", 2));
    for expected in [1, 2] {
        w.exit("worker-0", 137);
        w.settle();
        w.pass_ms(300_000);
        w.settle();
        w.start("worker-0");
        w.settle();
        assert_eq!(w.typed().restarts, expected);
    }
    w.exit("worker-0", 137);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Failed T");
    let message = &w.typed().conditions.last().unwrap().message.clone();
    assert!(
        message.starts_with("Job j has failed because it has reached the specified backoff limit")
    );
    assert_eq!(w.typed().restarts, 2, "never more than the limit");
    assert_eq!(w.status["failure"]["kind"], "BackoffLimitExceeded");
}

#[test]
fn backoff_limit_zero_allows_no_restart() {
    let mut w = started(World::with(&[("Worker", 1, "OnFailure")]).policy("backoffLimit", 0));
    w.exit("worker-0", 1);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Failed T");
    assert_eq!(w.creates.len(), 1);
}

#[test]
fn restarts_in_place_reach_the_limit() {
    let cases = [(3, 2, false), (3, 3, true), (0, 1, true), (1, 1, true), (3, 7, true)];
    for (limit, restarts, failed) in cases {
        let mut w =
            started(World::with(&[("Worker", 2, "OnFailure")]).policy("backoffLimit", limit));
        w.restart_in_place("worker-0", restarts);
        w.settle();
        assert_eq!(w.conditions().contains(&"Failed T".to_owned()), failed, "{limit} {restarts}");
    }
}

#[test]
fn restarts_in_place_are_counted_once_over_the_life_of_the_job() {
    let mut w = started(World::with(&[("Worker", 1, "OnFailure")]).policy("backoffLimit", 10));
    w.restart_in_place("worker-0", 2);
    w.settle_counts();
    w.settle_counts();
    assert_eq!(w.typed().restarts, 2);
    w.pods.clear();
    w.settle();
    w.start("worker-0");
    w.restart_in_place("worker-0", 1);
    w.settle_counts();
    assert_eq!(w.typed().restarts, 3, "a new pod counts from zero again");
}

#[test]
fn restarts_in_place_count_although_the_pod_has_ended_before_they_were_seen() {
    let restarted = |then: fn(&mut World)| {
        let mut w = started(World::with(&[("Worker", 2, "OnFailure")]).policy("backoffLimit", 2));
        w.spec["successPolicy"] = "AllWorkers".into();
        w.restart_in_place("worker-1", 3);
        then(&mut w);
        w.settle();
        w
    };
    for then in [|w: &mut World| w.exit("worker-1", 0), |w: &mut World| w.delete_pod("worker-1")] {
        let w = restarted(then);
        assert_eq!(w.conditions().last().unwrap(), "Failed T");
        assert_eq!(w.typed().restarts, 3);
    }
}

#[test]
fn a_job_that_has_succeeded_tells_its_restarts_in_place_and_stays_so() {
    let mut w = started(World::with(&[("Worker", 1, "OnFailure")]).policy("backoffLimit", 2));
    w.restart_in_place("worker-0", 3);
    w.exit("worker-0", 0);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Succeeded T");
    assert_eq!(w.typed().restarts, 3);
}

#[test]
fn disruptions_are_restarted_and_not_counted() {
    for policy in ["Always", "OnFailure", "ExitCode", "Never"] {
        let mut w = started(World::with(&[("Worker", 1, policy)]).policy("backoffLimit", 0));
        w.evict("worker-0");
        w.settle();
        assert!(w.has("worker-0"), "{policy}");
        assert_eq!(w.conditions(), ["Created T", "Restarting T"], "{policy}");
        assert_eq!(w.typed().restarts, 0, "{policy}");
        assert_eq!(w.typed().replica_records[0].disruptions, 1);
    }
}

#[test]
fn a_pod_that_somebody_deletes_comes_back_and_the_job_goes_on() {
    for policy in ["Always", "OnFailure", "ExitCode", "Never"] {
        let mut w = running(&[("Worker", 2, policy)]);
        w.delete_pod("worker-1");
        w.settle();
        assert_eq!(w.conditions(), ["Created T", "Restarting T"], "{policy}");
        w.pass_ms(2_000);
        w.exit("worker-1", 143);
        w.settle();
        assert_eq!(w.conditions(), ["Created T", "Restarting T"], "{policy}: not judged");
        w.pass_ms(1_000);
        w.cut_grace_periods();
        w.settle();
        assert_eq!(w.conditions(), ["Created T", "Restarting T"], "{policy}: nor at the very end");
        w.finish_deletions();
        w.settle();
        assert!(w.has("worker-1"), "{policy}");
        w.start("worker-1");
        w.settle();
        assert_eq!(w.conditions(), ["Created T", "Running T"], "{policy}");
        assert_eq!(w.typed().restarts, 0);
    }
}

#[test]
fn a_pod_on_a_lost_node_is_let_go() {
    let mut w = running(&[("Worker", 1, "OnFailure")]);
    w.delete_pod("worker-0");
    w.settle_counts();
    let at = w.plan().requeue_at.unwrap();
    assert_eq!(at.duration_since(w.now).as_secs(), 329, "grace and five minutes");
    w.pass_ms(328_000);
    w.settle();
    assert_eq!(w.creates.len(), 1);
    w.pass_ms(1_000);
    w.settle();
    assert_eq!(w.creates.len(), 2);
}

#[test]
fn the_whole_job_restarts_with_one_replica() {
    let world = World::with(&[("Worker", 2, "OnFailure"), ("PS", 1, "Always")])
        .policy("restartScope", "Job")
        .policy("backoffLimit", 1);
    let mut w = started(world);
    assert_eq!(w.pod("worker-0")["spec"]["restartPolicy"], "Never");
    assert_eq!(w.pod("ps-0")["spec"]["restartPolicy"], "Never");
    w.exit("worker-0", 1);
    w.exit("worker-1", 1);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(w.pod_names(), ["j-ps-0"], "the new attempt waits for the last old pod");
    w.finish_deletions();
    w.settle();
    assert_eq!(w.pod_names(), ["j-ps-0", "j-worker-0", "j-worker-1"]);
    assert_eq!(w.typed().restarts, 1, "peers that fell with the first do not count");
    assert_eq!(w.pod("ps-0")["metadata"]["labels"]["trainyard.dev/attempt"], "1");
    w.start_all();
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    w.exit("worker-1", 1);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Failed T");
}

#[test]
fn the_whole_job_restarts_when_a_pod_disappears() {
    let mut w = started(World::with(&[("Worker", 3, "OnFailure")]).policy("restartScope", "Job"));
    w.settle_counts();
    w.pods.remove("j-worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    assert_eq!(w.typed().restarts, 0);
    w.finish_deletions();
    w.settle();
    assert_eq!(w.live_replicas(), ["worker-0", "worker-1", "worker-2"]);
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = json!(4);
    w.start_all();
    w.settle_counts();
    assert_eq!(w.typed().attempt, 1, "more workers are no disappearance");
    assert!(w.has("worker-3"));
}

#[test]
fn a_sidecar_does_not_keep_a_failed_replica_alive() {
    let mut w = running(&[("Worker", 1, "ExitCode")]);
    w.pod("worker-0")["status"] = json!({"phase": "Running", "containerStatuses": [
        {"name": "tensorflow", "state": {"terminated": {"exitCode": 137}}},
        {"name": "proxy", "state": {"running": {}}},
    ]});
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Restarting T"]);
    w.finish_deletions();
    w.settle();
    assert_eq!(w.creates.len(), 2);
}
