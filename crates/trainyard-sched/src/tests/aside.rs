//! Members that cannot be tried, and what becomes of the others of their group.

use serde_json::{Value, from_value, json};

use super::world::{World, key, member};
use crate::{Config, Constraint, Delta, StorageDelta};

const MISSING: &str = "persistentvolumeclaim \"late\" not found";

fn world(minimum: usize, members: usize, change: impl FnOnce(&mut Value)) -> World {
    let mut world = World::with(Config { knows_volumes: true, ..Config::default() });
    world.node("a", "8");
    world.gang_with("g", 0, &json!({"minMember": minimum}), &json!({}));
    let pods = (0..members).map(|index| member(&format!("g-{index}"), "g", 1, &json!({})));
    let mut pods: Vec<Value> = pods.collect();
    change(&mut pods[0]);
    for pod in pods {
        world.pod(pod);
    }
    world.decide();
    world
}

fn mounts_late(pod: &mut Value) {
    pod["spec"]["volumes"] = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "late"}}]);
}

#[test]
fn one_without_its_claim_holds_up_nobody_who_is_enough_without_it() {
    for minimum in [1, 2] {
        let mut world = world(minimum, 3, mounts_late);
        assert_eq!((world.placed("g"), world.node_of("g-0")), (2, None), "minimum {minimum}");
        assert_eq!(world.said["g-0"], MISSING);
        let explained = world.state.explain(&key("g"), world.now).unwrap();
        assert_eq!((explained.constraint, explained.waiting), (Constraint::Claim, 1));
        assert_eq!(explained.message, MISSING);
        world.decide();
        assert!(world.decide().is_empty(), "said once");
        let claim = json!({
            "metadata": {"namespace": "n", "name": "late", "uid": "late",
                "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
            "spec": {"volumeName": "pv"},
        });
        let volume = json!({"metadata": {"name": "pv"}});
        for delta in [
            StorageDelta::Claim(from_value(claim).unwrap()),
            StorageDelta::Volume(Box::new(from_value(volume).unwrap())),
        ] {
            world.state.apply(Delta::Storage(Box::new(delta)));
        }
        world.decide();
        assert_eq!(world.placed("g"), 3);
    }
}

#[test]
fn where_all_are_needed_all_wait_for_it() {
    let world = world(3, 3, mounts_late);
    assert_eq!(world.placed("g"), 0);
    for pod in ["g-0", "g-1", "g-2"] {
        assert_eq!(world.said[pod], MISSING);
    }
}

#[test]
fn one_that_asks_for_what_is_not_honoured_waits_by_itself() {
    let world = world(2, 3, |pod| pod["spec"]["resourceClaims"] = json!([{"name": "gpu"}]));
    assert_eq!((world.placed("g"), world.node_of("g-0")), (2, None));
    assert!(world.said["g-0"].starts_with("spec.resourceClaims cannot be honoured"));
    let explained = world.state.explain(&key("g"), world.now).unwrap();
    assert_eq!(explained.constraint, Constraint::Unsupported);
}
