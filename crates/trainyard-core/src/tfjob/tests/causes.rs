//! The table of `docs/tfjob.md`: the fate of a replica, by cause and policy.

use serde_json::{Value, json};

use crate::tfjob::world::World;

/// Something that happens to a running replica.
#[derive(Debug, Clone, Copy)]
enum Cause {
    ExitedWith(i64),
    OutOfTime,
    Deleted,
    Drained,
    Preempted,
    NodeLost,
    EvictedForTheNode,
    EvictedForItsStorage,
    NodeShutDown,
    /// The node has started anew; what ran is gone, and this is what its runtime or kubelet makes of it.
    NodeStartedAnew(i64, &'static str),
    /// The kubelet does not let the pod in, with this reason.
    NotLetIn(&'static str),
}

fn suffer(w: &mut World, cause: Cause) {
    match cause {
        Cause::ExitedWith(code) => w.exit("worker-1", code),
        Cause::Deleted => w.delete_pod("worker-1"),
        Cause::Drained => w.disrupt("worker-1", "EvictionByEvictionAPI"),
        Cause::Preempted => w.disrupt("worker-1", "PreemptionByScheduler"),
        Cause::NodeLost => {
            w.lose_node("worker-1");
            w.settle();
            w.pass_ms(300_000);
            w.disrupt("worker-1", "DeletionByTaintManager");
        }
        Cause::NodeStartedAnew(code, reason) => {
            w.exit("worker-1", code);
            let status = &mut w.pod("worker-1")["status"]["containerStatuses"][0];
            status["state"]["terminated"]["reason"] = reason.into();
        }
        _ => {
            let ended = w.pod("worker-1")["status"]["containerStatuses"].clone();
            let status = &mut w.pod("worker-1")["status"];
            *status = final_status(cause);
            if ended[0]["state"]["terminated"].is_object() {
                status["containerStatuses"] = ended;
            }
        }
    }
    w.settle_counts();
    // Longer than any wait for a kubelet that does not answer.
    w.pass_ms(400_000);
    w.finish_deletions();
    w.settle_counts();
}

/// What a kubelet writes of a pod that it ends, or does not start.
fn final_status(cause: Cause) -> Value {
    match cause {
        Cause::OutOfTime => json!({"phase": "Failed", "reason": "DeadlineExceeded",
            "message": "Pod was active on the node longer than the specified deadline"}),
        Cause::EvictedForTheNode => json!({"phase": "Failed", "reason": "Evicted",
            "message": "The node was low on resource: memory. "}),
        Cause::EvictedForItsStorage => json!({"phase": "Failed", "reason": "Evicted",
            "message": "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\". "}),
        Cause::NodeShutDown => json!({"phase": "Failed", "reason": "Terminated",
            "message": "Pod was terminated in response to imminent node shutdown.",
            "conditions": [{"type": "DisruptionTarget", "status": "True",
                "reason": "TerminationByKubelet"}]}),
        Cause::NotLetIn(reason) => json!({"phase": "Failed", "reason": reason,
            "message": "Pod was rejected: Node didn't have enough resource"}),
        _ => unreachable!("{cause:?} is no kubelet's doing"),
    }
}

const NEW: &str = "a new pod";
const COUNTED: &str = "a new pod, counted";
const FAILS: &str = "the job fails";

fn two_workers(policy: &str) -> World {
    let mut w = World::with(&[("Worker", 2, policy)]).policy("backoffLimit", 1);
    w.settle();
    w.start_all();
    w.settle_counts();
    w
}

/// Lets it happen, and says what has become of the replica.
fn fate(w: &mut World, cause: Cause) -> &'static str {
    let uid = w.pod("worker-1")["metadata"]["uid"].clone();
    suffer(w, cause);
    let found = match (w.typed().is_finished(), w.typed().restarts) {
        (true, _) => FAILS,
        (false, 0) => NEW,
        (false, _) => COUNTED,
    };
    if found != FAILS {
        assert_ne!(w.pod("worker-1")["metadata"]["uid"], uid, "{cause:?}");
    }
    found
}

#[test]
fn by_cause_and_policy() {
    // Under Always, OnFailure, ExitCode, Never. What a kubelet restarts in place never gets so far.
    let table: [(Cause, [&str; 4]); 16] = [
        (Cause::ExitedWith(1), [COUNTED, COUNTED, FAILS, FAILS]),
        (Cause::ExitedWith(137), [COUNTED, COUNTED, COUNTED, FAILS]),
        (Cause::OutOfTime, [COUNTED, COUNTED, COUNTED, FAILS]),
        (Cause::Deleted, [NEW; 4]),
        (Cause::Drained, [NEW; 4]),
        (Cause::Preempted, [NEW; 4]),
        (Cause::NodeLost, [NEW; 4]),
        (Cause::EvictedForTheNode, [NEW; 4]),
        (Cause::NodeShutDown, [NEW; 4]),
        (Cause::NodeStartedAnew(255, "Unknown"), [NEW; 4]),
        (Cause::NodeStartedAnew(137, "ContainerStatusUnknown"), [NEW; 4]),
        (Cause::NotLetIn("OutOfcpu"), [NEW; 4]),
        (Cause::NotLetIn("UnexpectedAdmissionError"), [NEW; 4]),
        (Cause::NotLetIn("NodeAffinity"), [NEW; 4]),
        (Cause::NotLetIn("PodOSNotSupported"), [COUNTED, COUNTED, COUNTED, FAILS]),
        (Cause::EvictedForItsStorage, [COUNTED, COUNTED, COUNTED, FAILS]),
    ];
    for (cause, expected) in table {
        for (policy, expected) in ["Always", "OnFailure", "ExitCode", "Never"].iter().zip(expected)
        {
            assert_eq!(fate(&mut two_workers(policy), cause), expected, "{cause:?} under {policy}");
        }
    }
}

/// The kubelet has published the ends of the containers, whatever they answered it, and publishes with the
/// next breath that it was its own doing.
#[test]
fn the_ends_of_containers_do_not_decide_before_the_final_phase_gives_the_reason() {
    let table: [(Cause, [&str; 2]); 4] = [
        (Cause::EvictedForTheNode, [NEW; 2]),
        (Cause::NodeShutDown, [NEW; 2]),
        (Cause::OutOfTime, [COUNTED, FAILS]),
        (Cause::EvictedForItsStorage, [COUNTED, FAILS]),
    ];
    for (cause, expected) in table {
        for (policy, expected) in ["ExitCode", "Never"].into_iter().zip(expected) {
            for code in [1, 137, 143] {
                let mut w = two_workers(policy);
                w.terminate("worker-1", code);
                w.settle_counts();
                w.pass_ms(2_000);
                w.settle_counts();
                let found = fate(&mut w, cause);
                assert_eq!(found, expected, "{cause:?} under {policy}, exit code {code}");
            }
        }
    }
}

/// A program that answers the signal by exit code 0, in a pod whose other containers take their time.
#[test]
fn a_polite_program_beside_another_has_not_succeeded_when_it_was_evicted() {
    let mut w = two_workers("Never");
    w.spec["successPolicy"] = "AllWorkers".into();
    w.terminate("worker-1", 0);
    let proxy = json!({"name": "proxy", "state": {"running": {}}});
    w.pod("worker-1")["status"]["containerStatuses"].as_array_mut().unwrap().push(proxy);
    w.settle_counts();
    assert_eq!(w.typed().replica_statuses[&trainyard_api::ReplicaType::Worker].succeeded, 0);
    assert_eq!(fate(&mut w, Cause::EvictedForTheNode), NEW);
}

#[test]
fn a_deadline_of_the_pod_is_no_success_whatever_the_program_answers() {
    for code in [0, 1, 143] {
        let mut w = two_workers("Never");
        w.exit("worker-1", code);
        assert_eq!(fate(&mut w, Cause::OutOfTime), FAILS, "exit code {code}");
        let failure = w.typed().failure.unwrap();
        assert_eq!((&*failure.reason, failure.exit_code), ("DeadlineExceeded", Some(code)));
    }
}

#[test]
fn what_a_node_that_starts_anew_restarts_in_place_is_not_counted() {
    let restarted = |reason: &str, code: i64, restarts: i64| {
        let mut w = two_workers("OnFailure");
        w.restart_in_place("worker-1", restarts);
        w.pod("worker-1")["status"]["containerStatuses"][0]["lastState"]["terminated"] =
            json!({"exitCode": code, "reason": reason});
        w.settle_counts();
        let disruptions = w.typed().replica_records.iter().map(|record| record.disruptions).sum();
        (w.typed().restarts, disruptions)
    };
    assert_eq!(restarted("Unknown", 255, 1), (0, 1_i64));
    assert_eq!(restarted("ContainerStatusUnknown", 137, 1), (0, 1));
    assert_eq!(restarted("Unknown", 255, 2), (1, 1), "it had failed before");
    assert_eq!(restarted("Error", 255, 1), (1, 0));
}
