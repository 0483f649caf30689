//! Property tests of the counts: restarts in place once, deletions never.

use std::collections::BTreeMap;

use proptest::prelude::*;
use trainyard_api::ConditionType;

use super::{HISTORIES, World, nth};
use crate::effort::of_time;

#[derive(Debug, Clone)]
enum Move {
    Settle,
    /// The operator looks; counts may be held back.
    Look,
    /// The operator stops after so many writes of a plan.
    Crash(usize),
    StartAll,
    /// The container ends and is started again in place.
    InPlace(usize),
    Succeed(usize),
    Evict(usize),
    Delete(usize),
    /// The program of a pod that is being deleted ends with this code; its final phase is
    /// published, or not yet.
    Obey(usize, i64, bool),
    CutGracePeriods,
    FinishDeletions,
    Vanish(usize),
    Pass(i64),
}

fn replicas_that_restart_in_place() -> impl Strategy<Value = Move> {
    let pod = any::<usize>;
    prop_oneof![
        4 => Just(Move::Settle),
        4 => Just(Move::Look),
        2 => (0..4usize).prop_map(Move::Crash),
        4 => Just(Move::StartAll),
        6 => pod().prop_map(Move::InPlace),
        1 => pod().prop_map(Move::Succeed),
        1 => pod().prop_map(Move::Evict),
        2 => pod().prop_map(Move::Delete),
        2 => Just(Move::FinishDeletions),
        3 => pod().prop_map(Move::Vanish),
        1 => prop::sample::select(vec![500, 12_000]).prop_map(Move::Pass),
    ]
}

fn deletions() -> impl Strategy<Value = Move> {
    let pod = any::<usize>;
    let code = prop::sample::select(vec![0, 1, 137, 143]);
    prop_oneof![
        4 => Just(Move::Settle),
        2 => (0..4usize).prop_map(Move::Crash),
        4 => Just(Move::StartAll),
        4 => pod().prop_map(Move::Delete),
        4 => (pod(), code, any::<bool>())
            .prop_map(|(pod, code, published)| Move::Obey(pod, code, published)),
        2 => Just(Move::CutGracePeriods),
        2 => Just(Move::FinishDeletions),
        1 => pod().prop_map(Move::Vanish),
        2 => prop::sample::select(vec![500, 2_000, 12_000]).prop_map(Move::Pass),
    ]
}

fn runs(w: &mut World, pod: &str) -> bool {
    let status = &w.pod(pod)["status"];
    status["phase"] == "Running" && status["containerStatuses"][0]["state"]["running"].is_object()
}

fn take(w: &mut World, step: &Move) {
    let pod = match step {
        Move::InPlace(n)
        | Move::Succeed(n)
        | Move::Evict(n)
        | Move::Delete(n)
        | Move::Obey(n, ..)
        | Move::Vanish(n) => nth(w, *n),
        _ => None,
    };
    match (step, pod) {
        (Move::Settle, _) => w.settle_counts(),
        (Move::Look, _) => drop(w.settle()),
        (Move::Crash(writes), _) => {
            let plan = w.plan();
            for write in plan.writes().take(*writes).cloned().collect::<Vec<_>>() {
                w.write(&write);
            }
            // The operator that comes after has seen nobody go.
            w.departed.clear();
        }
        (Move::StartAll, _) => w.start_all(),
        (Move::CutGracePeriods, _) => w.cut_grace_periods(),
        (Move::FinishDeletions, _) => w.finish_deletions(),
        (Move::Pass(ms), _) => w.pass_ms(*ms),
        (Move::InPlace(_), Some(pod)) if runs(w, &pod) => {
            let before = w.pod(&pod)["status"]["containerStatuses"][0]["restartCount"].as_i64();
            w.restart_in_place(&pod, before.unwrap_or(0) + 1);
        }
        (Move::Succeed(_), Some(pod)) if runs(w, &pod) => w.exit(&pod, 0),
        (Move::Evict(_), Some(pod)) if runs(w, &pod) => w.evict(&pod),
        (Move::Delete(_), Some(pod)) => w.delete_pod(&pod),
        (Move::Obey(_, code, published), Some(pod))
            if runs(w, &pod) && !w.pod(&pod)["metadata"]["deletionTimestamp"].is_null() =>
        {
            w.terminate(&pod, *code);
            if *published {
                w.publish_end(&pod);
            }
        }
        (Move::Vanish(_), Some(pod)) => w.vanish(&pod),
        _ => {}
    }
}

/// Restarts in place that the pods show now, by UID.
fn shown(w: &World) -> BTreeMap<String, i64> {
    let of = |pod: &serde_json::Value| {
        let count = pod["status"]["containerStatuses"][0]["restartCount"].as_i64();
        (pod["metadata"]["uid"].as_str().unwrap().to_owned(), count.unwrap_or(0))
    };
    let gone = w.departed.iter().map(|pod| (pod.uid.to_string(), pod.restarts()));
    w.pods.values().map(of).chain(gone).collect()
}

fn raise(known: &mut BTreeMap<String, i64>, shown: BTreeMap<String, i64>) {
    for (uid, count) in shown {
        let known = known.entry(uid).or_default();
        *known = count.max(*known);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: of_time(HISTORIES), failure_persistence: None, ..ProptestConfig::default() })]

    /// Restarts that a pod's status shows when the operator looks are counted, whatever has become of
    /// the pod, and none is counted twice.
    #[test]
    fn restarts_in_place_are_counted_once_in_whatever_order_they_are_seen(
        steps in prop::collection::vec(replicas_that_restart_in_place(), 1..40),
    ) {
        let mut w = World::with(&[("Worker", 3, "OnFailure")]);
        w.spec["successPolicy"] = "AllWorkers".into();
        let (mut seen, mut ever) = (BTreeMap::new(), BTreeMap::new());
        for step in &steps {
            let before = shown(&w);
            if matches!(step, Move::Settle) && !w.typed().is_finished() {
                raise(&mut seen, before);
            }
            take(&mut w, step);
            raise(&mut ever, shown(&w));
            let counted = w.typed().restarts;
            prop_assert!(counted >= seen.values().sum(), "{counted} of {seen:?}");
            prop_assert!(counted <= ever.values().sum(), "{counted}, but ever only {ever:?}");
        }
    }

    /// However its program takes the deletion and whatever is seen first: a deleted pod is no failure,
    /// no success, and is not counted, under any policy.
    #[test]
    fn deleted_pods_are_never_judged(
        policy in prop::sample::select(vec!["Always", "OnFailure", "Never", "ExitCode"]),
        steps in prop::collection::vec(deletions(), 1..40),
    ) {
        let mut w = World::with(&[("Worker", 2, policy), ("PS", 1, policy)])
            .policy("backoffLimit", 0);
        for step in &steps {
            take(&mut w, step);
            let status = w.typed();
            prop_assert!(!status.is(ConditionType::Failed), "{:?}", w.conditions());
            prop_assert!(!status.is(ConditionType::Succeeded), "{:?}", w.conditions());
            prop_assert_eq!(status.restarts, 0);
        }
    }
}
