//! The documents of discovery: tests against what the real server tells.

use serde_json::json;

use super::*;
use crate::kinds;

fn rows() -> Vec<Arc<Kind>> {
    kinds::rows().into_iter().map(Arc::new).collect()
}

#[test]
fn pods_are_told_with_their_parts() {
    let list = resources(&rows(), "", "v1").unwrap();
    let names: Vec<_> = list["resources"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|resource| resource["name"].as_str())
        .filter(|name| name.starts_with("pods"))
        .collect();
    let expected = [
        "pods",
        "pods/attach",
        "pods/binding",
        "pods/ephemeralcontainers",
        "pods/eviction",
        "pods/exec",
        "pods/log",
        "pods/portforward",
        "pods/status",
    ];
    assert_eq!(names, expected);
}

#[test]
fn a_resource_is_told_as_the_real_server_tells_it() {
    let list = resources(&rows(), "coordination.k8s.io", "v1").unwrap();
    let expected = json!([{
        "name": "leases", "singularName": "lease", "namespaced": true, "kind": "Lease",
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
        "storageVersionHash": "gqkMMb/YqFM=",
    }]);
    assert_eq!(list["resources"], expected);
    assert_eq!(list["groupVersion"], "coordination.k8s.io/v1");
}

#[test]
fn unknown_groups_and_versions_are_not_there() {
    assert!(resources(&rows(), "apps", "v9").is_none());
    assert!(group(&rows(), "nowhere.io").is_none());
    assert!(group(&rows(), "").is_none());
}

#[test]
fn groups_stand_in_the_order_of_the_real_server() {
    let rows = rows();
    let names = named_groups(&rows);
    assert_eq!(names.first(), Some(&"events.k8s.io"));
    assert_eq!(names.last(), Some(&"discovery.k8s.io"));
    let reversed: Vec<_> = rows.iter().rev().cloned().collect();
    assert_eq!(named_groups(&reversed), names);
    let aggregated = aggregated_groups(&rows);
    assert_eq!(aggregated["items"][0]["metadata"]["name"], "events.k8s.io");
    let event = &aggregated["items"][0]["versions"][0]["resources"][0];
    assert_eq!(event["responseKind"], json!({"group": "", "version": "", "kind": "Event"}));
}

#[test]
fn versions_are_ordered_by_maturity() {
    let mut versions = vec!["v1alpha1", "v2beta1", "v1", "v10", "custom", "v1beta2"];
    versions.sort_by(|one, other| rank(other).cmp(&rank(one)).then_with(|| one.cmp(other)));
    assert_eq!(versions, ["v10", "v1", "v2beta1", "v1beta2", "v1alpha1", "custom"]);
}

#[test]
fn measured_kinds_are_told_and_only_read() {
    let list = resources(&rows(), "metrics.k8s.io", "v1beta1").unwrap();
    let expected = json!({
        "name": "nodes", "singularName": "", "namespaced": false, "kind": "NodeMetrics",
        "verbs": ["get", "list"],
    });
    assert_eq!(list["resources"][0], expected);
    assert!(group(&rows(), "metrics.k8s.io").is_some());
    let groups = groups(&rows());
    assert_eq!(groups["groups"].as_array().unwrap().last().unwrap()["name"], "metrics.k8s.io");
}

#[test]
fn definitions_are_hashed_as_the_real_server_stores_them() {
    let list = resources(&rows(), "apiextensions.k8s.io", "v1").unwrap();
    assert_eq!(list["resources"][0]["storageVersionHash"], "jfWCUB31mvA=");
}
