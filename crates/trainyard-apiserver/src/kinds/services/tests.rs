//! Services: tests of their rules, addresses and ports.

use super::*;
use crate::kinds::testing::Few;

fn service(spec: &Value) -> Value {
    let mut made =
        json!({"metadata": {"name": "s", "namespace": "ns"}, "spec": spec, "status": {}});
    Services.default(&mut made);
    made
}

fn told(errors: &[FieldError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_service_gets_an_address() {
    let mut made = service(&json!({"ports": [{"port": 80}]}));
    Services.admit(&mut made, &Few::default()).unwrap();
    let address = text(&made["spec"], "clusterIP").to_owned();
    assert!(address.starts_with("10.96."), "{address}");
    let expected = json!({
        "clusterIP": address, "clusterIPs": [address], "internalTrafficPolicy": "Cluster",
        "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "sessionAffinity": "None",
        "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}], "type": "ClusterIP",
    });
    assert_eq!(made["spec"], expected);
}

#[test]
fn headless_services_have_none() {
    let mut made = service(&json!({"clusterIP": "None", "selector": {"a": "b"}}));
    Services.admit(&mut made, &Few::default()).unwrap();
    assert_eq!(made["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(made["spec"]["ipFamilies"], json!(["IPv4"]));
    let mut made = service(&json!({"clusterIP": "None"}));
    Services.admit(&mut made, &Few::default()).unwrap();
    assert_eq!(made["spec"]["ipFamilyPolicy"], "RequireDualStack");
}

#[test]
fn taken_addresses_and_ports_are_refused() {
    let other = json!({
        "metadata": {"name": "o", "namespace": "ns"},
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"protocol": "TCP", "nodePort": 30007}]},
    });
    let world = Few::of([("services", other)]);
    let refused =
        |spec: &Value| Services.admit(&mut service(spec), &world).unwrap_err().to_string();
    assert_eq!(
        refused(&json!({"clusterIP": "10.96.0.1", "ports": [{"port": 80}]})),
        "Service \"s\" is invalid: spec.clusterIPs: Invalid value: [\"10.96.0.1\"]: failed to allocate IP 10.96.0.1: provided IP is already allocated"
    );
    assert_eq!(
        refused(&json!({"clusterIP": "10.1.1.1", "ports": [{"port": 80}]})),
        "Service \"s\" is invalid: spec.clusterIPs: Invalid value: [\"10.1.1.1\"]: failed to allocate IP 10.1.1.1: the provided network does not match the current range"
    );
    assert_eq!(
        refused(&json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30007}]})),
        "Service \"s\" is invalid: spec.ports[0].nodePort: Invalid value: 30007: provided port is already allocated"
    );
}

#[test]
fn faults_are_told() {
    let made = service(&json!({"ports": [{"port": 80}, {"port": 80, "protocol": "X"}]}));
    assert_eq!(
        told(&Services.validate_create(&made)),
        [
            "spec.ports[0].name: Required value",
            "spec.ports[1].name: Required value",
            "spec.ports[1].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \"TCP\", \"UDP\"",
        ]
    );
    assert_eq!(
        told(&Services.validate_create(&service(&json!({})))),
        ["spec.ports: Required value"]
    );
}

#[test]
fn a_change_of_type_gives_and_takes_ports() {
    let mut old = service(&json!({"ports": [{"port": 80}]}));
    Services.admit(&mut old, &Few::default()).unwrap();
    let mut new = old.clone();
    new["spec"]["type"] = json!("NodePort");
    Services.default(&mut new);
    Services.prepare_update(&mut new, &old, Part::Main);
    Services.admit_update(&mut new, &old, Part::Main, &Few::default()).unwrap();
    assert!(number(&new["spec"]["ports"][0], "nodePort") >= 30_000);
    assert_eq!(new["spec"]["externalTrafficPolicy"], "Cluster");
    let mut back = new.clone();
    back["spec"]["type"] = json!("ClusterIP");
    Services.prepare_update(&mut back, &new, Part::Main);
    assert_eq!(told(&Services.validate_update(&back, &new, Part::Main)), Vec::<String>::new());
    assert_eq!(back["spec"], old["spec"]);
}

#[test]
fn addresses_do_not_change() {
    let mut old = service(&json!({"ports": [{"port": 80}]}));
    Services.admit(&mut old, &Few::default()).unwrap();
    let mut new = old.clone();
    new["spec"]["clusterIP"] = json!("10.96.3.3");
    Services.prepare_update(&mut new, &old, Part::Main);
    assert_eq!(
        told(&Services.validate_update(&new, &old, Part::Main)),
        ["spec.clusterIPs[0]: Invalid value: [\"10.96.3.3\"]: may not change once set"]
    );
}
