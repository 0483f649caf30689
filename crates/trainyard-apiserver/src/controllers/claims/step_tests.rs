//! Claims and volumes in the states that people bring them into.

use serde_json::json;

use super::super::choose::tests::{claim, volume};
use super::super::view::BIND_COMPLETED;
use super::*;

fn class(name: &str, fields: &serde_json::Value) -> (String, Class) {
    let mut class = json!({"metadata": {"name": name}, "provisioner": PROVISIONER,
        "volumeBindingMode": "Immediate", "reclaimPolicy": "Delete"});
    for (key, value) in fields.as_object().unwrap() {
        class[key] = value.clone();
    }
    (name.to_owned(), serde_json::from_value(class).unwrap())
}

fn step(claim: &Claim, volumes: &[Volume], classes: &[(String, Class)], wanted: bool) -> ClaimStep {
    let volumes =
        volumes.iter().map(|volume| (volume.metadata.name.clone(), volume.clone())).collect();
    let classes = classes.iter().cloned().collect();
    of_claim(claim, &Around { volumes: &volumes, classes: &classes, wanted })
}

fn reason(step: &ClaimStep) -> &str {
    match step {
        ClaimStep::Wait(Some(words)) | ClaimStep::Lost(words) => words.reason,
        _ => "",
    }
}

#[test]
fn a_static_volume_is_taken_before_one_is_made() {
    let all = [volume("v", "5Gi", &json!({}))];
    let classes = [class("manual", &json!({}))];
    assert_eq!(step(&claim(&json!({})), &all, &classes, false), ClaimStep::Bind("v".to_owned()));
}

#[test]
fn a_directory_is_made_for_our_class_and_for_those_this_machine_lacks() {
    let plan = |classes: &[(String, Class)]| match step(&claim(&json!({})), &[], classes, false) {
        ClaimStep::Provision(plan) => plan,
        other => panic!("{other:?}"),
    };
    let ours = plan(&[class("manual", &json!({"reclaimPolicy": "Retain"}))]);
    assert_eq!((&*ours.reclaim, ours.stands_in, ours.class_unknown), ("Retain", false, false));
    let theirs = plan(&[class("manual", &json!({"provisioner": "file.csi.azure.com"}))]);
    assert_eq!((theirs.stands_in, theirs.class_unknown), (true, false));
    let nobodys = plan(&[]);
    assert_eq!(
        (&*nobodys.reclaim, nobodys.stands_in, nobodys.class_unknown),
        ("Delete", true, true)
    );
}

#[test]
fn what_cannot_be_made_is_said() {
    let hand = [class("manual", &json!({"provisioner": "kubernetes.io/no-provisioner"}))];
    assert_eq!(reason(&step(&claim(&json!({})), &[], &hand, false)), "ProvisioningFailed");
    let block = claim(&json!({"volumeMode": "Block"}));
    assert_eq!(reason(&step(&block, &[], &[], false)), "ProvisioningFailed");
    let picky = claim(&json!({"selector": {"matchLabels": {"a": "b"}}}));
    assert_eq!(reason(&step(&picky, &[], &[], false)), "ProvisioningFailed");
    let classless = claim(&json!({"storageClassName": ""}));
    assert_eq!(reason(&step(&classless, &[], &[], false)), "FailedBinding");
}

#[test]
fn the_default_class_is_taken_later_too() {
    let open = claim(&json!({"storageClassName": null}));
    assert_eq!(reason(&step(&open, &[], &[], false)), "FailedBinding");
    let default = json!({"metadata": {"name": "standard",
        "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}});
    let classes = [class("other", &json!({})), class("standard", &default)];
    let taken = step(&open, &[], &classes, false);
    assert_eq!(taken, ClaimStep::TakeClass("standard".to_owned()));
}

#[test]
fn a_class_may_wait_for_a_consumer() {
    let classes = [class("manual", &json!({"volumeBindingMode": "WaitForFirstConsumer"}))];
    let all = [volume("v", "5Gi", &json!({}))];
    let waiting = step(&claim(&json!({})), &all, &classes, false);
    assert_eq!(reason(&waiting), "WaitForFirstConsumer");
    let wanted = step(&claim(&json!({})), &all, &classes, true);
    assert_eq!(wanted, ClaimStep::Bind("v".to_owned()));
    assert!(matches!(step(&claim(&json!({})), &[], &classes, true), ClaimStep::Provision(_)));
}

#[test]
fn a_volume_by_name_or_none() {
    let named = claim(&json!({"volumeName": "v"}));
    assert_eq!(step(&named, &[], &[], false), ClaimStep::Wait(None));
    let free = [volume("v", "5Gi", &json!({}))];
    assert_eq!(step(&named, &free, &[], false), ClaimStep::Bind("v".to_owned()));
    let small = [volume("v", "1Gi", &json!({}))];
    let ClaimStep::Wait(Some(words)) = step(&named, &small, &[], false) else { panic!() };
    assert_eq!(words.message, "Cannot bind to requested volume \"v\": requested PV is too small");
    let taken = json!({"claimRef": {"namespace": "n", "name": "x", "uid": "x"}});
    let taken = [volume("v", "5Gi", &taken)];
    assert_eq!(reason(&step(&named, &taken, &[], false)), "FailedBinding");
}

fn bound_to(name: &str) -> Claim {
    let mut claim = claim(&json!({"volumeName": name}));
    claim.metadata.annotations.insert(BIND_COMPLETED.to_owned(), "yes".to_owned());
    claim
}

#[test]
fn a_bound_claim_may_lose_its_volume() {
    assert_eq!(reason(&step(&bound_to("v"), &[], &[], false)), "ClaimLost");
    assert_eq!(reason(&step(&bound_to(""), &[], &[], false)), "ClaimLost");
    let other = json!({"claimRef": {"namespace": "n", "name": "data", "uid": "x"}});
    let other = [volume("v", "5Gi", &other)];
    assert_eq!(reason(&step(&bound_to("v"), &other, &[], false)), "ClaimMisbound");
    let mine = json!({"claimRef": {"namespace": "n", "name": "data", "uid": "c"}});
    let mine = [volume("v", "5Gi", &mine)];
    assert_eq!(step(&bound_to("v"), &mine, &[], false), ClaimStep::Bind("v".to_owned()));
}

#[test]
fn a_volume_follows_its_claim() {
    let free = volume("v", "5Gi", &json!({}));
    assert_eq!(of_volume(&free, None), VolumeStep::Available);
    let kept = volume("v", "5Gi", &json!({"claimRef": {"namespace": "n", "name": "data"}}));
    assert_eq!(of_volume(&kept, None), VolumeStep::Available);
    let to = json!({"claimRef": {"namespace": "n", "name": "data", "uid": "c"}});
    let mut bound = volume("v", "5Gi", &to);
    assert_eq!(of_volume(&bound, None), VolumeStep::Release);
    let mut successor = claim(&json!({}));
    successor.metadata.uid = "later".to_owned();
    assert_eq!(of_volume(&bound, Some(&successor)), VolumeStep::Release);
    assert_eq!(of_volume(&bound, Some(&claim(&json!({})))), VolumeStep::LeaveToClaim);
    assert_eq!(of_volume(&bound, Some(&bound_to("v"))), VolumeStep::Bound);
    assert_eq!(of_volume(&bound, Some(&bound_to("w"))), VolumeStep::Unbind);
    bound.metadata.annotations.insert(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned());
    bound.spec.reclaim = "Delete".to_owned();
    assert_eq!(of_volume(&bound, Some(&bound_to("w"))), VolumeStep::Release);
}
