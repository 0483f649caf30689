//! Pods that look at other pods: affinity both ways, spread, and gangs of such.

use serde_json::{Value, json};

use super::world::{World, member, node_delta};
use crate::Delta;

fn zoned(world: &mut World, nodes: &[(&str, &str)]) {
    for (name, zone) in nodes {
        world.state.apply(node_delta(json!({
            "metadata": {"name": name, "labels": {"host": name, "zone": zone}},
            "status": {"allocatable": {"cpu": "8", "pods": "110"}},
        })));
    }
}

fn group(world: &mut World, name: &str, size: usize, shape: impl Fn(usize, &mut Value)) {
    world.gang_with(name, 0, &json!({"minMember": size}), &json!({}));
    for index in 0..size {
        let mut pod = member(&format!("{name}-{index}"), name, 1, &json!({"cpu": "1"}));
        pod["metadata"]["labels"] = json!({"app": name});
        shape(index, &mut pod);
        world.pod(pod);
    }
}

fn term(app: &str, topology: &str) -> Value {
    json!({"requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": topology}]})
}

fn nodes(world: &World, group: &str, size: usize) -> Vec<String> {
    let mut nodes: Vec<String> = (0..size)
        .filter_map(|index| world.node_of(&format!("{group}-{index}")).map(str::to_owned))
        .collect();
    nodes.sort();
    nodes
}

#[test]
fn members_that_keep_apart_are_placed_apart_or_not_at_all() {
    let mut world = World::new();
    zoned(&mut world, &[("a", "x"), ("b", "x")]);
    let apart = |_: usize, pod: &mut Value| {
        pod["spec"]["affinity"] = json!({"podAntiAffinity": term("g", "host")});
    };
    group(&mut world, "g", 3, apart);
    world.decide();
    assert_eq!(nodes(&world, "g", 3), Vec::<String>::new());
    assert!(world.said["g-0"].contains("2 node(s) didn't match pod anti-affinity rules"));
    zoned(&mut world, &[("c", "y")]);
    world.decide();
    assert_eq!(nodes(&world, "g", 3), ["a", "b", "c"]);
}

#[test]
fn pods_that_are_there_keep_others_away() {
    let mut world = World::new();
    zoned(&mut world, &[("a", "x")]);
    group(&mut world, "g", 1, |_, pod| {
        pod["spec"]["affinity"] = json!({"podAntiAffinity": term("h", "zone")});
    });
    world.decide();
    group(&mut world, "h", 1, |_, _| {});
    world.decide();
    assert!(world.said["h-0"].contains("existing pods anti-affinity"), "{}", world.said["h-0"]);
}

#[test]
fn who_wants_to_be_near_another_comes_after_it() {
    let mut world = World::new();
    zoned(&mut world, &[("a", "x"), ("b", "y")]);
    // By name the follower would be first.
    group(&mut world, "g", 2, |index, pod| {
        if index == 0 {
            pod["spec"]["affinity"] = json!({"podAffinity": term("leader", "zone")});
        } else {
            pod["metadata"]["labels"] = json!({"app": "leader"});
            pod["spec"]["nodeSelector"] = json!({"host": "b"});
        }
    });
    world.decide();
    assert_eq!(nodes(&world, "g", 2), ["b", "b"]);
    group(&mut world, "lonely", 1, |_, pod| {
        pod["spec"]["affinity"] = json!({"podAffinity": term("nobody", "zone")});
    });
    world.decide();
    assert!(world.said["lonely-0"].contains("2 node(s) didn't match pod affinity rules"));
    // The first of its kind may be alone.
    group(&mut world, "own", 2, |_, pod| {
        pod["spec"]["affinity"] = json!({"podAffinity": term("own", "zone")});
    });
    world.decide();
    let own = nodes(&world, "own", 2);
    assert!(own.len() == 2 && own[0] == own[1], "{own:?}");
}

#[test]
fn one_pod_meets_all_terms_of_affinity_or_none() {
    let mut world = World::new();
    zoned(&mut world, &[("a", "x"), ("b", "y")]);
    let there = |name: &str, node: &str, labels: Value| {
        let mut pod = member(name, "there", 1, &json!({}));
        pod["metadata"]["labels"] = labels;
        pod["spec"]["nodeName"] = json!(node);
        pod
    };
    world.pod(there("one", "a", json!({"app": "db"})));
    world.pod(there("two", "a", json!({"tier": "back"})));
    group(&mut world, "g", 1, |_, pod| {
        let term = |labels: Value| json!({"labelSelector": {"matchLabels": labels}, "topologyKey": "zone"});
        let both = [term(json!({"app": "db"})), term(json!({"tier": "back"}))];
        let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": both});
        pod["spec"]["affinity"] = json!({"podAffinity": terms});
    });
    world.decide();
    assert!(world.said["g-0"].contains("2 node(s) didn't match pod affinity rules"));
    world.pod(there("both", "b", json!({"app": "db", "tier": "back"})));
    world.decide();
    assert_eq!(nodes(&world, "g", 1), ["b"]);
}

#[test]
fn namespaces_are_meant_by_their_labels() {
    let team = |value: &str| {
        let namespace = json!({"metadata": {"name": "m", "labels": {"team": value}}});
        Delta::Namespace(Box::new(serde_json::from_value(namespace).unwrap()))
    };
    let away = |app: &str| {
        let mut terms = term(app, "zone");
        terms["requiredDuringSchedulingIgnoredDuringExecution"][0]["namespaceSelector"] =
            json!({"matchLabels": {"team": "x"}});
        json!({"podAntiAffinity": terms})
    };
    // Those that are there keep away as well as those that come.
    for is_there in [true, false] {
        let mut world = World::new();
        zoned(&mut world, &[("a", "x")]);
        let mut other = member("other", "other", 1, &json!({}));
        other["metadata"]["namespace"] = json!("m");
        other["metadata"]["labels"] = json!({"app": "other"});
        other["spec"]["nodeName"] = json!("a");
        let mut own = json!({});
        if is_there {
            // Its own namespace is not meant, and ours has the labels.
            other["spec"]["affinity"] = away("g");
        } else {
            own = away("other");
        }
        world.pod(other);
        let mut ours = json!({"metadata": {"name": "n", "labels": {"team": "x"}}});
        world.state.apply(team(if is_there { "none" } else { "x" }));
        let namespace = |value: &Value| {
            Delta::Namespace(Box::new(serde_json::from_value(value.clone()).unwrap()))
        };
        world.state.apply(namespace(&ours));
        group(&mut world, "g", 1, |_, pod| pod["spec"]["affinity"] = own.clone());
        world.decide();
        let words =
            if is_there { "existing pods anti-affinity" } else { "pod anti-affinity rules" };
        assert!(world.said["g-0"].contains(words), "{}", world.said["g-0"]);
        let change = if is_there {
            ours["metadata"]["labels"] = json!({});
            namespace(&ours)
        } else {
            team("y")
        };
        assert!(world.state.is_news(&change));
        world.state.apply(change.clone());
        assert!(!world.state.is_news(&change));
        world.decide();
        assert_eq!(nodes(&world, "g", 1), ["a"]);
    }
}

#[test]
fn whoever_keeps_others_away_makes_room_for_a_higher_priority() {
    let mut world = World::new();
    zoned(&mut world, &[("a", "x")]);
    group(&mut world, "low", 1, |_, pod| {
        pod["spec"]["affinity"] = json!({"podAntiAffinity": term("high", "zone")});
    });
    world.decide();
    group(&mut world, "high", 1, |_, pod| pod["spec"]["priority"] = json!(10));
    world.decide();
    assert_eq!(world.evicted(), ["low-0"]);
    world.clear().decide();
    assert_eq!(nodes(&world, "high", 1), ["a"]);
}

#[test]
fn members_are_spread_evenly() {
    let mut world = World::new();
    zoned(&mut world, &[("a", "x"), ("b", "y"), ("c", "y")]);
    let spread = |_: usize, pod: &mut Value| {
        pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "g"}}}]);
    };
    group(&mut world, "g", 4, spread);
    world.decide();
    let at = nodes(&world, "g", 4);
    assert_eq!(at.iter().filter(|node| *node == "a").count(), 2, "{at:?}");
    // A node without the label takes none.
    let mut world = World::new();
    world.node("bare", "8");
    group(&mut world, "g", 1, spread);
    world.decide();
    assert!(world.said["g-0"].contains("missing required label"), "{}", world.said["g-0"]);
}

#[test]
fn nodes_that_the_pod_could_not_use_are_no_domains() {
    let mut world = World::new();
    zoned(&mut world, &[("a", "x")]);
    // Cordoned besides: that alone would not leave it out.
    world.state.apply(node_delta(json!({
        "metadata": {"name": "b", "labels": {"host": "b", "zone": "y"}},
        "spec": {"unschedulable": true},
        "status": {"allocatable": {"cpu": "8", "pods": "110"}},
    })));
    group(&mut world, "g", 2, |_, pod| {
        pod["spec"]["nodeSelector"] = json!({"host": "a"});
        pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "g"}}}]);
    });
    world.decide();
    assert_eq!(nodes(&world, "g", 2), ["a", "a"]);
}

#[test]
fn a_selector_of_everybody_counts_nobody_as_with_kube_scheduler() {
    let mut world = World::new();
    zoned(&mut world, &[("a", "x"), ("b", "y")]);
    group(&mut world, "g", 3, |_, pod| {
        pod["spec"]["nodeSelector"] = json!({"host": "a"});
        pod["spec"]["topologySpreadConstraints"] = json!([{"maxSkew": 1, "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {},
            "nodeAffinityPolicy": "Ignore"}]);
    });
    world.decide();
    assert_eq!(nodes(&world, "g", 3), ["a", "a", "a"]);
}

#[test]
fn other_arrangements_are_tried() {
    let mut world = World::new();
    world.node("a", "4").node("b", "6");
    // The best node for each one after the other is a dead end: 3+3 on b leaves 2+2 for a, but
    // 3+2+... has to be found.
    world.gang_with("g", 0, &json!({"minMember": 4}), &json!({}));
    for (name, cpu) in [("p", "3"), ("q", "3"), ("r", "2"), ("s", "2")] {
        world.pod(member(name, "g", 1, &json!({"cpu": cpu})));
    }
    world.decide();
    assert_eq!(world.placed("g"), 4);
}

#[test]
fn gangs_and_devices_are_packed() {
    let mut world = World::new();
    let gpus = |count: &str| json!({"cpu": "8", "nvidia.com/gpu": count, "pods": "110"});
    world.node_with("a", &gpus("8")).node_with("b", &gpus("8")).node("plain", "8");
    world.gang_with("one", 2, &json!({"minMember": 2}), &json!({"nvidia.com/gpu": "1"}));
    world.gang_with("two", 4, &json!({"minMember": 4}), &json!({"nvidia.com/gpu": "1"}));
    world.gang("three", 2, "1");
    world.decide();
    // One node has all devices in use so far, and who needs none stays away from both.
    assert_eq!(world.node_of("one-0"), world.node_of("two-3"));
    assert_eq!(world.node_of("three-0"), Some("plain"));
    world.gang_with("four", 8, &json!({"minMember": 8}), &json!({"nvidia.com/gpu": "1"}));
    world.decide();
    assert_eq!(world.node_of("four-0"), world.node_of("four-7"));
}
