//! What is said of groups that wait, as data.

use serde_json::json;

use super::world::{World, key};
use crate::{Constraint, Remedy};

#[test]
fn a_group_without_room_is_told_what_is_short_who_has_it_and_what_would_fit() {
    let mut world = World::new();
    world.node("a", "4").node("b", "4").gang("holder", 5, "1");
    world.decide();
    world.gang("g", 4, "1").gang("h", 3, "3");
    world.decide();
    let g = world.state.explain(&key("g"), world.now).unwrap();
    assert_eq!((g.constraint, g.nodes, g.position, g.of), (Constraint::Room, 2, 1, 2));
    let short = &g.shortages[0];
    assert_eq!((short.resource.as_str(), short.asked, short.free), ("cpu", 4000, 3000));
    assert_eq!((g.holders[0].group.clone(), g.holders[0].has.get("cpu")), (key("holder"), 5000));
    assert!(g.remedies.contains(&Remedy::FewerMembers { from: 4, to: 3 }), "{:?}", g.remedies);
    let smaller = Remedy::SmallerMembers { resource: "cpu".into(), from: 1000, to: 750 };
    assert!(g.remedies.contains(&smaller), "{:?}", g.remedies);
    let h = world.state.explain(&key("h"), world.now).unwrap();
    assert_eq!((h.constraint, h.position), (Constraint::TooLarge, 2));
    assert!(world.state.explain(&key("nobody"), 0).is_none());
    let json = serde_json::to_value(&g).unwrap();
    assert_eq!(json["shortages"][0]["mostOnOneNode"], 3000);
}

#[test]
fn the_remedies_are_true() {
    let mut world = World::new();
    world.node("a", "4").node("b", "4").gang("holder", 5, "1");
    world.decide();
    world.gang("g", 4, "750m").decide();
    assert_eq!(world.placed("g"), 4);
}

#[test]
fn limits_members_and_notes_are_named() {
    let mut world = World::new();
    world.node("a", "8").queue("q", &json!({"capability": {"cpu": "2"}, "parent": "team"}));
    world.gang_with("g", 3, &json!({"minMember": 3, "queue": "q"}), &json!({"cpu": "1"}));
    world.gang_with("few", 1, &json!({"minMember": 2}), &json!({"cpu": "1"}));
    world.decide();
    let g = world.state.explain(&key("g"), world.now).unwrap();
    assert_eq!(g.constraint, Constraint::QueueLimit);
    assert_eq!(
        g.remedies,
        [Remedy::RaiseLimit { queue: "q".into(), resource: "cpu".into(), by: 1000 }]
    );
    assert!(g.notes[0].contains("team"), "{:?}", g.notes);
    let few = world.state.explain(&key("few"), world.now).unwrap();
    assert_eq!(few.constraint, Constraint::Members);
    assert_eq!(few.message, "Not enough valid tasks for gang-scheduling, valid: 1, min: 2");
    world.gang("fine", 1, "1").decide();
    let fine = world.state.explain(&key("fine"), world.now).unwrap();
    assert_eq!((fine.constraint, fine.ready), (Constraint::None, 1));
}

/// The example of docs/scheduling.md.
#[test]
fn the_worked_example_is_true() {
    let mut world = World::new();
    world.node("a", "8").node("b", "8").gang("resnet", 5, "2");
    world.decide();
    world.gang("bert-worker", 4, "2").decide();
    let told = world.state.explain(&key("bert-worker"), world.now).unwrap();
    assert_eq!(
        told.message,
        "pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Unschedulable, \
         3 Schedulable. Origin reason is bert-worker-3: 0/2 nodes are unavailable: 2 Insufficient \
         cpu."
    );
    let short = &told.shortages[0];
    assert_eq!((short.asked, short.free, short.most_on_one_node), (8_000, 6_000, 6_000));
    assert_eq!((told.holders[0].pods, told.holders[0].has.get("cpu")), (5, 10_000));
    let smaller = Remedy::SmallerMembers { resource: "cpu".into(), from: 2_000, to: 1_500 };
    assert_eq!(told.remedies, [Remedy::FewerMembers { from: 4, to: 3 }, smaller]);
}
