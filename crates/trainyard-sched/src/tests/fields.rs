//! What nodes say of themselves besides labels, and pods that go by it.

use serde_json::{Value, json};

use super::world::{World, member, node_delta, node_value};

/// A gang of one, changed.
fn one(world: &mut World, name: &str, change: impl FnOnce(&mut Value)) {
    world.gang_with(name, 0, &json!({"minMember": 1}), &json!({}));
    let mut pod = member(&format!("{name}-0"), name, world.now, &json!({"cpu": "1"}));
    change(&mut pod);
    world.pod(pod);
    world.decide();
}

#[test]
fn what_only_some_nodes_can_do_is_done_by_those() {
    let mut world = World::new();
    world.node("plain", "8");
    let rules = json!([{"action": "RestartAllContainers", "exitCodes": {"operator": "In"}}]);
    one(&mut world, "g", |pod| pod["spec"]["containers"][0]["restartPolicyRules"] = rules);
    one(&mut world, "h", |pod| {
        pod["spec"]["hostNetwork"] = json!(true);
        pod["spec"]["hostUsers"] = json!(false);
    });
    for pod in ["g-0", "h-0"] {
        let said = &world.said[pod];
        assert!(said.contains("1 node(s) didn't match Pod's required features"), "{said}");
    }
    for (name, feature) in [
        ("restarts", "RestartAllContainersOnContainerExits"),
        ("users", "UserNamespacesHostNetworkSupport"),
    ] {
        let mut able = node_value(name, &json!({"cpu": "8", "pods": "110"}));
        able["status"]["declaredFeatures"] = json!([feature]);
        world.state.apply(node_delta(able));
    }
    world.decide();
    let nodes = ["g-0", "h-0"].map(|pod| world.node_of(pod));
    assert_eq!(nodes, [Some("restarts"), Some("users")]);
    // Each by itself asks for nothing.
    one(&mut world, "i", |pod| {
        pod["spec"]["hostUsers"] = json!(false);
        pod["spec"]["containers"][0]["restartPolicyRules"] = json!([{"action": "Restart"}]);
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": "plain"});
    });
    assert_eq!(world.node_of("i-0"), Some("plain"));
}

#[test]
fn a_node_that_takes_no_pods_gets_none() {
    let mut world = World::new();
    world.node_with("none", &json!({"cpu": "8", "pods": "0"}));
    one(&mut world, "g", |_| {});
    assert!(world.said["g-0"].contains("1 Too many pods"), "{}", world.said["g-0"]);
    world.node_with("untold", &json!({"cpu": "8"})).decide();
    assert_eq!(world.node_of("g-0"), Some("untold"));
}

#[test]
fn the_priority_of_a_task_goes_before_that_of_its_pods() {
    let mut world = World::new();
    world.node("a", "1");
    world.gang_with("j", 0, &json!({"minMember": 1}), &json!({}));
    for (name, priority, of_task) in [("j-a-0", 5, "-1"), ("j-b-0", 0, "7"), ("j-c-0", 6, "x")] {
        let mut pod = member(name, "j", 1, &json!({"cpu": "1"}));
        pod["spec"]["priority"] = json!(priority);
        pod["metadata"]["annotations"]["volcano.sh/task-priority"] = json!(of_task);
        world.pod(pod);
    }
    world.decide();
    assert_eq!(world.node_of("j-b-0"), Some("a"));
}
