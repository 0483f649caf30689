//! Restarts in place of pods that have gone before they were recorded.

use crate::tfjob::world::World;

fn running(policy: &str) -> World {
    let mut w = World::with(&[("Worker", 2, policy)]);
    w.settle();
    w.start_all();
    w.settle_counts();
    w
}

#[test]
fn a_pod_that_is_deleted_by_force_right_after_its_restart_is_counted() {
    let mut w = running("OnFailure");
    w.restart_in_place("worker-1", 1);
    w.settle();
    assert_eq!(w.typed().restarts, 0, "mere counts are held back");
    w.vanish("worker-1");
    w.settle();
    assert_eq!(w.typed().restarts, 1);
    w.start("worker-1");
    w.restart_in_place("worker-1", 2);
    w.settle_counts();
    assert_eq!(w.typed().restarts, 3, "those of its successor too");
}

#[test]
fn what_is_told_twice_is_counted_once() {
    let mut w = running("OnFailure");
    w.restart_in_place("worker-1", 2);
    w.settle_counts();
    w.vanish("worker-1");
    let departed = w.departed.clone();
    w.settle_counts();
    assert_eq!(w.typed().restarts, 2, "it had been counted before it went");
    w.start("worker-1");
    w.restart_in_place("worker-1", 1);
    w.settle_counts();
    // The answer to the write was lost, so that it is looked at once more.
    w.departed = departed;
    w.settle_counts();
    assert_eq!(w.typed().restarts, 3);
}

#[test]
fn the_limit_heeds_those_who_have_gone() {
    let mut w = running("OnFailure").policy("backoffLimit", 1);
    w.restart_in_place("worker-0", 1);
    w.vanish("worker-0");
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Failed T");
    let failure = w.typed().failure.unwrap();
    assert_eq!((failure.pod.as_str(), failure.exit_code), ("j-worker-0", Some(1)));
}

#[test]
fn pods_of_replicas_that_are_not_asked_for_any_more_do_not_count() {
    let mut w = running("OnFailure");
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = 1.into();
    w.restart_in_place("worker-1", 3);
    w.vanish("worker-1");
    w.settle_counts();
    assert_eq!(w.typed().restarts, 0);
}
