//! Claims, volumes and classes: tests of their rules.

use super::*;
use crate::kinds::testing::Few;

fn told(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn claim_of(spec: &Value) -> Value {
    let mut made = json!({"metadata": {"name": "c", "namespace": "n"}, "spec": spec, "status": {}});
    Claims.default(&mut made);
    made
}

#[test]
fn a_claim_gets_the_default_class() {
    let class = |name: &str, default: &str, since: &str| {
        json!({"metadata": {
            "name": name, "creationTimestamp": since, "annotations": {IS_DEFAULT[0]: default},
        }})
    };
    let world = Few::of([
        (CLASSES, class("old", "true", "2026-01-01T00:00:00Z")),
        (CLASSES, class("new", "true", "2026-02-01T00:00:00Z")),
        (CLASSES, class("other", "false", "2026-03-01T00:00:00Z")),
    ]);
    let mut made = claim_of(&json!({}));
    Claims.admit(&mut made, &world).unwrap();
    assert_eq!(made["spec"]["storageClassName"], "new");
    let mut made = claim_of(&json!({"storageClassName": ""}));
    Claims.admit(&mut made, &world).unwrap();
    assert_eq!(made["spec"]["storageClassName"], "");
}

#[test]
fn claims_say_how_much_and_how() {
    assert_eq!(
        told(&Claims.validate_create(&claim_of(&json!({})))),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ]
    );
    let made = claim_of(
        &json!({"accessModes": ["X"], "volumeMode": "Y", "resources": {"requests": {"storage": "0"}}}),
    );
    assert_eq!(
        told(&Claims.validate_create(&made)),
        [
            "spec.accessModes: Unsupported value: \"X\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"",
            "spec.resources[storage]: Invalid value: \"0\": must be greater than zero",
            "spec.volumeMode: Unsupported value: \"Y\": supported values: \"Block\", \"Filesystem\"",
        ]
    );
}

#[test]
fn a_claim_changes_only_its_volume() {
    let old = claim_of(
        &json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}),
    );
    let mut new = old.clone();
    new["spec"]["volumeName"] = json!("pv");
    assert_eq!(told(&Claims.validate_update(&new, &old, Part::Main)), Vec::<String>::new());
    new["spec"]["accessModes"] = json!(["ReadWriteMany"]);
    let errors = told(&Claims.validate_update(&new, &old, Part::Main));
    assert!(errors[0].starts_with(
        "spec: Forbidden: spec is immutable after creation except resources.requests"
    ));
}

#[test]
fn volumes_have_a_source() {
    let mut made = json!({"metadata": {"name": "v"}, "spec": {}, "status": {}});
    Volumes.default(&mut made);
    assert_eq!(
        told(&Volumes.validate_create(&made)),
        [
            "spec.accessModes: Required value",
            "spec.capacity: Required value",
            "spec.capacity: Unsupported value: null: supported values: \"storage\"",
            "spec: Required value: must specify a volume type",
        ]
    );
    made["spec"]["hostPath"] = json!({"path": "/x"});
    made["spec"]["nfs"] = json!({"path": "/x", "server": "s"});
    let errors = told(&Volumes.validate_create(&made));
    assert_eq!(errors[3], "spec.nfs: Forbidden: may not specify more than 1 volume type");
}

#[test]
fn classes_do_not_change() {
    let old = json!({"provisioner": "a/b", "reclaimPolicy": "Delete"});
    let new = json!({"provisioner": "c/d", "reclaimPolicy": "Delete"});
    assert_eq!(
        told(&Classes.validate_update(&new, &old, Part::Main)),
        ["provisioner: Invalid value: \"c/d\": field is immutable"]
    );
    assert_eq!(told(&Classes.validate_create(&json!({}))), ["provisioner: Required value"]);
}
