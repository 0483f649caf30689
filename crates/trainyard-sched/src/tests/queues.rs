//! Queues: limits, shares, order, states; and groups whose queue or PodGroup is not there.

use serde_json::{Value, json};

use super::world::{World, group_delta, key, member, node_delta, node_value};
use crate::{Amounts, Condition, Constraint, Delta, GroupPhase};

fn spec(minimum: usize, queue: &str) -> Value {
    json!({"minMember": minimum, "queue": queue})
}

fn cpu(amount: &str) -> Value {
    json!({"cpu": amount})
}

#[test]
fn the_least_served_queue_goes_first() {
    let mut world = World::new();
    world.node("a", "4").queue("q", &json!({})).queue("r", &json!({"weight": 3}));
    for name in ["q1", "q2", "q3", "q4"] {
        world.gang_with(name, 1, &spec(1, "q"), &cpu("1"));
    }
    for name in ["r1", "r2", "r3", "r4"] {
        world.gang_with(name, 1, &spec(1, "r"), &cpu("1"));
    }
    world.decide();
    let placed = |queue: &str| (1..5).filter(|i| world.placed(&format!("{queue}{i}")) == 1).count();
    assert_eq!((placed("q"), placed("r")), (1, 3));
    assert_eq!(world.state.allocated("r"), Amounts::from([("cpu", 3000), ("pods", 3)]));
}

#[test]
fn nodes_that_are_lost_or_cordoned_are_no_part_of_shares() {
    let lost = json!({"conditions": [{"type": "Ready", "status": "Unknown"}]});
    for (spec_of_node, status) in [(json!({"unschedulable": true}), json!({})), (json!({}), lost)] {
        let mut world = World::new();
        world.node("a", "4").queue("q", &json!({})).queue("r", &json!({"weight": 3}));
        for name in ["q1", "q2", "q3", "q4"] {
            world.gang_with(name, 1, &spec(1, "q"), &cpu("1"));
        }
        world.decide();
        let mut away = node_value("b", &json!({"cpu": "4", "pods": "110"}));
        away["spec"] = spec_of_node;
        away["spec"]["taints"] = json!([{"key": "k", "value": "v", "effect": "NoSchedule"}]);
        away["status"]["conditions"] = status["conditions"].clone();
        if away["status"]["conditions"].is_null() {
            away["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
        }
        world.state.apply(node_delta(away));
        world.gang_with("r1", 3, &spec(3, "r"), &cpu("1"));
        world.decide();
        world.clear().decide();
        assert_eq!(world.placed("r1"), 3);
    }
}

#[test]
fn what_nobody_claims_is_lent() {
    let mut world = World::new();
    world.node("a", "4").queue("q", &json!({})).queue("r", &json!({}));
    world.gang_with("q1", 4, &spec(4, "q"), &cpu("1"));
    world.decide();
    assert_eq!(world.placed("q1"), 4);
}

#[test]
fn a_queue_never_exceeds_its_capability() {
    let mut world = World::new();
    world.node("a", "8").queue("q", &json!({"capability": {"cpu": "2"}}));
    world.gang_with("q1", 1, &spec(1, "q"), &cpu("2"));
    world.gang_with("q2", 1, &spec(1, "q"), &cpu("1"));
    world.decide();
    assert_eq!((world.placed("q1"), world.placed("q2")), (1, 0));
    let said = &world.said["q2-0"];
    assert!(said.starts_with("queue resource quota insufficient: insufficient cpu"), "{said}");
    assert!(said.contains("2 of 2"), "{said}");
}

#[test]
fn what_is_guaranteed_to_another_is_not_lent() {
    let mut world = World::new();
    world.node("a", "4").queue("q", &json!({}));
    world.queue("r", &json!({"guarantee": {"resource": {"cpu": "2"}}}));
    for name in ["q1", "q2", "q3"] {
        world.gang_with(name, 1, &spec(1, "q"), &cpu("1"));
    }
    world.decide();
    assert_eq!(world.state.allocated("q").get("cpu"), 2000);
}

#[test]
fn the_root_limits_all_queues_together() {
    let mut world = World::new();
    world.node("a", "8").queue("root", &json!({"capability": {"cpu": "3"}}));
    world.queue("q", &json!({})).queue("r", &json!({}));
    for (name, queue) in [("q1", "q"), ("r1", "r"), ("q2", "q"), ("r2", "r")] {
        world.gang_with(name, 1, &spec(1, queue), &cpu("1"));
    }
    world.decide();
    let used = |queue: &str| world.state.allocated(queue).get("cpu");
    assert_eq!(used("q") + used("r"), 3000);
}

#[test]
fn queues_of_higher_priority_go_first_and_fifo_waits_for_its_head() {
    let mut world = World::new();
    world.node("a", "2").queue("q", &json!({})).queue("vip", &json!({"priority": 5}));
    world.gang_with("q1", 1, &spec(1, "q"), &cpu("2"));
    world.gang_with("v1", 1, &spec(1, "vip"), &cpu("2"));
    world.decide();
    assert_eq!((world.placed("q1"), world.placed("v1")), (0, 1));
    let mut world = World::new();
    world.node("a", "2").queue("q", &json!({"dequeueStrategy": "fifo"}));
    world.gang_with("large", 3, &spec(3, "q"), &cpu("1"));
    world.gang_with("small", 1, &spec(1, "q"), &cpu("1"));
    world.decide();
    assert_eq!(world.placed("small"), 0);
    assert!(world.said["small-0"].contains("\"large\" is ahead"), "{}", world.said["small-0"]);
}

#[test]
fn unknown_and_closed_queues_and_groups_are_named_and_others_go_on() {
    let mut world = World::new();
    world.node("a", "8").queue("shut", &json!({}));
    let shut = json!({"metadata": {"name": "shut"}, "status": {"state": "Closed"}});
    world.state.apply(Delta::Queue(Box::new(serde_json::from_value(shut).unwrap())));
    world.gang_with("lost", 1, &spec(1, "nowhere"), &cpu("1"));
    world.gang_with("late", 1, &spec(1, "shut"), &cpu("1"));
    world.pod(member("orphan", "no-group", 1, &cpu("1")));
    world.gang("fine", 2, "1");
    world.decide();
    assert_eq!(world.placed("fine"), 2);
    assert_eq!(world.said["lost-0"], "unable to find queue: nowhere");
    assert!(world.said["late-0"].contains("queue `shut` status is `Closed`"));
    assert_eq!(world.said["orphan"], "pod group \"no-group\" not found");
    let explained = world.state.explain(&key("late"), 0).unwrap();
    assert_eq!(explained.constraint, Constraint::QueueClosed);
}

#[test]
fn the_default_queue_is_there_by_itself() {
    let mut world = World::new();
    world.node("a", "1").gang("g", 1, "1").decide();
    assert_eq!(world.placed("g"), 1);
}

#[test]
fn minimums_of_tasks_count() {
    let mut world = World::new();
    world.node("a", "2");
    let spec = json!({"minMember": 2, "minTaskMember": {"ps": 1, "worker": 1}});
    world.gang_with("j", 0, &spec, &json!({}));
    let task = |name: &str, task: &str| {
        let mut pod = member(name, "j", 1, &json!({"cpu": "1"}));
        pod["metadata"]["labels"]["volcano.sh/task-spec"] = json!(task);
        pod
    };
    world.pod(task("j-worker-0", "worker")).pod(task("j-worker-1", "worker"));
    world.decide();
    assert_eq!(world.placed("j"), 0);
    assert!(world.said["j-worker-0"].contains("task \"ps\" has 0 of 1"));
    let condition = world.reports["j"].condition.clone().unwrap();
    assert_eq!((condition.kind, condition.reason), ("Unschedulable", "NotEnoughPodsOfTask"));
    world.pod(task("j-ps-0", "ps"));
    world.decide();
    assert!(world.node_of("j-ps-0").is_some());
    assert_eq!(world.placed("j"), 2);
}

#[test]
fn best_effort_gangs_are_gangs_too() {
    let mut world = World::new();
    world.node_with("a", &json!({"cpu": "1", "pods": "2"}));
    world.gang_with("g", 3, &json!({"minMember": 3}), &json!({}));
    world.decide();
    assert_eq!(world.placed("g"), 0);
    world.node_with("b", &json!({"cpu": "1", "pods": "2"})).decide();
    assert_eq!(world.placed("g"), 3);
}

#[test]
fn groups_are_let_in_before_they_have_pods() {
    let mut world = World::new();
    world.node("a", "2").queue("q", &json!({"capability": {"cpu": "1"}}));
    let group = |name: &str, queue: &str, cpu: &str| {
        let mut delta = group_delta(
            name,
            1,
            &json!({"minMember": 1, "queue": queue,
            "minResources": {"cpu": cpu}}),
        );
        if let Delta::Group(group) = &mut delta {
            group.phase = GroupPhase::Pending;
        }
        delta
    };
    for (name, queue, cpu) in [("a", "default", "2"), ("b", "default", "2"), ("c", "q", "2")] {
        world.state.apply(group(name, queue, cpu));
    }
    world.decide();
    assert_eq!(world.reports["a"].phase, GroupPhase::Inqueue);
    let refused = |name: &str| world.reports[name].condition.clone().unwrap().message;
    assert_eq!(
        refused("b"),
        "resource in cluster is overused: cpu: 2 asked for, 0 free: 2 too little"
    );
    assert_eq!(
        refused("c"),
        "queue resource quota insufficient: insufficient cpu (queue \"q\": cpu: 2 asked for, 1 \
         free: 1 too little)"
    );
    assert_eq!(world.reports["c"].phase, GroupPhase::Pending);
    assert!(world.decide().is_empty(), "nothing new, nothing said");
}

#[test]
fn nobody_is_let_in_past_the_head_of_a_queue_that_is_served_in_order() {
    for (strategy, phase) in [("traverse", GroupPhase::Inqueue), ("fifo", GroupPhase::Pending)] {
        let mut world = World::new();
        world.node("a", "4").queue("q", &json!({"dequeueStrategy": strategy}));
        for (name, asks) in [("large", "8"), ("small", "1")] {
            world.now += 1;
            let spec = json!({"minMember": 1, "queue": "q", "minResources": {"cpu": asks}});
            let mut delta = group_delta(name, world.now, &spec);
            if let Delta::Group(group) = &mut delta {
                group.phase = GroupPhase::Pending;
            }
            world.state.apply(delta);
        }
        world.decide();
        assert_eq!(world.reports["small"].phase, phase, "{strategy}");
        let explained = world.state.explain(&key("small"), world.now).unwrap();
        if strategy == "fifo" {
            assert!(explained.message.contains("\"large\" is ahead"), "{}", explained.message);
            assert_eq!(explained.constraint, Constraint::QueueOrder);
        }
    }
}

#[test]
fn pods_of_higher_priority_are_the_minimum() {
    let mut world = World::new();
    world.node("a", "2");
    world.gang_with("j", 0, &json!({"minMember": 2}), &json!({}));
    for (name, priority) in [("j-a-0", 0), ("j-b-0", 5), ("j-b-1", 5)] {
        let mut pod = member(name, "j", 1, &cpu("1"));
        pod["spec"]["priority"] = json!(priority);
        world.pod(pod);
    }
    world.decide();
    assert_eq!(world.node_of("j-a-0"), None);
    assert_eq!((world.node_of("j-b-0"), world.node_of("j-b-1")), (Some("a"), Some("a")));
}

/// A group that nobody has let in, with its pods.
fn pending_with_pods(world: &mut World, spec: &Value, pods: &[(&str, Value)]) {
    let mut delta = group_delta("g", world.now, spec);
    if let Delta::Group(group) = &mut delta {
        (group.phase, group.is_new) = (GroupPhase::Pending, true);
    }
    world.state.apply(delta);
    for (pod, asks) in pods {
        world.pod(member(pod, "g", world.now, asks));
    }
}

#[test]
fn pods_that_are_there_say_what_is_short_before_they_are_let_in() {
    let mut world = World::new();
    world.node("a", "3").node("b", "3");
    let pods: Vec<(&str, Value)> =
        ["g-0", "g-1", "g-2", "g-3"].into_iter().map(|pod| (pod, cpu("2"))).collect();
    let spec = json!({"minMember": 4, "minResources": {"cpu": "8"}});
    pending_with_pods(&mut world, &spec, &pods);
    world.decide();
    let first = "2 of 4 pods fit; cpu: 8 asked for, 6 free: 2 too little; ";
    for (pod, _) in &pods {
        assert!(world.said[*pod].starts_with(first), "{}", world.said[*pod]);
    }
    let condition = world.reports["g"].condition.clone().unwrap();
    assert!(condition.message.starts_with(first), "{}", condition.message);
    assert_eq!(world.reports["g"].phase, GroupPhase::Pending);
    let explained = world.state.explain(&key("g"), world.now).unwrap();
    assert_eq!((explained.waiting, explained.constraint), (4, Constraint::TooLarge));
    world.node("c", "4").decide();
    assert_eq!(world.placed("g"), 4, "room is all that it takes");
}

#[test]
fn of_pods_that_differ_those_that_fit_are_counted() {
    let mut world = World::new();
    world.node("a", "3");
    let gpu = json!({"cpu": "1", "nvidia.com/gpu": "1"});
    let spec = json!({"minMember": 2});
    pending_with_pods(&mut world, &spec, &[("g-ps-0", cpu("1")), ("g-worker-0", gpu)]);
    world.decide();
    let first = "1 of 2 pods fit; nvidia.com/gpu: 1 asked for, 0 free: 1 too little; ";
    assert!(world.said["g-ps-0"].starts_with(first), "{}", world.said["g-ps-0"]);
}

#[test]
fn a_group_that_asks_for_more_than_its_queue_may_ever_use_stays_out() {
    let mut world = World::new();
    world.node("a", "8").queue("q", &json!({"capability": {"cpu": "4"}}));
    let spec = json!({"minMember": 1, "queue": "q", "minResources": {"cpu": "6"}});
    pending_with_pods(&mut world, &spec, &[("g-0", cpu("1"))]);
    world.decide();
    assert_eq!((world.placed("g"), world.reports["g"].phase), (0, GroupPhase::Pending));
    assert_eq!(
        world.said["g-0"],
        "queue resource quota insufficient: insufficient cpu (6 asked for, queue \"q\" may use 4)"
    );
    assert_eq!(world.reports["g"].condition.as_ref().unwrap().message, world.said["g-0"]);
    let explained = world.state.explain(&key("g"), world.now).unwrap();
    assert_eq!(explained.constraint, Constraint::QueueLimit);
    let raise = crate::Remedy::RaiseLimit { queue: "q".into(), resource: "cpu".into(), by: 2000 };
    assert_eq!(explained.remedies, [raise]);
    world.queue("q", &json!({"capability": {"cpu": "6"}})).decide();
    assert_eq!(world.placed("g"), 1);
}

#[test]
fn groups_report_what_became_of_them() {
    let mut world = World::new();
    world.node("a", "2").gang("g", 3, "1").decide();
    let condition = world.reports["g"].condition.clone().unwrap();
    assert_eq!(
        condition,
        Condition {
            kind: "Unschedulable",
            reason: "NotEnoughResources",
            message: "2 of 3 pods fit; cpu: 3 asked for, 2 free: 1 too little; 1/3 tasks in gang \
                      unschedulable: pod group is not ready, 3 Pending, 3 minAvailable; Pending: \
                      1 Unschedulable, 2 Schedulable. Origin reason is g-2: 0/1 nodes are \
                      unavailable: 1 Insufficient cpu."
                .to_owned(),
        }
    );
    world.node("b", "1").decide();
    world.decide();
    assert_eq!(world.reports["g"].phase, GroupPhase::Running);
    assert_eq!(world.reports["g"].condition.clone().unwrap().kind, "Scheduled");
    world.end_group("g").decide();
    assert_eq!(world.reports["g"].phase, GroupPhase::Completed);
    assert_eq!(world.reports["g"].succeeded, 3);
}
