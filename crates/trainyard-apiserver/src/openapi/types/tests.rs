//! Reading by types: tests of the canonical form and of the words against what is wrong.

use serde_json::json;

use super::*;

const POD: &str = "io.k8s.api.core.v1.Pod";

fn canonical(definition: &str, mut object: Value) -> Value {
    assert_eq!(read(definition, &mut object), Ok(Vec::new()));
    object
}

fn fault(definition: &str, mut object: Value) -> String {
    read(definition, &mut object).unwrap_err()
}

#[test]
fn empty_fields_go_and_those_always_written_come() {
    let pod = canonical(
        POD,
        json!({
            "metadata": {"name": "a", "labels": {}, "creationTimestamp": null, "generation": 0},
            "spec": {"hostNetwork": false, "nodeName": "", "containers": [{
                "name": "c", "env": [], "stdin": false, "ports": null,
            }], "terminationGracePeriodSeconds": 0},
        }),
    );
    let expected = json!({
        "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "c", "resources": {}}], "terminationGracePeriodSeconds": 0},
        "status": {},
    });
    assert_eq!(pod, expected);
}

#[test]
fn lists_that_are_always_written_are_null_when_empty() {
    let role =
        canonical("io.k8s.api.rbac.v1.Role", json!({"metadata": {"name": "r"}, "rules": []}));
    assert_eq!(role, json!({"metadata": {"name": "r"}, "rules": null}));
    let pod = canonical(POD, json!({}));
    assert_eq!(pod["spec"], json!({"containers": null}));
}

#[test]
fn unknown_fields_are_told_with_their_place() {
    let mut pod = json!({
        "spec": {"containers": [{"name": "a"}, {"name": "b", "imag": "x"}], "foo": 1}, "bar": 2,
    });
    let told = read(POD, &mut pod).unwrap();
    assert_eq!(told, ["bar", "spec.foo", "spec.containers[1].imag"]);
    assert!(pod["spec"].get("foo").is_none() && pod.get("bar").is_none());
}

#[test]
fn values_of_the_wrong_type_are_told_as_the_real_decoder_does() {
    let told = fault(POD, json!({"spec": {"containers": [{"name": 5}]}}));
    assert_eq!(
        told,
        "json: cannot unmarshal number into Go struct field Container.spec.containers.name of type string"
    );
    let told = fault(POD, json!({"spec": {"containers": "x"}}));
    assert_eq!(
        told,
        "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Container"
    );
    let told = fault(
        POD,
        json!({"spec": {"containers": [{"ports": [{"containerPort": 99_999_999_999_i64}]}]}}),
    );
    assert_eq!(
        told,
        "json: cannot unmarshal number 99999999999 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32"
    );
}

#[test]
fn quantities_times_and_bytes_are_canonical() {
    let pod = canonical(
        POD,
        json!({
            "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}]},
            "status": {"startTime": "2026-01-01T02:00:00.5+02:00"},
        }),
    );
    let limits = &pod["spec"]["containers"][0]["resources"]["limits"];
    assert_eq!(limits, &json!({"cpu": "500m", "memory": "1Gi"}));
    assert_eq!(pod["status"]["startTime"], "2026-01-01T00:00:00Z");
    let told = fault("io.k8s.api.core.v1.Secret", json!({"data": {"a": "???"}}));
    assert_eq!(told, "illegal base64 data at input byte 0");
    let told = fault(POD, json!({"metadata": {"creationTimestamp": "yesterday"}}));
    assert_eq!(
        told,
        "parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\""
    );
}

#[test]
fn lists_merge_by_their_keys() {
    let spec = shape(POD).and_then(|pod| pod.field("spec")).unwrap();
    let containers = spec.field("containers").unwrap();
    assert!(containers.is_merged());
    assert_eq!(containers.merge_key(), Some("name"));
    let env = containers.element().and_then(|container| container.field("env")).unwrap();
    assert_eq!(env.merge_key(), Some("name"));
    let volumes = spec.field("volumes").unwrap();
    assert!(volumes.is_merged() && volumes.retains_keys());
    assert!(!spec.field("tolerations").unwrap().is_merged());
}

#[test]
fn every_row_has_its_type() {
    for row in crate::kinds::rows() {
        for version in &row.versions {
            assert!(shape(version.schema.definition()).is_some(), "{}", row.kind);
        }
    }
}
