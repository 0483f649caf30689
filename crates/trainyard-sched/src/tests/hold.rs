//! Waiting, backfill and what is kept for those that have waited long.

use serde_json::json;

use super::world::World;
use crate::Config;

fn world() -> World {
    World::with(Config { reserve_after: 10, overdue_after: 100, ..Config::default() })
}

#[test]
fn small_ones_overtake_a_large_one_that_has_not_waited_long() {
    let mut world = world();
    world.node("a", "4").gang("first", 1, "2");
    world.decide();
    world.gang("large", 4, "1").gang("small", 1, "1");
    world.decide();
    assert_eq!((world.placed("large"), world.placed("small")), (0, 1));
}

#[test]
fn nodes_are_kept_for_one_that_has_waited_long() {
    let mut world = world();
    world.node("a", "4").node("b", "4").gang("first", 1, "2").gang("second", 1, "4");
    world.decide();
    world.gang("large", 1, "4");
    world.decide();
    world.now += 11;
    // Half of one node is free, but it is the node that will be free first.
    world.gang("small", 1, "1");
    world.decide();
    assert_eq!((world.placed("large"), world.placed("small")), (0, 0));
    world.end_group("first").decide();
    assert_eq!((world.placed("large"), world.placed("small")), (1, 0));
}

#[test]
fn what_does_not_delay_it_goes_on() {
    let mut world = world();
    world.node("a", "4").node("b", "4").gang("first", 1, "2").gang("second", 1, "1");
    world.decide();
    // Both lie on one node; the other one is free.
    world.gang("large", 2, "3");
    world.decide();
    world.now += 11;
    world.gang("small", 1, "1");
    world.decide();
    assert_eq!((world.placed("large"), world.placed("small")), (0, 1));
}

#[test]
fn nothing_is_started_before_one_that_is_overdue() {
    let mut world = world();
    world.node("a", "4").node("b", "4").gang("first", 1, "2").gang("second", 1, "1");
    world.decide();
    world.gang("large", 2, "3");
    world.decide();
    world.now += 101;
    world.gang("small", 1, "1");
    world.decide();
    assert_eq!((world.placed("large"), world.placed("small")), (0, 0));
    assert!(world.said["small-0"].contains("kept for a group"), "{}", world.said["small-0"]);
    world.end_group("first").decide();
    assert_eq!((world.placed("large"), world.placed("small")), (2, 1));
}

#[test]
fn nothing_is_kept_for_one_that_would_never_fit() {
    let mut world = world();
    world.node("a", "4").gang("giant", 5, "1");
    world.decide();
    world.now += 1_000;
    world.gang("small", 4, "1").decide();
    assert_eq!(world.placed("small"), 4);
}

#[test]
fn room_that_is_being_freed_goes_to_who_is_first_in_line() {
    let mut world = world();
    world.node("a", "2").gang("old", 2, "1");
    world.decide();
    world.change("old-0", |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    world.change("old-1", |pod| {
        pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    });
    world.gang("large", 2, "1").decide();
    assert!(world.said["large-0"].contains("once resource is released"));
    world.gone("old-0").gang("small", 1, "1").decide();
    assert_eq!((world.placed("large"), world.placed("small")), (0, 0));
    world.gone("old-1").decide();
    assert_eq!((world.placed("large"), world.placed("small")), (2, 0));
}

#[test]
fn a_gang_whose_binding_failed_is_undone() {
    let mut world = World::new();
    world.node("a", "1").node("b", "1").gang("g", 2, "1");
    world.decide();
    // One binding did not come about, and its node is gone.
    let lost = if world.node_of("g-0") == Some("b") { "g-0" } else { "g-1" };
    world.change(lost, |pod| {
        pod["spec"].as_object_mut().unwrap().remove("nodeName");
    });
    world.state.apply(crate::Delta::NodeGone("b".to_owned()));
    world.decide();
    assert_eq!(world.causes.len(), 1);
    assert!(world.causes.values().all(|cause| *cause == crate::Cause::Incomplete));
}
