//! The table of `docs/tfjob.md`: the fate of a replica, by cause and policy.

use serde_json::json;

use crate::tfjob::world::World;

/// Something that happens to a running replica.
#[derive(Debug, Clone, Copy)]
enum Cause {
    ExitedWith(i64),
    Deleted,
    Drained,
    Preempted,
    NodeLost,
    EvictedForTheNode,
    EvictedForItsStorage,
    NodeShutDown,
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
        Cause::EvictedForTheNode => w.evict("worker-1"),
        Cause::EvictedForItsStorage => {
            w.pod("worker-1")["status"] = json!({"phase": "Failed", "reason": "Evicted",
                "message": "Usage of EmptyDir volume \"data\" exceeds the limit \"1Gi\". "});
        }
        Cause::NodeShutDown => {
            w.pod("worker-1")["status"] = json!({"phase": "Failed", "reason": "Terminated",
                "message": "Pod was terminated in response to imminent node shutdown.",
                "conditions": [{"type": "DisruptionTarget", "status": "True",
                    "reason": "TerminationByKubelet"}]});
        }
    }
    w.settle_counts();
    // Longer than any wait for a kubelet that does not answer.
    w.pass_ms(400_000);
    w.finish_deletions();
    w.settle_counts();
}

#[test]
fn by_cause_and_policy() {
    const NEW: &str = "a new pod";
    const COUNTED: &str = "a new pod, counted";
    const FAILS: &str = "the job fails";
    // Under Always, OnFailure, ExitCode, Never. What a kubelet restarts in place never gets so far.
    let table: [(Cause, [&str; 4]); 9] = [
        (Cause::ExitedWith(1), [COUNTED, COUNTED, FAILS, FAILS]),
        (Cause::ExitedWith(137), [COUNTED, COUNTED, COUNTED, FAILS]),
        (Cause::Deleted, [NEW; 4]),
        (Cause::Drained, [NEW; 4]),
        (Cause::Preempted, [NEW; 4]),
        (Cause::NodeLost, [NEW; 4]),
        (Cause::EvictedForTheNode, [NEW; 4]),
        (Cause::NodeShutDown, [NEW; 4]),
        (Cause::EvictedForItsStorage, [COUNTED, COUNTED, COUNTED, FAILS]),
    ];
    for (cause, expected) in table {
        for (policy, expected) in ["Always", "OnFailure", "ExitCode", "Never"].iter().zip(expected)
        {
            let mut w = World::with(&[("Worker", 2, policy)]).policy("backoffLimit", 1);
            w.settle();
            w.start_all();
            w.settle_counts();
            let uid = w.pod("worker-1")["metadata"]["uid"].clone();
            suffer(&mut w, cause);
            let found = match (w.typed().is_finished(), w.typed().restarts) {
                (true, _) => FAILS,
                (false, 0) => NEW,
                (false, _) => COUNTED,
            };
            assert_eq!(found, expected, "{cause:?} under {policy}");
            if found != FAILS {
                assert_ne!(w.pod("worker-1")["metadata"]["uid"], uid, "{cause:?} under {policy}");
            }
        }
    }
}
