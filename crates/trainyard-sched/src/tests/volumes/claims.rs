//! Claims that cannot be had, and claims that several pods have.

use serde_json::json;

use super::{
    bind, bindings, claim, claim_value, gang, node, put_claim, put_volume, volume_value, world,
};
use crate::tests::world::{World, node_delta};

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
fn a_claim_for_one_pod_is_taken_from_a_lower_priority() {
    let mut world = world(&["a"]);
    let mut value = claim_value("one", "csi");
    value["spec"]["accessModes"] = json!(["ReadWriteOncePod"]);
    value["spec"]["volumeName"] = json!("pv");
    value["metadata"]["annotations"] = json!({"pv.kubernetes.io/bind-completed": "yes"});
    put_claim(&mut world, &value);
    put_volume(&mut world, volume_value("pv", "a", "10Gi"));
    gang(&mut world, "low", 1, Some("one"));
    world.decide();
    gang(&mut world, "high", 1, Some("one"));
    world.change("high-0", |pod| pod["spec"]["priority"] = json!(10));
    world.decide();
    assert_eq!(world.evicted(), ["low-0"]);
    world.decide();
    assert_eq!(world.placed("high"), 0, "the other is still there");
    world.clear().decide();
    assert_eq!(world.placed("high"), 1);
}

#[test]
fn one_volume_that_is_there_is_shared_where_it_is_reached() {
    for (reach, placed) in [(json!({"required": null}), 2), (json!(null), 0)] {
        let mut world = world(&["a", "b"]);
        for name in ["a", "b"] {
            world.state.apply(node_delta(node(name, "1")));
        }
        let mut volume = volume_value("pv", "a", "10Gi");
        volume["spec"]["accessModes"] = json!(["ReadWriteMany"]);
        if !reach.is_null() {
            volume["spec"]["nodeAffinity"] = reach;
        }
        put_volume(&mut world, volume);
        let mut value = claim_value("data", "local");
        value["spec"]["accessModes"] = json!(["ReadWriteMany"]);
        put_claim(&mut world, &value);
        // A node has room for one of two, and the volume is on one node or on both.
        gang(&mut world, "g", 2, Some("data"));
        assert_eq!(bindings(&world.decide()).len(), usize::from(placed > 0));
        bind(&mut world, "data", "local", "pv");
        world.decide();
        assert_eq!(world.placed("g"), placed);
    }
}
