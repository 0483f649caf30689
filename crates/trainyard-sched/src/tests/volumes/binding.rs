//! Which volumes claims get that wait for their first pod, and when the pods are bound.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;

use super::{
    apply, bind, bindings, chosen, claim, claim_value, gang, node, put_claim, put_volume,
    volume_value, world, written,
};
use crate::tests::world::{group_delta, key, node_delta};
use crate::{Constraint, StorageDelta};

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
    let explained = world.state.explain(&key("g"), world.now).unwrap();
    assert_eq!(explained.constraint, Constraint::Volumes);
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
        ("larger", "30Gi", json!({})),
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
fn what_is_promised_to_one_claim_is_given_to_no_other() {
    let mut world = world(&["a"]);
    put_volume(&mut world, volume_value("one", "a", "10Gi"));
    for name in ["g", "h"] {
        claim(&mut world, &format!("{name}-0"), "local");
        gang(&mut world, name, 1, None);
        let promised = usize::from(name == "g");
        assert_eq!(chosen(&world.decide()).len(), promised, "{name}");
    }
    let none = "1 node(s) didn't find available persistent volumes to bind";
    assert!(world.said["h-0"].contains(none), "{}", world.said["h-0"]);
    // Neither to two claims of one pod.
    put_volume(&mut world, volume_value("two", "a", "10Gi"));
    for name in ["i-0", "i-1"] {
        claim(&mut world, name, "local");
    }
    gang(&mut world, "i", 1, None);
    world.change("i-0", |pod| {
        let mounted = ["i-0", "i-1"].map(|claim| json!({"claimName": claim}));
        let volumes = mounted.map(|claim| json!({"name": "v", "persistentVolumeClaim": claim}));
        pod["spec"]["volumes"] = json!(volumes);
    });
    world.change("h-0", |pod| pod["spec"]["schedulingGates"] = json!([{"name": "wait"}]));
    assert!(chosen(&world.decide()).is_empty());
    put_volume(&mut world, volume_value("three", "a", "10Gi"));
    let given: BTreeSet<String> = chosen(&world.decide()).into_values().collect();
    assert_eq!(given, ["three".to_owned(), "two".to_owned()].into());
}

#[test]
fn a_volume_that_is_lost_before_it_is_bound_is_replaced() {
    for is_gone in [true, false] {
        let mut world = world(&["a", "b"]);
        put_volume(&mut world, volume_value("first", "a", "10Gi"));
        claim(&mut world, "g-0", "local");
        gang(&mut world, "g", 1, None);
        let first = bindings(&world.decide()).remove("g-0").unwrap();
        written(&mut world, &first, Some(5));
        put_volume(&mut world, volume_value("second", "b", "10Gi"));
        assert!(bindings(&world.decide()).is_empty());
        if is_gone {
            apply(&mut world, StorageDelta::VolumeGone("first".into()));
        } else {
            // Somebody else was faster.
            let mut taken = volume_value("first", "a", "10Gi");
            taken["metadata"]["resourceVersion"] = json!("6");
            taken["spec"]["claimRef"] = json!({"namespace": "n", "name": "other", "uid": "x"});
            put_volume(&mut world, taken);
        }
        assert_eq!(chosen(&world.decide())["g-0"], "second");
    }
}

#[test]
fn a_claim_that_is_made_anew_gets_a_volume_of_its_own() {
    let mut world = world(&["a"]);
    claim(&mut world, "g-0", "csi");
    gang(&mut world, "g", 1, None);
    assert_eq!(bindings(&world.decide())["g-0"].uid, "uid-g-0");
    let mut anew = claim_value("g-0", "csi");
    anew["metadata"]["uid"] = json!("another");
    put_claim(&mut world, &anew);
    assert_eq!(bindings(&world.decide())["g-0"].uid, "another");
}

#[test]
fn a_further_member_keeps_the_node_for_which_its_volume_is_made() {
    let mut world = world(&[]);
    world.state.apply(node_delta(node("a", "2")));
    put_volume(&mut world, volume_value("pv0", "a", "10Gi"));
    bind(&mut world, "g-0", "csi", "pv0");
    claim(&mut world, "g-1", "csi");
    gang(&mut world, "g", 2, None);
    world.state.apply(group_delta("g", world.now, &json!({"minMember": 1})));
    assert_eq!(bindings(&world.decide())["g-1"].node, "a");
    assert_eq!(world.placed("g"), 1);
    world.gang_with("h", 1, &json!({"minMember": 1}), &json!({"cpu": "1"}));
    world.change("h-0", |pod| pod["spec"]["priority"] = json!(10));
    world.change("g-0", |pod| pod["metadata"]["labels"]["volcano.sh/preemptable"] = json!("false"));
    world.decide();
    assert_eq!(world.placed("h"), 0);
    put_volume(&mut world, volume_value("pv1", "a", "10Gi"));
    bind(&mut world, "g-1", "csi", "pv1");
    world.decide();
    assert_eq!((world.placed("g"), world.placed("h")), (2, 0));
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
