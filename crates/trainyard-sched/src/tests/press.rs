//! Preemption and reclaim.

use serde_json::{Value, json};

use super::world::{World, key};
use crate::{Cause, Delta, PriorityClass};

fn classes(world: &mut World) {
    for (name, value) in [("low", 1), ("high", 100)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        let class: PriorityClass = serde_json::from_value(class).unwrap();
        world.state.apply(Delta::Class(class));
    }
}

fn spec(minimum: usize, class: &str, queue: &str) -> Value {
    json!({"minMember": minimum, "priorityClassName": class, "queue": queue})
}

fn cpu(amount: &str) -> Value {
    json!({"cpu": amount})
}

#[test]
fn a_higher_priority_takes_the_place_of_a_whole_gang_and_of_no_more() {
    let mut world = World::new();
    classes(&mut world);
    world.node("a", "2").node("b", "2");
    world.gang_with("one", 2, &spec(2, "low", "default"), &cpu("1"));
    world.gang_with("two", 2, &spec(2, "low", "default"), &cpu("1"));
    world.decide();
    world.gang_with("urgent", 2, &spec(2, "high", "default"), &cpu("1"));
    world.decide();
    // The younger of two of equal priority goes, as a whole.
    assert_eq!(world.evicted(), ["two-0", "two-1"]);
    assert_eq!(world.causes["two-0"], Cause::Preempted(key("urgent")));
    assert_eq!(world.placed("urgent"), 0);
    assert!(world.said["urgent-0"].contains("once resource is released"), "{:?}", world.said);
    world.decide();
    assert_eq!(world.evicted().len(), 2);
    world.clear().decide();
    assert_eq!((world.placed("urgent"), world.placed("one")), (2, 2));
}

#[test]
fn nobody_goes_if_it_would_not_help() {
    let mut world = World::new();
    classes(&mut world);
    world.node("a", "2").node("b", "2");
    world.gang_with("low", 2, &spec(2, "low", "default"), &cpu("1"));
    world.decide();
    world.gang_with("large", 1, &spec(1, "high", "default"), &cpu("3"));
    world.gang_with("many", 5, &spec(5, "high", "default"), &cpu("1"));
    world.decide();
    assert_eq!(world.evicted(), Vec::<&str>::new());
}

#[test]
fn members_above_the_minimum_go_before_whole_gangs() {
    let mut world = World::new();
    classes(&mut world);
    world.node("a", "4");
    world.gang_with("elastic", 3, &spec(1, "low", "default"), &cpu("1"));
    world.gang_with("strict", 1, &spec(1, "low", "default"), &cpu("1"));
    world.decide();
    assert_eq!(world.placed("elastic"), 3);
    world.gang_with("urgent", 1, &spec(1, "high", "default"), &cpu("1"));
    world.decide();
    assert_eq!(world.evicted(), ["elastic-2"]);
}

#[test]
fn equal_priority_and_protected_pods_are_left_alone() {
    let mut world = World::new();
    classes(&mut world);
    world.node("a", "2");
    world.gang_with("same", 1, &spec(1, "high", "default"), &cpu("1"));
    world.gang_with("spared", 1, &spec(1, "low", "default"), &cpu("1"));
    world.change("spared-0", |pod| {
        pod["metadata"]["labels"]["volcano.sh/preemptable"] = json!("false");
    });
    world.decide();
    world.gang_with("urgent", 1, &spec(1, "high", "default"), &cpu("1"));
    world.decide();
    assert_eq!(world.evicted(), Vec::<&str>::new());
}

#[test]
fn who_may_not_preempt_waits() {
    let mut world = World::new();
    classes(&mut world);
    world.node("a", "1");
    world.gang_with("low", 1, &spec(1, "low", "default"), &cpu("1"));
    world.decide();
    world.gang_with("meek", 1, &spec(1, "high", "default"), &cpu("1"));
    world.change("meek-0", |pod| pod["spec"]["preemptionPolicy"] = json!("Never"));
    world.decide();
    assert_eq!(world.evicted(), Vec::<&str>::new());
}

#[test]
fn only_those_leave_whose_nodes_are_of_use() {
    let mut world = World::new();
    classes(&mut world);
    world.node("a", "2").node_with("gpu", &json!({"cpu": "2", "nvidia.com/gpu": "1"}));
    world.gang_with("young", 2, &spec(2, "low", "default"), &cpu("1"));
    world.decide();
    assert_eq!(world.node_of("young-0"), Some("a"));
    world.gang_with("gpu", 1, &spec(1, "low", "default"), &json!({"nvidia.com/gpu": "1"}));
    world.decide();
    world.gang_with("urgent", 1, &spec(1, "high", "default"), &json!({"nvidia.com/gpu": "1"}));
    world.decide();
    assert_eq!(world.evicted(), ["gpu-0"]);
}

#[test]
fn whoever_is_within_its_budget_goes_first_for_preemption_and_for_reclaim() {
    for queue in ["default", "r"] {
        let mut world = World::new();
        world.node("a", "2").queue("q", &json!({})).queue("r", &json!({}));
        let own = if queue == "default" { "default" } else { "q" };
        for name in ["one", "two"] {
            world.gang_with(name, 1, &json!({"minMember": 1, "queue": own}), &json!({"cpu": "1"}));
        }
        world.decide();
        // Without a budget the younger one would go.
        let budget = json!({
            "metadata": {"namespace": "n", "name": "b"},
            "spec": {"selector": {"matchLabels": {"pod": "two-0"}}},
            "status": {"disruptionsAllowed": 0},
        });
        let budget = Delta::Budget(Box::new(serde_json::from_value(budget).unwrap()));
        world.state.apply(budget);
        let spec = json!({"minMember": 1, "queue": queue});
        world.gang_with("new", 1, &spec, &json!({"cpu": "1"}));
        world.change("new-0", |pod| pod["spec"]["priority"] = json!(10));
        world.decide();
        assert_eq!(world.evicted(), ["one-0"], "{queue}");
        // Where nothing else helps a budget is no obstacle.
        world.clear().decide();
        world.gang_with("more", 1, &spec, &json!({"cpu": "1"}));
        world.change("more-0", |pod| pod["spec"]["priority"] = json!(10));
        world.decide();
        let all: &[&str] = if queue == "r" { &["one-0"] } else { &["one-0", "two-0"] };
        assert_eq!(world.evicted(), all, "{queue}");
    }
}

#[test]
fn of_those_beyond_their_budget_the_fewest_go() {
    let mut world = World::new();
    world.node("a", "2");
    world.gang_with("one", 1, &json!({"minMember": 1}), &cpu("1"));
    // The younger ones, who would go without a budget.
    world.gang_with("two", 2, &json!({"minMember": 2}), &cpu("500m"));
    world.decide();
    for (group, pods) in [("one", 1), ("two", 2)] {
        let names: Vec<String> = (0..pods).map(|index| format!("{group}-{index}")).collect();
        let budget = json!({
            "metadata": {"namespace": "n", "name": group},
            "spec": {"selector": {"matchExpressions":
                [{"key": "pod", "operator": "In", "values": names}]}},
            "status": {"disruptionsAllowed": 0},
        });
        world.state.apply(Delta::Budget(Box::new(serde_json::from_value(budget).unwrap())));
    }
    world.gang_with("new", 1, &json!({"minMember": 1}), &cpu("1"));
    world.change("new-0", |pod| pod["spec"]["priority"] = json!(10));
    world.decide();
    assert_eq!(world.evicted(), ["one-0"]);
}

#[test]
fn a_queue_takes_back_its_share_but_no_more() {
    let mut world = World::new();
    world.node("a", "8").queue("q", &json!({})).queue("r", &json!({}));
    for name in ["r1", "r2", "r3", "r4"] {
        world.gang_with(name, 2, &spec(2, "", "r"), &cpu("1"));
    }
    world.decide();
    assert_eq!(world.pods.values().filter(|pod| pod["spec"]["nodeName"].is_string()).count(), 8);
    for name in ["q1", "q2", "q3"] {
        world.gang_with(name, 2, &spec(2, "", "q"), &cpu("1"));
    }
    world.decide();
    assert_eq!(world.evicted(), ["r3-0", "r3-1", "r4-0", "r4-1"]);
    assert_eq!(world.causes["r4-0"], Cause::Reclaimed(key("q1")));
    for _ in 0..3 {
        world.clear().decide();
    }
    assert_eq!(world.evicted().len(), 4);
    let placed = ["q1", "q2", "q3", "r1", "r2"].map(|group| world.placed(group));
    assert_eq!(placed, [2, 2, 0, 2, 2]);
}

#[test]
fn a_queue_is_not_taken_below_its_share_nor_touched_if_it_says_so() {
    let mut world = World::new();
    world.node("a", "8").queue("q", &json!({})).queue("r", &json!({"reclaimable": false}));
    world.gang_with("r1", 8, &spec(1, "", "r"), &cpu("1"));
    world.decide();
    world.gang_with("q1", 2, &spec(2, "", "q"), &cpu("1"));
    world.decide();
    assert_eq!(world.evicted(), Vec::<&str>::new());
    // One gang that is the whole of the queue's use is not broken for a part of it.
    let mut world = World::new();
    world.node("a", "8").queue("q", &json!({})).queue("r", &json!({}));
    world.gang_with("r1", 6, &spec(6, "", "r"), &cpu("1"));
    world.decide();
    world.gang_with("q1", 4, &spec(4, "", "q"), &cpu("1"));
    world.decide();
    assert_eq!(world.evicted(), Vec::<&str>::new());
}

#[test]
fn a_high_priority_makes_room_in_the_limit_of_its_queue() {
    let mut world = World::new();
    classes(&mut world);
    world.node("a", "8").queue("q", &json!({"capability": {"cpu": "2"}}));
    world.gang_with("low", 2, &spec(2, "low", "q"), &cpu("1"));
    world.decide();
    world.gang_with("urgent", 2, &spec(2, "high", "q"), &cpu("1"));
    world.decide();
    assert_eq!(world.evicted(), ["low-0", "low-1"]);
    world.decide();
    assert_eq!(world.placed("urgent"), 0, "the limit counts those that are leaving");
    world.clear().decide();
    assert_eq!(world.placed("urgent"), 2);
}

#[test]
fn two_broken_gangs_do_not_wait_for_each_other() {
    let mut world = World::new();
    world.node("a", "2").node("b", "2");
    world.gang("one", 2, "1").gang("two", 2, "1");
    world.decide();
    for pod in ["one-0", "one-1", "two-0", "two-1"] {
        world.change(pod, |value| value["status"] = json!({"phase": "Running"}));
    }
    // As if a node had taken one member of each with it.
    world.state.apply(Delta::NodeGone("b".to_owned()));
    let lost: Vec<String> = ["one-0", "one-1", "two-0", "two-1"]
        .into_iter()
        .filter(|pod| world.node_of(pod) == Some("b"))
        .map(str::to_owned)
        .collect();
    assert_eq!(lost.len(), 2);
    if lost[0][..3] == lost[1][..3] {
        // Packed by gang: exchange a member of each by hand.
        let (stays, goes) =
            if lost[0].starts_with("one") { ("two-1", "one-0") } else { ("one-1", "two-0") };
        world.change(stays, |value| value["spec"]["nodeName"] = json!("b"));
        world.change(goes, |value| value["spec"]["nodeName"] = json!("a"));
    }
    let gone: Vec<String> =
        world.pods.keys().filter(|pod| world.node_of(pod) == Some("b")).cloned().collect();
    for pod in gone {
        let group = pod[..3].to_owned();
        world.gone(&pod);
        world.now += 1;
        let now = world.now;
        world.pod(super::world::member(&pod, &group, now, &cpu("1")));
    }
    world.decide();
    world.clear().decide();
    assert_eq!((world.placed("one"), world.placed("two")), (2, 0), "{:?}", world.said);
}
