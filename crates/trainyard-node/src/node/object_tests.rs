//! The Node object, compared as JSON, and the patches that keep it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::*;
use crate::node::identity::AgentIdentity;
use crate::node::machine::tests::example;
use crate::node::pressure::Pressure;

pub(crate) fn facts(name: &str) -> NodeFacts {
    let amounts: BTreeMap<String, Quantity> =
        [("cpu", "8"), ("memory", "16Gi"), ("ephemeral-storage", "100Gi"), ("pods", "110")]
            .into_iter()
            .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
            .collect();
    NodeFacts {
        name: name.to_owned(),
        address: Ipv4Addr::LOCALHOST.into(),
        port: 10250,
        inside: Ipv4Addr::new(10, 77, 0, 2),
        capacity: amounts.clone(),
        allocatable: amounts,
        machine: Arc::new(example()),
        sandbox: "namespaces".to_owned(),
        network: "bridge".to_owned(),
        rootless: true,
        limits: Limits::NotEnforced("no delegated cgroup".to_owned()),
        labels: BTreeMap::new(),
        declared_features: vec!["ExtendWebSocketsToKubelet".to_owned()],
        pressure: Pressure::default(),
        readiness: Readiness::Ready,
        agent: AgentIdentity::current(),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastHeartbeatTime": "1970-01-01T00:01:40Z", "lastTransitionTime": "1970-01-01T00:01:40Z",
    })
}

#[test]
fn the_whole_node() {
    let facts = facts("n1");
    let amounts = json!({
        "cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"
    });
    let wanted = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": "n1",
            "annotations": { "trainyard.dev/agent": facts.agent.to_string() },
            "labels": {
                "kubernetes.io/hostname": "n1",
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
                "beta.kubernetes.io/os": "linux",
                "beta.kubernetes.io/arch": "amd64",
                "trainyard.dev/sandbox": "namespaces",
                "trainyard.dev/network": "bridge",
                "trainyard.dev/rootless": "true",
            },
        },
        "status": {
            "addresses": [
                { "type": "InternalIP", "address": "127.0.0.1" },
                { "type": "InternalIP", "address": "10.77.0.2" },
            ],
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory",
                    "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure",
                    "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID",
                    "kubelet has sufficient PID available"),
                condition("LimitsEnforced", "False", "NoCgroups",
                    "limits are not enforced: no delegated cgroup"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
            "declaredFeatures": ["ExtendWebSocketsToKubelet"],
            "nodeInfo": {
                "architecture": "amd64",
                "bootID": "5b1f",
                "containerRuntimeVersion": format!("trainyard://{}", env!("CARGO_PKG_VERSION")),
                "kernelVersion": "6.18.44",
                "kubeProxyVersion": "",
                "kubeletVersion": format!("v1.33.0-trainyard.{}", env!("CARGO_PKG_VERSION")),
                "machineID": "0123456789abcdef0123456789abcdef",
                "operatingSystem": "linux",
                "osImage": "Debian GNU/Linux 12 (bookworm)",
                "systemUUID": "0123456789abcdef0123456789abcdef",
            },
        },
    });
    assert_eq!(node_json(&facts, at(100)), wanted);
}

#[test]
fn a_condition_keeps_its_time_while_its_status_stays() {
    let mut facts = facts("n1");
    let there = node_object(&facts, at(100));
    facts.pressure.memory = true;
    facts.readiness = Readiness::stopped();
    let patch = status_patch(&facts, &there, at(200));
    let conditions = patch["status"]["conditions"].as_array().unwrap();
    let times: Vec<_> = conditions
        .iter()
        .map(|one| (one["type"].as_str().unwrap(), one["lastTransitionTime"].as_str().unwrap()))
        .collect();
    assert_eq!(
        times,
        [
            ("MemoryPressure", "1970-01-01T00:03:20Z"),
            ("DiskPressure", "1970-01-01T00:01:40Z"),
            ("PIDPressure", "1970-01-01T00:01:40Z"),
            ("LimitsEnforced", "1970-01-01T00:01:40Z"),
            ("Ready", "1970-01-01T00:03:20Z"),
        ]
    );
    assert_eq!(conditions[0]["reason"], "KubeletHasInsufficientMemory");
    assert_eq!(conditions[4]["reason"], "AgentStopped");
    assert!(conditions.iter().all(|one| one["lastHeartbeatTime"] == "1970-01-01T00:03:20Z"));
}

#[test]
fn resources_that_are_gone_are_taken_back_and_addresses_replaced() {
    let facts = facts("n1");
    let mut there = node_object(&facts, at(1));
    let status = there.status.as_mut().unwrap();
    for amounts in [&mut status.capacity, &mut status.allocatable] {
        amounts.as_mut().unwrap().insert("nvidia.com/gpu".to_owned(), Quantity("2".to_owned()));
    }
    let patch = status_patch(&facts, &there, at(2));
    assert_eq!(patch["status"]["capacity"]["nvidia.com/gpu"], Value::Null);
    assert!(patch["status"]["allocatable"].as_object().unwrap().contains_key("nvidia.com/gpu"));
    assert_eq!(patch["status"]["capacity"]["cpu"], "8");
    assert_eq!(patch["status"]["addresses"][2], json!({ "$patch": "replace" }));
}

#[test]
fn only_what_differs_is_written() {
    let mut facts = facts("n1");
    let mut there = node_object(&facts, at(1));
    assert!(!status_differs(&facts, &there));
    assert_eq!(metadata_patch(&facts, &there), None);
    // What others add does not matter.
    let foreign = NodeCondition { type_: "Other".to_owned(), ..NodeCondition::default() };
    there.status.as_mut().unwrap().conditions.as_mut().unwrap().push(foreign);
    there.metadata.labels.as_mut().unwrap().insert("team".to_owned(), "a".to_owned());
    assert!(!status_differs(&facts, &there));
    assert_eq!(metadata_patch(&facts, &there), None);
    // The node controller gave the node up while the machine slept.
    let conditions = there.status.as_mut().unwrap().conditions.as_mut().unwrap();
    conditions[4].status = "Unknown".to_owned();
    assert!(status_differs(&facts, &there));
    facts.labels.insert("disk".to_owned(), "ssd".to_owned());
    let patch = metadata_patch(&facts, &there).unwrap();
    assert_eq!(patch["metadata"]["labels"]["disk"], "ssd");
}

#[test]
fn our_own_labels_win_over_further_ones() {
    let mut facts = facts("n1");
    facts.labels.insert("kubernetes.io/hostname".to_owned(), "other".to_owned());
    facts.rootless = false;
    facts.limits = Limits::Enforced("cgroups v1".to_owned());
    let node = node_json(&facts, at(1));
    assert_eq!(node["metadata"]["labels"]["kubernetes.io/hostname"], "n1");
    assert_eq!(node["metadata"]["labels"]["trainyard.dev/rootless"], "false");
    assert_eq!(node["status"]["conditions"][3]["status"], "True");
    assert_eq!(node["status"]["conditions"][3]["message"], "limits are enforced by cgroups v1");
}
