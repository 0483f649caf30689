//! Claims and volumes: which nodes they allow, what is bound before the pods are, and what happens
//! when that fails.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::{Value, from_value, json};

use super::world::{World, member, node_delta};
use crate::{BindClaim, ClaimWritten, Config, Decision, Delta, StorageDelta};

const SELECTED: &str = "volume.kubernetes.io/selected-node";

/// A cluster with nodes of a zone each, and three classes: `csi` makes volumes when they are needed,
/// `local` has those that are there, `now` binds at once.
fn world(nodes: &[&str]) -> World {
    let mut world = World::with(Config { knows_volumes: true, ..Config::default() });
    for name in nodes {
        world.state.apply(node_delta(node(name, "8")));
    }
    for (name, provisioner, mode) in [
        ("csi", "disk.example.com", "WaitForFirstConsumer"),
        ("local", "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
        ("now", "disk.example.com", "Immediate"),
    ] {
        class(
            &mut world,
            json!({"metadata": {"name": name}, "provisioner": provisioner,
            "volumeBindingMode": mode}),
        );
    }
    world
}

fn node(name: &str, cpu: &str) -> Value {
    json!({
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name,
            "topology.kubernetes.io/zone": format!("zone-{name}")}},
        "status": {"allocatable": {"cpu": cpu, "pods": "110"}},
    })
}

fn apply(world: &mut World, delta: StorageDelta) {
    world.state.apply(Delta::Storage(Box::new(delta)));
}

fn class(world: &mut World, value: Value) {
    apply(world, StorageDelta::Class(from_value(value).unwrap()));
}

fn claim_value(name: &str, class: &str) -> Value {
    json!({
        "metadata": {"namespace": "n", "name": name, "uid": format!("uid-{name}"),
            "resourceVersion": "1", "annotations": {}},
        "spec": {"storageClassName": class, "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "10Gi"}}},
        "status": {"phase": "Pending"},
    })
}

fn put_claim(world: &mut World, value: &Value) {
    apply(world, StorageDelta::Claim(from_value(value.clone()).unwrap()));
}

fn claim(world: &mut World, name: &str, class: &str) {
    put_claim(world, &claim_value(name, class));
}

fn volume_value(name: &str, at: &str, size: &str) -> Value {
    json!({
        "metadata": {"name": name, "uid": name, "resourceVersion": "1", "labels": {"disk": name}},
        "spec": {"storageClassName": "local", "accessModes": ["ReadWriteOnce"],
            "capacity": {"storage": size},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "kubernetes.io/hostname", "operator": "In", "values": [at]},
            ]}]}}},
        "status": {"phase": "Available"},
    })
}

fn put_volume(world: &mut World, value: Value) {
    apply(world, StorageDelta::Volume(Box::new(from_value(value).unwrap())));
}

/// A claim has its volume.
fn bind(world: &mut World, name: &str, class: &str, volume: &str) {
    let mut value = claim_value(name, class);
    value["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    value["spec"]["volumeName"] = json!(volume);
    value["status"]["phase"] = json!("Bound");
    put_claim(world, &value);
}

/// A gang of which each member mounts the claim of its name, or all of them the one that is given.
fn gang(world: &mut World, name: &str, size: usize, shared: Option<&str>) {
    world.gang_with(name, 0, &json!({"minMember": size}), &json!({}));
    let now = world.now;
    for index in 0..size {
        let pod = format!("{name}-{index}");
        let mut value = member(&pod, name, now, &json!({"cpu": "1"}));
        let mounted = shared.unwrap_or(&pod);
        value["spec"]["volumes"] =
            json!([{"name": "v", "persistentVolumeClaim": {"claimName": mounted}}]);
        world.pod(value);
    }
}

fn bindings(decisions: &[Decision]) -> BTreeMap<String, BindClaim> {
    let binds = decisions.iter().filter_map(|decision| match decision {
        Decision::BindClaim(bind) => Some((bind.name.clone(), (**bind).clone())),
        _ => None,
    });
    binds.collect()
}

fn chosen(decisions: &[Decision]) -> BTreeMap<String, String> {
    let all = bindings(decisions).into_iter();
    all.filter_map(|(claim, bind)| Some((claim, bind.volume?.name))).collect()
}

fn written(world: &mut World, bind: &BindClaim, version: Option<u64>) {
    let BindClaim { namespace, name, uid, .. } = bind.clone();
    world.state.apply(Delta::ClaimWritten(ClaimWritten { namespace, name, uid, version }));
}

#[test]
fn a_pod_is_bound_after_its_claim_was_provisioned_for_its_node() {
    let mut world = world(&["a", "b"]);
    claim(&mut world, "g-0", "csi");
    gang(&mut world, "g", 1, None);
    let decisions = world.decide();
    let wanted = bindings(&decisions).remove("g-0").unwrap();
    assert_eq!((wanted.volume, world.node_of("g-0")), (None, None));
    assert!(world.said["g-0"].contains("[\"g-0\"]"), "{}", world.said["g-0"]);
    // Said once.
    assert_eq!(world.decide(), []);
    put_volume(&mut world, volume_value("pv", &wanted.node, "10Gi"));
    bind(&mut world, "g-0", "csi", "pv");
    world.decide();
    assert_eq!(world.node_of("g-0"), Some(wanted.node.as_str()));
}

#[test]
fn a_gang_is_bound_when_the_volumes_of_all_are() {
    let mut world = world(&["a", "b"]);
    for name in ["g-0", "g-1"] {
        claim(&mut world, name, "csi");
    }
    gang(&mut world, "g", 2, None);
    let wanted = bindings(&world.decide());
    assert_eq!(wanted.len(), 2);
    put_volume(&mut world, volume_value("pv0", &wanted["g-0"].node, "10Gi"));
    bind(&mut world, "g-0", "csi", "pv0");
    world.decide();
    assert_eq!(world.placed("g"), 0);
    assert!(world.said["g-0"].contains("of other pods of its group"), "{}", world.said["g-0"]);
    put_volume(&mut world, volume_value("pv1", &wanted["g-1"].node, "10Gi"));
    bind(&mut world, "g-1", "csi", "pv1");
    world.decide();
    assert_eq!(world.placed("g"), 2);
}

#[test]
fn room_is_kept_while_volumes_are_made_but_not_for_ever() {
    let mut world = world(&["a"]);
    claim(&mut world, "g-0", "csi");
    gang(&mut world, "g", 1, None);
    world.change("g-0", |pod| {
        pod["spec"]["containers"] = json!([{"resources": {"requests": {"cpu": "8"}}}]);
    });
    world.decide();
    world.gang_with("h", 1, &json!({"minMember": 1}), &json!({"cpu": "1"}));
    world.change("h-0", |pod| pod["spec"]["priority"] = json!(10));
    world.decide();
    assert_eq!(world.placed("h"), 0);
    world.now += 700;
    world.decide();
    assert_eq!(world.placed("h"), 1);
    assert!(world.said["g-0"].contains("was not bound within"), "{}", world.said["g-0"]);
}

#[test]
fn members_of_a_gang_never_take_the_same_volume() {
    let mut world = world(&["a", "b"]);
    put_volume(&mut world, volume_value("on-a", "a", "10Gi"));
    put_volume(&mut world, volume_value("on-b", "b", "10Gi"));
    for name in ["g-0", "g-1", "g-2"] {
        claim(&mut world, name, "local");
    }
    gang(&mut world, "g", 3, None);
    // All or none: there are two.
    assert!(bindings(&world.decide()).is_empty());
    let none = "node(s) didn't find available persistent volumes to bind";
    assert!(world.said["g-0"].contains(none), "{}", world.said["g-0"]);
    put_volume(&mut world, volume_value("on-b-too", "b", "10Gi"));
    let found: BTreeSet<String> = chosen(&world.decide()).into_values().collect();
    assert_eq!(found.len(), 3);
}

#[test]
fn the_smallest_volume_that_will_do_is_taken() {
    let mut world = world(&["a"]);
    for (name, size, change) in [
        ("big", "50Gi", json!({})),
        ("small", "1Gi", json!({})),
        ("fit", "20Gi", json!({})),
        ("shared", "12Gi", json!({"accessModes": ["ReadOnlyMany"]})),
        ("block", "12Gi", json!({"volumeMode": "Block"})),
        ("taken", "12Gi", json!({"claimRef": {"namespace": "n", "name": "other", "uid": "x"}})),
        ("csi", "12Gi", json!({"storageClassName": "csi"})),
    ] {
        let mut value = volume_value(name, "a", size);
        for (key, one) in change.as_object().unwrap() {
            value["spec"][key] = one.clone();
        }
        put_volume(&mut world, value);
    }
    put_volume(&mut world, volume_value("away", "b", "11Gi"));
    let mut released = volume_value("released", "a", "12Gi");
    released["status"]["phase"] = json!("Released");
    put_volume(&mut world, released);
    claim(&mut world, "g-0", "local");
    gang(&mut world, "g", 1, None);
    assert_eq!(chosen(&world.decide())["g-0"], "fit");
    // One that is kept for the claim goes before smaller ones.
    let mut kept = volume_value("kept", "a", "90Gi");
    kept["spec"]["claimRef"] = json!({"namespace": "n", "name": "h-0"});
    put_volume(&mut world, kept);
    claim(&mut world, "h-0", "local");
    gang(&mut world, "h", 1, None);
    let decisions = world.decide();
    assert_eq!(chosen(&decisions)["h-0"], "kept");
    assert!(bindings(&decisions)["h-0"].volume.as_ref().unwrap().is_prebound);
    let mut picky = claim_value("i-0", "local");
    picky["spec"]["selector"] = json!({"matchLabels": {"disk": "big"}});
    put_claim(&mut world, &picky);
    gang(&mut world, "i", 1, None);
    assert_eq!(chosen(&world.decide())["i-0"], "big");
}

#[test]
fn claims_that_cannot_be_had_are_named_in_kube_schedulers_words() {
    let mut world = world(&["a"]);
    let said = |world: &mut World| {
        world.decide();
        world.said["g-0"].clone()
    };
    gang(&mut world, "g", 1, None);
    assert_eq!(said(&mut world), "persistentvolumeclaim \"g-0\" not found");
    claim(&mut world, "g-0", "now");
    assert_eq!(said(&mut world), "pod has unbound immediate PersistentVolumeClaims");
    claim(&mut world, "g-0", "nobody-knows");
    assert_eq!(said(&mut world), "pod has unbound immediate PersistentVolumeClaims");
    let mut named = claim_value("g-0", "csi");
    named["spec"]["volumeName"] = json!("pv");
    put_claim(&mut world, &named);
    assert_eq!(said(&mut world), "pod has unbound immediate PersistentVolumeClaims");
    named["status"]["phase"] = json!("Lost");
    put_claim(&mut world, &named);
    let lost = "persistentvolumeclaim \"g-0\" bound to non-existent persistentvolume \"pv\"";
    assert_eq!(said(&mut world), lost);
    let mut leaving = claim_value("g-0", "csi");
    leaving["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    put_claim(&mut world, &leaving);
    assert_eq!(said(&mut world), "persistentvolumeclaim \"g-0\" is being deleted");
    bind(&mut world, "g-0", "csi", "gone");
    assert!(said(&mut world).contains("bound to non-existent pv(s)"));
}

#[test]
fn ephemeral_volumes_are_claims_of_the_pods_own() {
    let mut world = world(&["a"]);
    world.gang_with("g", 1, &json!({"minMember": 1}), &json!({"cpu": "1"}));
    world.change("g-0", |pod| {
        pod["spec"]["volumes"] = json!([{"name": "scratch", "ephemeral":
            {"volumeClaimTemplate": {"spec": {"storageClassName": "csi"}}}}]);
    });
    world.decide();
    assert_eq!(
        world.said["g-0"],
        "waiting for ephemeral volume controller to create the persistentvolumeclaim \
         \"g-0-scratch\""
    );
    let mut value = claim_value("g-0-scratch", "csi");
    put_claim(&mut world, &value);
    world.decide();
    assert!(world.said["g-0"].ends_with("(pod is not owner)"), "{}", world.said["g-0"]);
    let uid = world.pods["g-0"]["metadata"]["uid"].clone();
    value["metadata"]["ownerReferences"] = json!([{"uid": uid, "controller": true}]);
    put_claim(&mut world, &value);
    assert_eq!(bindings(&world.decide())["g-0-scratch"].node, "a");
}

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
fn a_claim_for_one_pod_has_one_pod() {
    let mut world = world(&["a", "b"]);
    let mut value = claim_value("one", "csi");
    value["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    value["spec"]["volumeName"] = json!("pv");
    value["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    put_claim(&mut world, &value);
    let mut volume = volume_value("pv", "a", "10Gi");
    volume["spec"]["nodeAffinity"] = json!({});
    put_volume(&mut world, volume);
    gang(&mut world, "g", 2, Some("one"));
    world.decide();
    assert_eq!(world.placed("g"), 0);
    assert!(world.said["g-0"].contains("ReadWriteOncePod"), "{}", world.said["g-0"]);
    gang(&mut world, "h", 1, Some("one"));
    world.decide();
    assert_eq!(world.placed("h"), 1);
    gang(&mut world, "i", 1, Some("one"));
    world.decide();
    assert_eq!(world.placed("i"), 0);
    world.end("h-0");
    world.decide();
    assert_eq!(world.placed("i"), 1);
}

#[test]
fn one_volume_for_many_nodes_does_not_keep_a_gang_on_one() {
    for (mode, placed) in [("ReadWriteMany", 2), ("ReadWriteOnce", 0)] {
        let mut world = world(&["a", "b"]);
        for name in ["a", "b"] {
            world.state.apply(node_delta(node(name, "1")));
        }
        let mut value = claim_value("data", "csi");
        value["spec"]["accessModes"] = json!([mode]);
        put_claim(&mut world, &value);
        gang(&mut world, "g", 2, Some("data"));
        assert_eq!(bindings(&world.decide()).len(), usize::from(placed > 0));
        let mut volume = volume_value("pv", "a", "10Gi");
        volume["spec"]["nodeAffinity"] = json!({});
        volume["spec"]["accessModes"] = json!([mode]);
        put_volume(&mut world, volume);
        if placed > 0 {
            value["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
            value["spec"]["volumeName"] = json!("pv");
            put_claim(&mut world, &value);
        }
        world.decide();
        assert_eq!(world.placed("g"), placed);
    }
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

proptest! {
    /// Whatever there is: nobody shares a volume, each is in reach, and gangs get all or nothing.
    #[test]
    fn volumes_are_given_once_and_to_whole_gangs(
        volumes in prop::collection::vec((0usize..3, 1u32..4), 0..10),
        gangs in prop::collection::vec(prop::collection::vec(1u32..4, 1..4), 1..4),
    ) {
        let mut world = world(&["a", "b", "c"]);
        for (index, (at, size)) in volumes.iter().enumerate() {
            let at = ["a", "b", "c"][*at];
            put_volume(&mut world, volume_value(&index.to_string(), at, &format!("{size}Gi")));
        }
        for (index, sizes) in gangs.iter().enumerate() {
            for (member, size) in sizes.iter().enumerate() {
                let mut value = claim_value(&format!("g{index}-{member}"), "local");
                value["spec"]["resources"]["requests"]["storage"] = json!(format!("{size}Gi"));
                put_claim(&mut world, &value);
            }
            gang(&mut world, &format!("g{index}"), sizes.len(), None);
        }
        let given = bindings(&world.decide());
        let mut seen = BTreeSet::new();
        for (claim, bind) in &given {
            let name = bind.volume.as_ref().map(|volume| volume.name.clone()).unwrap();
            let (at, size) = volumes[name.parse::<usize>().unwrap()];
            prop_assert_eq!(["a", "b", "c"][at], &bind.node);
            let (gang, member) = claim[1..].split_once('-').unwrap();
            let gang: usize = gang.parse().unwrap();
            let member: usize = member.parse().unwrap();
            prop_assert!(gangs[gang][member] <= size);
            prop_assert!(seen.insert(name));
        }
        for (index, sizes) in gangs.iter().enumerate() {
            let own = given.keys().filter(|claim| claim.starts_with(&format!("g{index}-"))).count();
            prop_assert!(own == 0 || own == sizes.len());
        }
    }
}
