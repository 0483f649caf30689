//! Where volumes can be made and used: classes, space, zones, limits; and nodes that a provisioner gives up.

use std::collections::BTreeMap;

use serde_json::{from_value, json};

use super::{
    SELECTED, apply, bind, bindings, claim, claim_value, class, gang, node, put_claim, put_volume,
    volume_value, world, written,
};
use crate::tests::world::{World, node_delta};
use crate::{Decision, StorageDelta};

#[test]
fn classes_and_capacities_say_where_volumes_can_be_made() {
    let mut world = world(&["a", "b"]);
    class(
        &mut world,
        json!({
            "metadata": {"name": "zoned"}, "provisioner": "disk.example.com",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [{"matchLabelExpressions": [
                {"key": "topology.kubernetes.io/zone", "values": ["zone-b"]}]}],
        }),
    );
    claim(&mut world, "g-0", "zoned");
    gang(&mut world, "g", 1, None);
    assert_eq!(bindings(&world.decide())["g-0"].node, "b");
    let driver =
        json!({"metadata": {"name": "disk.example.com"}, "spec": {"storageCapacity": true}});
    apply(&mut world, StorageDelta::Driver(from_value(driver).unwrap()));
    for name in ["h-0", "h-1", "h-2"] {
        claim(&mut world, name, "csi");
    }
    gang(&mut world, "h", 3, None);
    world.decide();
    let space = "2 node(s) did not have enough free storage";
    assert!(world.said["h-0"].contains(space), "{}", world.said["h-0"]);
    let free = |zone: &str, capacity: &str| {
        let value = json!({
            "metadata": {"namespace": "kube-system", "name": zone}, "storageClassName": "csi",
            "nodeTopology": {"matchLabels": {"topology.kubernetes.io/zone": zone}},
            "capacity": capacity,
        });
        StorageDelta::Capacity(Box::new(from_value(value).unwrap()))
    };
    // One each is not enough for three together.
    apply(&mut world, free("zone-a", "15Gi"));
    apply(&mut world, free("zone-b", "15Gi"));
    assert!(bindings(&world.decide()).is_empty());
    apply(&mut world, free("zone-b", "20Gi"));
    let nodes: Vec<String> =
        bindings(&world.decide()).into_values().map(|bind| bind.node).collect();
    assert_eq!(nodes.iter().filter(|node| *node == "b").count(), 2, "{nodes:?}");
}

#[test]
fn a_provisioner_that_gives_up_is_not_asked_for_the_same_node_at_once() {
    let mut world = world(&["a", "b"]);
    claim(&mut world, "g-0", "csi");
    gang(&mut world, "g", 1, None);
    let first = bindings(&world.decide()).remove("g-0").unwrap();
    written(&mut world, &first, Some(5));
    let mut value = claim_value("g-0", "csi");
    value["metadata"]["resourceVersion"] = json!("5");
    value["metadata"]["annotations"] = json!({SELECTED: first.node});
    put_claim(&mut world, &value);
    assert_eq!(bindings(&world.decide()), BTreeMap::new());
    value["metadata"]["resourceVersion"] = json!("6");
    value["metadata"]["annotations"] = json!({});
    put_claim(&mut world, &value);
    let second = bindings(&world.decide()).remove("g-0").unwrap();
    assert_ne!(first.node, second.node);
    // One that could not be written is decided about again, where it was.
    written(&mut world, &second, None);
    assert_eq!(bindings(&world.decide())["g-0"].node, second.node);
}

#[test]
fn who_loses_its_node_to_a_provisioner_waits_for_its_turn_again() {
    let mut world = world(&[]);
    for name in ["a", "b"] {
        world.state.apply(node_delta(node(name, "1")));
    }
    claim(&mut world, "g-0", "csi");
    gang(&mut world, "g", 1, None);
    let first = bindings(&world.decide()).remove("g-0").unwrap();
    written(&mut world, &first, Some(5));
    let mut value = claim_value("g-0", "csi");
    value["metadata"]["resourceVersion"] = json!("6");
    put_claim(&mut world, &value);
    let other = if first.node == "a" { "b" } else { "a" };
    world.gang_with("h", 1, &json!({"minMember": 1}), &json!({"cpu": "1"}));
    world.change("h-0", |pod| {
        pod["spec"]["priority"] = json!(10);
        pod["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": other});
    });
    assert!(bindings(&world.decide()).is_empty());
    assert_eq!(world.placed("h"), 1);
}

#[test]
fn a_claim_is_taken_from_a_node_where_its_pod_finds_no_room() {
    let mut world = world(&["a", "b"]);
    let mut value = claim_value("g-0", "csi");
    value["metadata"]["annotations"] = json!({SELECTED: "a"});
    put_claim(&mut world, &value);
    let mut closed = node("a", "8");
    closed["spec"] = json!({"unschedulable": true});
    world.state.apply(node_delta(closed));
    gang(&mut world, "g", 1, None);
    let released = |decisions: &[Decision]| {
        let is_release = |one: &&Decision| matches!(one, Decision::ReleaseClaim(_));
        decisions.iter().filter(is_release).count()
    };
    assert_eq!(released(&world.decide()), 0);
    assert_eq!(world.state.next_due(world.now), Some(world.now + 30));
    world.now += 40;
    assert_eq!(released(&world.decide()), 1);
    assert_eq!(released(&world.decide()), 0);
    claim(&mut world, "g-0", "csi");
    assert_eq!(bindings(&world.decide())["g-0"].node, "b");
}

#[test]
fn labels_of_a_volume_say_its_zone() {
    let mut world = world(&["a", "b"]);
    let mut volume = volume_value("pv", "a", "10Gi");
    volume["spec"]["nodeAffinity"] = json!({});
    volume["metadata"]["labels"] = json!({"failure-domain.beta.kubernetes.io/zone": "x__zone-b"});
    put_volume(&mut world, volume);
    bind(&mut world, "g-0", "csi", "pv");
    gang(&mut world, "g", 1, None);
    world.decide();
    assert_eq!(world.node_of("g-0"), Some("b"));
}

#[test]
fn a_node_takes_no_more_volumes_than_its_driver_says() {
    let mut world = world(&["a"]);
    let limits = json!({"metadata": {"name": "a"}, "spec": {"drivers":
        [{"name": "disk.example.com", "nodeID": "a", "allocatable": {"count": 2}}]}});
    apply(&mut world, StorageDelta::Node(from_value(limits).unwrap()));
    let attached = |name: &str| {
        let mut volume = volume_value(name, "a", "10Gi");
        volume["spec"]["csi"] = json!({"driver": "disk.example.com", "volumeHandle": name});
        volume
    };
    put_volume(&mut world, attached("lingering"));
    let lingering = json!({"metadata": {"name": "va"}, "spec": {"attacher": "disk.example.com",
        "nodeName": "a", "source": {"persistentVolumeName": "lingering"}}});
    apply(&mut world, StorageDelta::Attachment(from_value(lingering).unwrap()));
    for name in ["g-0", "h-0"] {
        put_volume(&mut world, attached(name));
        bind(&mut world, name, "csi", name);
    }
    gang(&mut world, "g", 1, None);
    world.decide();
    assert_eq!(world.placed("g"), 1);
    gang(&mut world, "h", 1, None);
    world.decide();
    assert!(world.said["h-0"].contains("exceed max volume count"), "{}", world.said["h-0"]);
    // What is there already is no more.
    gang(&mut world, "i", 1, Some("g-0"));
    world.decide();
    assert_eq!(world.placed("i"), 1);
    apply(&mut world, StorageDelta::AttachmentGone("va".into()));
    world.decide();
    assert_eq!(world.placed("h"), 1);
}

#[test]
fn a_claim_that_names_a_node_is_made_there_only_if_it_can_be() {
    let mut world = world(&["a", "b"]);
    let zone = json!([{"key": "topology.kubernetes.io/zone", "values": ["zone-b"]}]);
    let zoned = json!({
        "metadata": {"name": "zoned"}, "provisioner": "disk.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": zone}],
    });
    class(&mut world, zoned);
    for (name, class) in [("g-0", "local"), ("h-0", "zoned"), ("i-0", "csi")] {
        let mut value = claim_value(name, class);
        value["metadata"]["annotations"] = json!({SELECTED: "a"});
        put_claim(&mut world, &value);
        gang(&mut world, &name[..1], 1, None);
    }
    world.decide();
    let none = "2 node(s) didn't find available persistent volumes to bind";
    for pod in ["g-0", "h-0"] {
        assert!(world.said[pod].contains(none), "{}", world.said[pod]);
    }
    assert!(world.said["i-0"].contains("waiting for volumes to be bound"));
}

#[test]
fn disks_of_old_kinds_count_as_those_of_their_drivers() {
    let mut world = world(&["a"]);
    let limits = json!({"metadata": {"name": "a"}, "spec": {"drivers":
        [{"name": "disk.csi.azure.com", "nodeID": "a", "allocatable": {"count": 2}}]}});
    apply(&mut world, StorageDelta::Node(from_value(limits).unwrap()));
    let mut volume = volume_value("pv", "a", "10Gi");
    volume["spec"]["azureDisk"] = json!({"diskName": "one", "diskURI": "/disks/one"});
    put_volume(&mut world, volume);
    bind(&mut world, "g-0", "csi", "pv");
    gang(&mut world, "g", 1, None);
    let inline = |world: &mut World, name: &str, disk: &str| {
        gang(world, name, 1, None);
        let source = json!({"diskName": "d", "diskURI": disk});
        world.change(&format!("{name}-0"), |pod| {
            pod["spec"]["volumes"] = json!([{"name": "v", "azureDisk": source}]);
        });
        world.decide();
        world.placed(name)
    };
    assert_eq!(inline(&mut world, "second", "/disks/two"), 1);
    assert_eq!(inline(&mut world, "third", "/disks/three"), 0);
    assert_eq!(inline(&mut world, "same", "/disks/one"), 1);
    assert!(world.said["third-0"].contains("exceed max volume count"));
    // What is still to be made counts, too.
    class(
        &mut world,
        json!({"metadata": {"name": "old"}, "provisioner": "kubernetes.io/azure-disk",
            "volumeBindingMode": "WaitForFirstConsumer"}),
    );
    claim(&mut world, "h-0", "old");
    gang(&mut world, "h", 1, None);
    assert!(bindings(&world.decide()).is_empty());
    assert!(world.said["h-0"].contains("exceed max volume count"), "{}", world.said["h-0"]);
}
