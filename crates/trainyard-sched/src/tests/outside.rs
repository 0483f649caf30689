//! What is said of groups that are not let into their queue: there are no pods to look at.

use serde_json::{Value, from_value, json};

use super::world::{World, key, time};
use crate::{Constraint, Delta, Explanation, Remedy};

fn pending(name: &str, created: i64, spec: &Value) -> Delta {
    let value = json!({
        "metadata": {"namespace": "n", "name": name, "uid": name,
            "creationTimestamp": time(created)},
        "spec": spec,
    });
    Delta::Group(Box::new(from_value(value).unwrap()))
}

/// Two nodes of 8 processors; `resnet` has 10 of the 16, and queue `q` may use 6.
fn world() -> World {
    let mut world = World::new();
    world.node("a", "8").node("b", "8").queue("q", &json!({"capability": {"cpu": "6"}}));
    world.gang("resnet", 5, "2").decide();
    world
}

fn explained(world: &mut World, spec: &Value) -> Explanation {
    world.state.apply(pending("g", 1_500, spec));
    world.state.explain(&key("g"), 1_600).unwrap()
}

fn spec(members: usize, cpu: &str, queue: &str) -> Value {
    json!({"minMember": members, "queue": queue,
        "minResources": {"cpu": cpu, "pods": members, "count/pods": members}})
}

fn fewer(from: usize, to: usize) -> Remedy {
    Remedy::FewerMembers { from, to }
}

fn smaller(from: i64, to: i64) -> Remedy {
    Remedy::SmallerMembers { resource: "cpu".into(), from, to }
}

fn raise(by: i64) -> Remedy {
    Remedy::RaiseLimit { queue: "q".into(), resource: "cpu".into(), by }
}

#[test]
fn what_binds_and_what_helps_is_told_before_there_are_pods() {
    struct Case {
        what: &'static str,
        spec: Value,
        constraint: Constraint,
        short: Option<(i64, i64, i64)>,
        remedies: Vec<Remedy>,
    }
    let cases = [
        Case {
            what: "larger than the cluster",
            spec: spec(9, "18", "default"),
            constraint: Constraint::TooLarge,
            short: Some((18_000, 6_000, 2_000)),
            remedies: vec![fewer(9, 3), smaller(2_000, 666)],
        },
        Case {
            what: "no node has so much, and together it is too much",
            spec: spec(2, "18", "default"),
            constraint: Constraint::TooLarge,
            short: Some((18_000, 6_000, 9_000)),
            remedies: vec![smaller(9_000, 3_000)],
        },
        Case {
            what: "more than the queue may use",
            spec: spec(4, "8", "q"),
            constraint: Constraint::QueueLimit,
            short: Some((8_000, 6_000, 2_000)),
            remedies: vec![fewer(4, 3), smaller(2_000, 1_500), raise(2_000)],
        },
        Case {
            what: "more than the queue may use, and raising that would not help",
            spec: spec(10, "20", "q"),
            constraint: Constraint::TooLarge,
            short: Some((20_000, 6_000, 2_000)),
            remedies: vec![fewer(10, 3), smaller(2_000, 600)],
        },
        Case {
            what: "a resource that nobody has",
            spec: json!({"minMember": 2, "minResources": {"example.com/fpga": "2"}}),
            constraint: Constraint::TooLarge,
            short: Some((2, 0, 1)),
            remedies: vec![],
        },
        Case {
            what: "members that differ are not told how small to be",
            spec: json!({"minMember": 9, "minTaskMember": {"ps": 1, "worker": 8},
                "minResources": {"cpu": "18"}}),
            constraint: Constraint::TooLarge,
            short: Some((18_000, 6_000, 2_000)),
            remedies: vec![fewer(9, 3)],
        },
        Case {
            what: "a queue that is not there",
            spec: spec(1, "1", "nowhere"),
            constraint: Constraint::Queue,
            short: None,
            remedies: vec![],
        },
    ];
    for Case { what, spec, constraint, short, remedies } in cases {
        let told = explained(&mut world(), &spec);
        let first = told.shortages.first();
        assert_eq!(told.constraint, constraint, "{what}");
        assert_eq!(first.map(|one| (one.asked, one.free, one.per_member)), short, "{what}");
        assert_eq!(told.remedies, remedies, "{what}");
        assert_eq!((told.waiting, told.ready, told.since), (0, 0, 1_500), "{what}");
    }
}

/// The example of docs/scheduling.md.
#[test]
fn the_worked_example_is_true() {
    let told = explained(&mut world(), &spec(10, "20", "default"));
    assert_eq!((told.constraint, told.position, told.of), (Constraint::TooLarge, 1, 1));
    let words = "resource in cluster is overused: cpu: 20 asked for, 6 free: 14 too little";
    assert_eq!(told.message, words);
    assert_eq!((told.shortages[0].asked, told.shortages[0].free), (20_000, 6_000));
    assert_eq!((&told.holders[0].group, told.holders[0].pods), (&key("resnet"), 5));
    assert_eq!(told.reasons, [("Insufficient cpu".to_owned(), 2)].into());
    assert_eq!(told.remedies, [fewer(10, 3), smaller(2_000, 600)]);
    assert_eq!(told.shortages.len() + told.notes.len(), 2);
}

#[test]
fn who_has_it_and_who_is_before_it_is_told() {
    let mut world = world();
    // The first of its queue is let in however full the cluster is, the others are not.
    world.state.apply(pending("first", 1_100, &spec(4, "8", "default")));
    world.decide();
    world.state.apply(pending("second", 1_200, &spec(1, "8", "default")));
    let told = explained(&mut world, &spec(4, "8", "default"));
    assert_eq!(told.constraint, Constraint::Room);
    let words = "resource in cluster is overused: cpu: 8 asked for, 0 free: 8 too little";
    assert_eq!(told.message, words);
    assert_eq!((told.position, told.of), (2, 2));
    let short = &told.shortages[0];
    assert_eq!((short.asked, short.free, short.most_on_one_node), (8_000, 0, 6_000));
    let holders: Vec<_> = told.holders.iter().map(|one| (&one.group, one.pods)).collect();
    assert_eq!(holders, [(&key("resnet"), 5), (&key("first"), 4)]);
    assert_eq!(told.holders[1].has.get("cpu"), 8_000);
    assert_eq!(told.reasons, [("Insufficient cpu".to_owned(), 2)].into());
    assert!(told.notes[0].contains("not made yet"), "{:?}", told.notes);
}

#[test]
fn under_a_limit_only_its_own_queue_counts() {
    let mut world = world();
    let own = json!({"minMember": 2, "queue": "q"});
    world.gang_with("own", 2, &own, &json!({"cpu": "2"})).decide();
    let told = explained(&mut world, &spec(2, "4", "q"));
    assert_eq!(told.constraint, Constraint::QueueLimit);
    assert_eq!((told.shortages[0].asked, told.shortages[0].free), (4_000, 2_000));
    let holders: Vec<_> = told.holders.iter().map(|one| (&one.group, one.pods)).collect();
    assert_eq!(holders, [(&key("own"), 2)]);
    assert_eq!(told.remedies, [fewer(2, 1), smaller(2_000, 1_000), raise(2_000)]);
}

#[test]
fn the_remedies_are_true() {
    for (members, cpu, capability) in [(3, "6", "6"), (9, "5994m", "6"), (4, "6", "6")] {
        let mut world = world();
        world.queue("q", &json!({"capability": {"cpu": capability}}));
        let told = explained(&mut world, &spec(members, cpu, "q"));
        assert_eq!(told.constraint, Constraint::Members, "{members} of {cpu} are let in");
        world.decide();
        assert_eq!(world.reports["g"].phase.as_str(), "Inqueue");
    }
}

#[test]
fn members_that_are_left_do_not_hide_why_the_others_are_not_made() {
    let mut world = world();
    let told = explained(&mut world, &spec(9, "18", "default"));
    let pod = super::world::member("g-0", "g", 1_500, &json!({"cpu": "2"}));
    world.pod(pod).decide();
    let again = world.state.explain(&key("g"), 1_600).unwrap();
    assert_eq!((again.constraint, &again.message), (told.constraint, &told.message));
    assert_eq!(world.reports["g"].condition.as_ref().unwrap().message, told.message);
}
