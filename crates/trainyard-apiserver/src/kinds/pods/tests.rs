//! Pods from creation to deletion: tests of their rules as a whole.

use super::*;
use crate::kinds::testing::Few;

fn pod(spec: &Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec, "status": {}});
    Pods.default(&mut pod);
    pod
}

fn told(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

fn world() -> Few {
    Few::of([("serviceaccounts", json!({"metadata": {"name": "default", "namespace": "ns"}}))])
}

#[test]
fn a_new_pod_gets_account_token_priority_and_tolerations() {
    let mut made = pod(&json!({"containers": [{"name": "c", "image": "a:1"}]}));
    Pods.admit(&mut made, &world()).unwrap();
    Pods.prepare_create(&mut made);
    let spec = &made["spec"];
    assert_eq!(
        (text(spec, "serviceAccountName"), text(spec, "serviceAccount")),
        ("default", "default")
    );
    assert_eq!(
        (&spec["priority"], &spec["preemptionPolicy"]),
        (&json!(0), &json!("PreemptLowerPriority"))
    );
    assert_eq!(items(spec, "tolerations").len(), 2);
    let name = text(&spec["volumes"][0], "name");
    assert!(name.starts_with("kube-api-access-") && name.len() == "kube-api-access-".len() + 5);
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], name);
    assert_eq!(made["status"], json!({"phase": "Pending", "qosClass": "BestEffort"}));
    assert_eq!(told(&Pods.validate_create(&made)), Vec::<String>::new());
}

#[test]
fn unknown_accounts_and_classes_are_refused() {
    let mut made = pod(&json!({"containers": [], "serviceAccountName": "other"}));
    let refused = Pods.admit(&mut made, &world()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "pods \"p\" is forbidden: error looking up service account ns/other: serviceaccount \"other\" not found"
    );
    let mut made = pod(&json!({"containers": [], "priorityClassName": "high"}));
    let refused = Pods.admit(&mut made, &world()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "pods \"p\" is forbidden: no PriorityClass with name high was found"
    );
}

#[test]
fn classes_give_a_priority() {
    let mut world = world();
    let class = json!({"metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"});
    world.put("priorityclasses.scheduling.k8s.io", class);
    let mut made = pod(&json!({"containers": [], "priorityClassName": "high"}));
    Pods.admit(&mut made, &world).unwrap();
    let spec = &made["spec"];
    assert_eq!((&spec["priority"], &spec["preemptionPolicy"]), (&json!(7), &json!("Never")));
}

#[test]
fn faults_are_told_in_order() {
    let made = pod(&json!({
        "restartPolicy": "Sometimes",
        "containers": [
            {"name": "A", "image": ""},
            {"name": "b", "image": "x", "volumeMounts": [{"name": "v", "mountPath": "/a"}]},
            {"name": "b", "image": "x ", "ports": [{"containerPort": 0}, {"containerPort": 70000}]},
        ],
    }));
    let told = told(&Pods.validate_create(&made));
    assert!(told[0].starts_with("spec.containers[0].name: Invalid value: \"A\""));
    assert_eq!(
        told[1..],
        [
            "spec.containers[0].image: Required value",
            "spec.containers[1].volumeMounts[0].name: Not found: \"v\"",
            "spec.containers[2].ports[0].containerPort: Required value",
            "spec.containers[2].ports[1].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive",
            "spec.containers[2].name: Duplicate value: \"b\"",
            "spec.restartPolicy: Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\"",
            "spec.containers[2].image: Invalid value: \"x \": must not have leading or trailing whitespace",
        ]
    );
}

#[test]
fn almost_nothing_of_a_pod_changes() {
    let old = pod(&json!({"containers": [{"name": "c", "image": "a:1"}]}));
    let mut new = old.clone();
    new["spec"]["containers"][0]["image"] = json!("a:2");
    assert_eq!(told(&Pods.validate_update(&new, &old, Part::Main)), Vec::<String>::new());
    new["spec"]["nodeSelector"] = json!({"a": "b"});
    let errors = told(&Pods.validate_update(&new, &old, Part::Main));
    assert!(errors[0].starts_with(
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
    ));
    assert!(errors[0].contains("+ \"nodeSelector\": {"));
    new["spec"]["containers"] = json!([]);
    let errors = told(&Pods.validate_update(&new, &old, Part::Main));
    assert_eq!(
        errors[1],
        "spec.containers: Forbidden: pod updates may not add or remove containers"
    );
}

#[test]
fn a_changed_specification_is_a_new_generation() {
    let mut old = pod(&json!({
        "containers": [{"name": "c", "image": "a:1"}], "tolerations": [{"operator": "Exists"}],
    }));
    old["metadata"]["generation"] = json!(1);
    let mut new = old.clone();
    new["status"] = json!({"phase": "Running"});
    Pods.prepare_update(&mut new, &old, Part::Main);
    assert_eq!(new, old);
    new["spec"]["containers"][0]["image"] = json!("a:2");
    Pods.prepare_update(&mut new, &old, Part::Main);
    assert_eq!(new["metadata"]["generation"], 2);
}

#[test]
fn what_ended_for_good_does_not_run_again() {
    let mut old =
        pod(&json!({"restartPolicy": "Never", "containers": [{"name": "c", "image": "a:1"}]}));
    old["status"] = json!({"qosClass": "BestEffort", "containerStatuses": [
        {"name": "c", "state": {"terminated": {"exitCode": 0}}},
    ]});
    let mut new = old.clone();
    new["status"]["containerStatuses"][0]["state"] = json!({"running": {}});
    let errors = told(&Pods.validate_update(&new, &old, Part::Status));
    assert_eq!(
        errors,
        [
            "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"
        ]
    );
}

#[test]
fn pods_without_a_node_go_at_once() {
    let mut made = pod(&json!({"containers": []}));
    assert_eq!(Pods.grace(&made, None), Grace::Seconds(0));
    made["spec"]["nodeName"] = json!("n");
    assert_eq!(Pods.grace(&made, None), Grace::Seconds(30));
    assert_eq!(Pods.grace(&made, Some(-5)), Grace::Seconds(1));
    assert_eq!(Pods.grace(&made, Some(0)), Grace::Seconds(0));
    made["status"]["phase"] = json!("Failed");
    assert_eq!(Pods.grace(&made, None), Grace::Seconds(0));
}
