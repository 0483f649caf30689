//! Admission in tables, with a kubelet's words.

use serde_json::{Value, json};

use super::*;

fn node() -> Node {
    serde_json::from_value(json!({
        "metadata": { "name": "n1", "labels": { "kubernetes.io/os": "linux", "disk": "ssd" } },
        "status": { "allocatable": {
            "cpu": "2", "memory": "4Gi", "ephemeral-storage": "10Gi", "pods": "3",
            "nvidia.com/gpu": "1"
        } },
    }))
    .unwrap()
}

fn pod(requests: &Value) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": "p", "uid": "u-new" },
        "spec": { "nodeName": "n1", "containers": [
            { "name": "c", "resources": { "requests": requests } }
        ] },
    }))
    .unwrap()
}

fn other(uid: &str, requests: &Value, phase: &str) -> Pod {
    let mut other = pod(requests);
    other.metadata.uid = Some(uid.to_owned());
    other.status = Some(serde_json::from_value(json!({ "phase": phase })).unwrap());
    other
}

fn with_port(uid: &str, port: &Value) -> Pod {
    let mut pod = other(uid, &json!({}), "Running");
    let ports = serde_json::from_value(json!([port])).unwrap();
    pod.spec.as_mut().unwrap().containers[0].ports = Some(ports);
    pod
}

fn refused(pod: &Pod, others: &[&Pod]) -> (String, String) {
    let rejection = admit(pod, others, &node()).unwrap_err();
    (rejection.reason, rejection.message)
}

#[test]
fn too_much_of_each_resource() {
    let running = other("u1", &json!({ "cpu": "500m", "memory": "1Gi" }), "Running");
    for (requests, reason, message) in [
        (
            json!({ "cpu": "1600m" }),
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 1600, used: 500, capacity: 2000",
        ),
        (
            json!({ "memory": "4Gi" }),
            "OutOfmemory",
            "Node didn't have enough resource: memory, requested: 4294967296, used: 1073741824, \
             capacity: 4294967296",
        ),
        (
            json!({ "ephemeral-storage": "11Gi" }),
            "OutOfephemeral-storage",
            "Node didn't have enough resource: ephemeral-storage, requested: 11811160064, used: 0, \
             capacity: 10737418240",
        ),
        (
            json!({ "nvidia.com/gpu": "2" }),
            "OutOfnvidia.com/gpu",
            "Node didn't have enough resource: nvidia.com/gpu, requested: 2, used: 0, capacity: 1",
        ),
        (
            json!({ "hugepages-2Mi": "4Mi" }),
            "OutOfhugepages-2Mi",
            "Node didn't have enough resource: hugepages-2Mi, requested: 4194304, used: 0, \
             capacity: 0",
        ),
    ] {
        let answer = refused(&pod(&requests), &[&running]);
        assert_eq!((answer.0.as_str(), answer.1.as_str()), (reason, message));
    }
}

#[test]
fn what_fits_is_taken_to_the_last_bit() {
    let running = other("u1", &json!({ "cpu": "500m", "memory": "1Gi" }), "Running");
    let exact = pod(&json!({ "cpu": "1500m", "memory": "3Gi", "nvidia.com/gpu": "1" }));
    assert_eq!(admit(&exact, &[&running], &node()), Ok(()));
    // A node says nothing about what it does not have: it may belong to the cluster.
    let cluster = pod(&json!({ "example.com/licence": "5" }));
    assert_eq!(admit(&cluster, &[], &node()), Ok(()));
    assert_eq!(admit(&pod(&json!({ "cpu": "0" })), &[], &node()), Ok(()));
}

#[test]
fn the_first_shortage_is_told_and_processors_come_first() {
    let greedy = pod(&json!({ "cpu": "100", "memory": "100Gi", "nvidia.com/gpu": "7" }));
    assert_eq!(refused(&greedy, &[]).0, "OutOfcpu");
}

#[test]
fn ended_pods_and_the_pod_itself_hold_nothing() {
    let all = json!({ "cpu": "2" });
    let done = other("u1", &all, "Succeeded");
    let failed = other("u2", &all, "Failed");
    let itself = other("u-new", &all, "Running");
    assert_eq!(admit(&pod(&all), &[&done, &failed, &itself], &node()), Ok(()));
    let pending = other("u3", &all, "Pending");
    assert_eq!(refused(&pod(&all), &[&pending]).0, "OutOfcpu");
}

#[test]
fn too_many_pods() {
    let others: Vec<Pod> =
        ["a", "b", "c"].iter().map(|uid| other(uid, &json!({}), "Running")).collect();
    let others: Vec<&Pod> = others.iter().collect();
    assert_eq!(admit(&pod(&json!({})), &others[..2], &node()), Ok(()));
    let (reason, message) = refused(&pod(&json!({})), &others);
    assert_eq!(reason, "OutOfpods");
    assert_eq!(
        message,
        "Node didn't have enough resource: pods, requested: 1, used: 3, capacity: 3"
    );
}

#[test]
fn host_ports() {
    let held = with_port("u1", &json!({ "containerPort": 80, "hostPort": 2222 }));
    let local =
        with_port("u2", &json!({ "containerPort": 80, "hostPort": 3333, "hostIP": "127.0.0.1" }));
    for (port, clash) in [
        (json!({ "containerPort": 1, "hostPort": 2222 }), true),
        (json!({ "containerPort": 1, "hostPort": 2222, "hostIP": "10.0.0.1" }), true),
        (json!({ "containerPort": 1, "hostPort": 2222, "protocol": "UDP" }), false),
        (json!({ "containerPort": 2222 }), false),
        (json!({ "containerPort": 1, "hostPort": 0 }), false),
        (json!({ "containerPort": 1, "hostPort": 3333 }), true),
        (json!({ "containerPort": 1, "hostPort": 3333, "hostIP": "127.0.0.1" }), true),
        (json!({ "containerPort": 1, "hostPort": 3333, "hostIP": "127.0.0.2" }), false),
        (json!({ "containerPort": 1, "hostPort": 3333, "hostIP": "" }), true),
    ] {
        let answer = admit(&with_port("u-new", &port), &[&held, &local], &node());
        assert_eq!(answer.is_err(), clash, "{port}");
        if let Err(rejection) = answer {
            assert_eq!(rejection.reason, "NodePorts");
            assert_eq!(
                rejection.message,
                "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports"
            );
        }
    }
}

#[test]
fn ports_of_init_containers_count_only_while_they_stay() {
    let held = with_port("u1", &json!({ "containerPort": 80, "hostPort": 2222 }));
    let mut wanting: Pod = pod(&json!({}));
    let init = json!([{ "name": "i", "ports": [{ "containerPort": 1, "hostPort": 2222 }] }]);
    wanting.spec.as_mut().unwrap().init_containers = Some(serde_json::from_value(init).unwrap());
    assert_eq!(admit(&wanting, &[&held], &node()), Ok(()));
    let spec = wanting.spec.as_mut().unwrap();
    spec.init_containers.as_mut().unwrap()[0].restart_policy = Some("Always".to_owned());
    assert_eq!(refused(&wanting, &[&held]).0, "NodePorts");
}

#[test]
fn labels_names_and_operating_systems() {
    let mut elsewhere = pod(&json!({}));
    elsewhere.spec.as_mut().unwrap().node_selector =
        Some([("disk".to_owned(), "hdd".to_owned())].into());
    assert_eq!(
        refused(&elsewhere, &[]),
        (
            "NodeAffinity".to_owned(),
            "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector"
                .to_owned()
        )
    );
    let mut named = pod(&json!({}));
    named.spec.as_mut().unwrap().node_name = Some("n2".to_owned());
    assert_eq!(
        refused(&named, &[]).1,
        "Predicate NodeName failed: node(s) didn't match the requested node name"
    );
    let mut windows = pod(&json!({}));
    windows.spec.as_mut().unwrap().os =
        Some(serde_json::from_value(json!({ "name": "windows" })).unwrap());
    assert_eq!(
        refused(&windows, &[]),
        (
            "PodOSNotSupported".to_owned(),
            "Failed to admit pod as the OS field doesn't match node OS".to_owned()
        )
    );
    let mut labelled = pod(&json!({}));
    labelled.metadata.labels = Some([("kubernetes.io/os".to_owned(), "windows".to_owned())].into());
    assert_eq!(refused(&labelled, &[]).0, "PodOSSelectorNodeLabelDoesNotMatch");
}

#[test]
fn strict_groups_need_a_node_that_can() {
    let mut strict = pod(&json!({}));
    strict.spec.as_mut().unwrap().security_context =
        Some(serde_json::from_value(json!({ "supplementalGroupsPolicy": "Strict" })).unwrap());
    assert_eq!(
        refused(&strict, &[]).1,
        "SupplementalGroupsPolicy=Strict is not supported in this node"
    );
    let mut able = node();
    able.status.as_mut().unwrap().features =
        Some(serde_json::from_value(json!({ "supplementalGroupsPolicy": true })).unwrap());
    assert_eq!(admit(&strict, &[], &able), Ok(()));
}

#[test]
fn taints() {
    let tainted = |effect: &str| {
        let mut node = node();
        let spec = json!({ "taints": [{ "key": "k", "value": "v", "effect": effect }] });
        node.spec = Some(serde_json::from_value(spec).unwrap());
        node
    };
    let tolerating = |toleration: Value| {
        let mut pod = pod(&json!({}));
        let all = serde_json::from_value(json!([toleration])).unwrap();
        pod.spec.as_mut().unwrap().tolerations = Some(all);
        pod
    };
    assert_eq!(admit(&pod(&json!({})), &[], &tainted("NoSchedule")), Ok(()));
    let rejection = admit(&pod(&json!({})), &[], &tainted("NoExecute")).unwrap_err();
    assert_eq!(
        (rejection.reason.as_str(), rejection.message.as_str()),
        (
            "TaintToleration",
            "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate"
        )
    );
    for (toleration, good) in [
        (json!({ "operator": "Exists" }), true),
        (json!({ "key": "k", "operator": "Exists", "effect": "NoExecute" }), true),
        (json!({ "key": "k", "value": "v" }), true),
        (json!({ "key": "k", "value": "w" }), false),
        (json!({ "key": "k", "value": "v", "effect": "NoSchedule" }), false),
        (json!({ "key": "l", "operator": "Exists" }), false),
        (json!({ "key": "k", "operator": "Gt", "value": "v" }), false),
    ] {
        let answer = admit(&tolerating(toleration.clone()), &[], &tainted("NoExecute"));
        assert_eq!(answer.is_ok(), good, "{toleration}");
    }
}

#[test]
fn a_node_that_says_nothing_takes_nothing() {
    let blank = Node::default();
    assert_eq!(admit(&pod(&json!({})), &[], &blank).unwrap_err().reason, "OutOfpods");
    assert!(admit(&Pod::default(), &[], &node()).is_ok());
}
