//! The worked cases of `TF_CONFIG`, byte for byte.

use serde_json::{Value, json};
use trainyard_api::{ReplicaId, ReplicaType, TfJobSpec};

use super::*;

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "tensorflow", "image": "i"}]}})
}

fn spec(replicas: &[(&str, u32)], dynamic: bool) -> TfJobSpec {
    let replicas: serde_json::Map<String, Value> = replicas
        .iter()
        .map(|(kind, count)| {
            ((*kind).to_owned(), json!({"replicas": count, "template": template()}))
        })
        .collect();
    TfJobSpec::parse(json!({"tfReplicaSpecs": replicas, "enableDynamicWorker": dynamic})).unwrap()
}

fn text(
    job: &str,
    ns: &str,
    spec: &TfJobSpec,
    config: &Config,
    kind: ReplicaType,
    index: u32,
) -> String {
    Cluster { job, namespace: ns, spec, config }
        .tf_config(ReplicaId { kind, index })
        .unwrap_or_else(|| "none".to_owned())
}

#[test]
fn one_replica_gets_none() {
    let config = Config::default();
    for (key, kind) in [
        ("Worker", ReplicaType::Worker),
        ("Chief", ReplicaType::Chief),
        ("PS", ReplicaType::Ps),
        ("MASTER", ReplicaType::Master),
    ] {
        assert_eq!(text("j", "ns", &spec(&[(key, 1)], false), &config, kind, 0), "none");
        assert_eq!(text("j", "ns", &spec(&[(key, 1)], true), &config, kind, 0), "none");
    }
}

#[test]
fn dense_with_cluster_domain() {
    let config = Config { cluster_domain: Some("tf.training.org".into()), ..Config::default() };
    let spec = spec(&[("Worker", 1), ("PS", 1)], false);
    assert_eq!(
        text("test-tfjob", "ns2", &spec, &config, ReplicaType::Worker, 0),
        r#"{"cluster":{"ps":["test-tfjob-ps-0.ns2.svc.tf.training.org:2222"],"worker":["test-tfjob-worker-0.ns2.svc.tf.training.org:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}"#
    );
}

#[test]
fn dense_names_every_replica_of_the_cluster() {
    let spec = spec(&[("Worker", 2), ("PS", 1)], false);
    assert_eq!(
        text("j", "ns", &spec, &Config::default(), ReplicaType::Worker, 1),
        r#"{"cluster":{"ps":["j-ps-0.ns.svc:2222"],"worker":["j-worker-0.ns.svc:2222","j-worker-1.ns.svc:2222"]},"task":{"type":"worker","index":1},"environment":"cloud"}"#
    );
}

#[test]
fn the_evaluator_is_no_member_of_the_cluster() {
    let spec = spec(&[("Worker", 1), ("PS", 1), ("Evaluator", 1)], false);
    assert_eq!(
        text("test-tfjob", "ns3", &spec, &Config::default(), ReplicaType::Worker, 0),
        r#"{"cluster":{"ps":["test-tfjob-ps-0.ns3.svc:2222"],"worker":["test-tfjob-worker-0.ns3.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}"#
    );
    assert_eq!(
        text("test-tfjob", "ns3", &spec, &Config::default(), ReplicaType::Evaluator, 0),
        r#"{"cluster":{"evaluator":["test-tfjob-evaluator-0.ns3.svc:2222"],"ps":["test-tfjob-ps-0.ns3.svc:2222"],"worker":["test-tfjob-worker-0.ns3.svc:2222"]},"task":{"type":"evaluator","index":0},"environment":"cloud"}"#
    );
}

#[test]
fn the_old_bytes_with_the_evaluator_come_back_by_flag() {
    let spec = spec(&[("Worker", 1), ("PS", 1), ("Evaluator", 1)], false);
    let config = Config { evaluator_in_cluster: true, ..Config::default() };
    assert_eq!(
        text("test-tfjob", "ns3", &spec, &config, ReplicaType::Worker, 0),
        r#"{"cluster":{"evaluator":["test-tfjob-evaluator-0.ns3.svc:2222"],"ps":["test-tfjob-ps-0.ns3.svc:2222"],"worker":["test-tfjob-worker-0.ns3.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}"#
    );
}

#[test]
fn sparse_forms() {
    let config = Config::default();
    let both = spec(&[("Worker", 2), ("PS", 2)], true);
    assert_eq!(
        text("j", "ns", &both, &config, ReplicaType::Worker, 1),
        r#"{"cluster":{"worker":{"1":"j-worker-1.ns.svc:2222"},"ps":["j-ps-0.ns.svc:2222","j-ps-1.ns.svc:2222"]},"task":{"type":"worker","index":1}}"#
    );
    assert_eq!(
        text("j", "ns", &both, &config, ReplicaType::Ps, 0),
        r#"{"cluster":{"worker":{},"ps":["j-ps-0.ns.svc:2222"]},"task":{"type":"ps","index":0}}"#
    );
    let without_ps = spec(&[("Worker", 2)], true);
    assert_eq!(
        text("j", "ns", &without_ps, &config, ReplicaType::Worker, 0),
        r#"{"cluster":{"worker":{"0":"j-worker-0.ns.svc:2222"},"ps":[]},"task":{"type":"worker","index":0}}"#
    );
    let with_chief = spec(&[("Chief", 1), ("Worker", 1)], true);
    assert_eq!(
        text("j", "ns", &with_chief, &config, ReplicaType::Chief, 0),
        r#"{"cluster":{"worker":{},"ps":[]},"task":{"type":"chief","index":0}}"#
    );
}

#[test]
fn a_type_with_no_replica_has_an_empty_list() {
    let spec = spec(&[("Worker", 2), ("PS", 0)], false);
    assert_eq!(
        text("j", "ns", &spec, &Config::default(), ReplicaType::Worker, 0),
        r#"{"cluster":{"ps":[],"worker":["j-worker-0.ns.svc:2222","j-worker-1.ns.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}"#
    );
}

#[test]
fn the_port_is_the_named_one_of_the_training_container() {
    let ports = |ports: Value| {
        json!({"spec": {"containers": [
            {"name": "sidecar", "ports": [{"name": "tfjob-port", "containerPort": 1}]},
            {"name": "tensorflow", "ports": ports},
        ]}})
    };
    assert_eq!(training_port(&ports(json!([{"name": "tfjob-port", "containerPort": 3333}]))), 3333);
    assert_eq!(training_port(&ports(json!([{"name": "http", "containerPort": 80}]))), 2222);
    assert_eq!(training_port(&ports(json!([]))), 2222);
    assert_eq!(training_port(&json!({})), 2222);
}

#[test]
fn seed_example_with_a_master() {
    let spec = spec(&[("MASTER", 1), ("WORKER", 2), ("ps", 1)], false);
    assert_eq!(
        text("distributed-mnist", "default", &spec, &Config::default(), ReplicaType::Worker, 0),
        r#"{"cluster":{"master":["distributed-mnist-master-0.default.svc:2222"],"ps":["distributed-mnist-ps-0.default.svc:2222"],"worker":["distributed-mnist-worker-0.default.svc:2222","distributed-mnist-worker-1.default.svc:2222"]},"task":{"type":"worker","index":0},"environment":"cloud"}"#
    );
}
