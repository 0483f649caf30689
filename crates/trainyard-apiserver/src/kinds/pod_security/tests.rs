//! Which writes are looked at, and what is said of them.

use serde_json::json;

use super::*;
use crate::kinds::rows;
use crate::kinds::testing::Few;

fn namespace(labels: &[(&str, &str)]) -> Value {
    let mut object = json!({"metadata": {"name": "n", "labels": {}}});
    for (key, value) in labels {
        object["metadata"]["labels"][format!("pod-security.kubernetes.io/{key}")] = json!(value);
    }
    object
}

fn asked(
    storage: &str,
    object: &Value,
    before: Option<&Value>,
    world: &Few,
) -> Result<Vec<String>, Failure> {
    let rows = rows();
    let kind = rows.iter().find(|row| row.storage == storage).unwrap();
    admit(&Write { kind, object, before }, world)
}

fn pod(name: &str, image: &str) -> Value {
    json!({
        "metadata": {"name": name, "namespace": "n"},
        "spec": {"hostPID": true, "containers": [{"name": "a", "image": image}]},
    })
}

#[test]
fn pods_are_refused_templates_only_warned_of() {
    let world = Few::of([("namespaces", namespace(&[("enforce", "baseline")]))]);
    let refused = asked("pods", &pod("p", "i"), None, &world).unwrap_err();
    assert_eq!((refused.code, refused.reason), (403, "Forbidden"));
    assert_eq!(
        refused.message,
        "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true)"
    );
    let job = json!({
        "metadata": {"name": "j", "namespace": "n"},
        "spec": {"template": {"spec": {"hostPID": true}}},
    });
    let expected =
        ["would violate PodSecurity \"baseline:latest\": host namespaces (hostPID=true)"];
    assert_eq!(asked("jobs.batch", &job, None, &world).unwrap(), expected);
    let world = Few::of([("namespaces", namespace(&[("warn", "baseline")]))]);
    assert_eq!(asked("pods", &pod("p", "i"), None, &world).unwrap(), expected);
    let world = Few::of([("namespaces", namespace(&[("audit", "restricted")]))]);
    assert!(asked("pods", &pod("p", "i"), None, &world).unwrap().is_empty());
}

#[test]
fn a_pod_that_is_there_is_judged_again_when_its_images_change() {
    let world = Few::of([("namespaces", namespace(&[("enforce", "baseline")]))]);
    let old = pod("p", "i");
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    assert!(asked("pods", &labelled, Some(&old), &world).unwrap().is_empty());
    assert_eq!(asked("pods", &pod("p", "j"), Some(&old), &world).unwrap_err().code, 403);
}

#[test]
fn labels_are_checked_where_they_change() {
    let world = Few::default();
    let wrong = namespace(&[("enforce", "strict")]);
    let refused = asked("namespaces", &wrong, None, &world).unwrap_err();
    assert_eq!((refused.code, refused.reason), (422, "Invalid"));
    assert!(asked("namespaces", &wrong, Some(&wrong), &world).unwrap().is_empty());
    let good = namespace(&[]);
    assert_eq!(asked("namespaces", &wrong, Some(&good), &world).unwrap_err().code, 422);
    assert!(asked("namespaces", &good, Some(&wrong), &world).unwrap().is_empty());
}

#[test]
fn a_stricter_level_tells_of_the_pods_that_are_there() {
    let mut world = Few::default();
    for name in ["c", "b", "a"] {
        world.put("pods", pod(name, "i"));
    }
    let (none, strict) = (namespace(&[]), namespace(&[("enforce", "baseline")]));
    let expected = [
        "existing pods in namespace \"n\" violate the new PodSecurity enforce level \"baseline:latest\"",
        "a (and 2 other pods): host namespaces",
    ];
    assert_eq!(asked("namespaces", &strict, Some(&none), &world).unwrap(), expected);
    assert!(asked("namespaces", &strict, Some(&strict), &world).unwrap().is_empty());
    assert!(asked("namespaces", &none, Some(&strict), &world).unwrap().is_empty());
}
