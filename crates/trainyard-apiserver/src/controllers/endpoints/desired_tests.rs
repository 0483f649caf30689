//! Slices of services as people write them.

use serde_json::{Value, json};

use super::*;
use crate::controllers::endpoints::view::{ServedPod, ServedService};

pub(crate) fn service(spec: &Value) -> Service {
    let mut service = json!({
        "metadata": {"name": "web", "namespace": "n", "uid": "s", "labels": {"app": "web"}},
        "spec": {"clusterIP": "10.96.0.9", "selector": {"app": "web"}, "ipFamilies": ["IPv4"],
            "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]},
    });
    for (key, value) in spec.as_object().unwrap() {
        service["spec"][key] = value.clone();
    }
    serde_json::from_value::<ServedService>(service).unwrap().into()
}

pub(crate) fn pod(name: &str, ip: &str, ready: bool) -> Pod {
    let status = if ready { "True" } else { "False" };
    let pod = json!({
        "metadata": {"name": name, "namespace": "n", "uid": name, "labels": {"app": "web"}},
        "spec": {"nodeName": "n1", "hostname": name, "subdomain": "web", "containers": [
            {"ports": [{"name": "named", "containerPort": 9000}]}]},
        "status": {"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
            "conditions": [{"type": "Ready", "status": status}]},
    });
    serde_json::from_value::<ServedPod>(pod).unwrap().into()
}

fn slices(service: &Service, pods: &[Pod]) -> Vec<Slice> {
    desired(service, &pods.iter().filter(|pod| service.selects(&pod.labels)))
}

#[test]
fn a_pod_is_an_endpoint_with_its_conditions() {
    let service = service(&json!({}));
    let made = slices(&service, &[pod("a", "10.0.0.1", true), pod("b", "10.0.0.2", false)]);
    assert_eq!(made.len(), 1);
    let object = made[0].object(&service);
    assert_eq!(object["ports"], json!([{"name": "http", "protocol": "TCP", "port": 8080}]));
    assert_eq!(
        object["endpoints"][0],
        json!({
            "addresses": ["10.0.0.1"], "hostname": "a", "nodeName": "n1",
            "conditions": {"ready": true, "serving": true, "terminating": false},
            "targetRef": {"kind": "Pod", "namespace": "n", "name": "a", "uid": "a"},
        })
    );
    assert_eq!(object["endpoints"][1]["conditions"]["ready"], false);
    assert_eq!(object["metadata"]["labels"]["kubernetes.io/service-name"], "web");
    assert_eq!(object["metadata"]["labels"]["app"], "web");
    assert!(object["metadata"]["labels"].get(HEADLESS).is_none());
    assert_eq!(object["metadata"]["ownerReferences"][0]["controller"], true);
}

#[test]
fn a_headless_service_may_publish_what_is_not_ready() {
    let service =
        service(&json!({"clusterIP": "None", "publishNotReadyAddresses": true, "ports": []}));
    assert!(service.ports.is_empty());
    let mut going = pod("a", "10.0.0.1", true);
    going.terminating = true;
    let made = slices(&service, &[going, pod("b", "10.0.0.2", false)]);
    let object = made[0].object(&service);
    let conditions = |at: usize| object["endpoints"][at]["conditions"].clone();
    assert_eq!(conditions(0), json!({"ready": true, "serving": true, "terminating": true}));
    assert_eq!(conditions(1), json!({"ready": true, "serving": false, "terminating": false}));
    assert_eq!(object["metadata"]["labels"][HEADLESS], "");
    assert_eq!(object["ports"], json!([]));
}

#[test]
fn a_terminating_pod_serves_but_is_not_ready() {
    let service = service(&json!({}));
    let mut going = pod("a", "10.0.0.1", true);
    going.terminating = true;
    let object = slices(&service, &[going])[0].object(&service);
    let wanted = json!({"ready": false, "serving": true, "terminating": true});
    assert_eq!(object["endpoints"][0]["conditions"], wanted);
}

#[test]
fn a_service_without_pods_has_an_empty_slice_and_without_selector_none() {
    let empty = service(&json!({}));
    let made = slices(&empty, &[]);
    assert_eq!((made.len(), made[0].endpoints.len(), made[0].ports.len()), (1, 0, 0));
    let ended = ServedPod::default();
    assert!(Pod::from(ended).addresses.is_empty());
    assert!(!service(&json!({"selector": null})).selects(&BTreeMap::new()));
    assert!(service(&json!({"type": "ExternalName"})).selector.is_none());
}

#[test]
fn named_ports_are_found_in_each_pod() {
    let port = json!([{"name": "http", "port": 80, "targetPort": "named", "protocol": "TCP"}]);
    let service = service(&json!({"ports": port}));
    let mut other = pod("b", "10.0.0.2", true);
    other.ports[0].number = 9001;
    let mut without = pod("c", "10.0.0.3", true);
    without.ports.clear();
    let made = slices(&service, &[pod("a", "10.0.0.1", true), other, without]);
    let mut numbers: Vec<Option<u16>> =
        made.iter().map(|slice| slice.ports.first().map(|port| port.number)).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, [None, Some(9000), Some(9001)]);
}

#[test]
fn many_pods_are_several_slices_of_different_names() {
    let service = service(&json!({}));
    let pods: Vec<Pod> = (0..250)
        .map(|at| pod(&format!("p{at:03}"), &format!("10.0.1.{}", at % 256), true))
        .collect();
    let made = slices(&service, &pods);
    let sizes: Vec<usize> = made.iter().map(|slice| slice.endpoints.len()).collect();
    assert_eq!(sizes, [100, 100, 50]);
    assert_ne!(made[0].name, made[1].name);
    assert_eq!(made, slices(&service, &pods));
}

#[test]
fn labels_that_go_are_taken_off() {
    let new = BTreeMap::from([("a".to_owned(), "1".to_owned())]);
    let old = BTreeMap::from([("b".to_owned(), "1".to_owned())]);
    assert_eq!(label_patch(&new, &old), json!({"a": "1", "b": null}));
}

#[test]
fn a_pod_that_has_ended_has_no_address() {
    let ended = json!({"status": {"phase": "Succeeded", "podIP": "10.0.0.1"}});
    let ended: Pod = serde_json::from_value::<ServedPod>(ended).unwrap().into();
    assert!(ended.addresses.is_empty());
}
