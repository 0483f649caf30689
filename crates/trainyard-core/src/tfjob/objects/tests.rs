//! What pods and services look like.

use serde_json::json;
use trainyard_api::TfJobSpec;

use super::*;

fn meta() -> Meta {
    Meta { name: "mnist".into(), namespace: "kubeflow".into(), uid: "u1".into(), ..Meta::default() }
}

fn build(spec: Value, kind: ReplicaType, index: u32) -> (Value, Value) {
    let (meta, config) = (meta(), Config::default());
    let spec = TfJobSpec::parse(spec).unwrap();
    let builder = Builder { meta: &meta, spec: &spec, config: &config };
    let id = ReplicaId { kind, index };
    let pod = builder.pod(id, &JobStatus::default()).unwrap();
    (pod.body, builder.service(id).unwrap().body)
}

fn one(template: &Value) -> (Value, Value) {
    let spec = json!({"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}});
    build(spec, ReplicaType::Worker, 1)
}

#[test]
fn a_pod_is_its_template_and_what_the_contract_adds() {
    let (pod, _) = one(&json!({
        "metadata": {"labels": {"team": "vision", "training.kubeflow.org/job-name": "fake"},
            "annotations": {"a": "b"}, "creationTimestamp": null},
        "spec": {
            "containers": [{"name": "tensorflow", "image": "tf", "unknownToUs": {"x": 1},
                "env": [{"name": "A", "value": "1"}, {"name": "TF_CONFIG", "value": "mine"}]}],
            "schedulerName": "special", "newField": true,
        },
    }));
    assert_eq!(pod["metadata"]["name"], "mnist-worker-1");
    assert_eq!(
        pod["metadata"]["labels"],
        json!({
            "team": "vision",
            "training.kubeflow.org/operator-name": "tfjob-controller",
            "training.kubeflow.org/job-name": "mnist",
            "training.kubeflow.org/replica-type": "worker",
            "training.kubeflow.org/replica-index": "1",
        })
    );
    assert_eq!(pod["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(
        pod["metadata"]["ownerReferences"],
        json!([{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist", "uid": "u1",
            "controller": true, "blockOwnerDeletion": true}])
    );
    let spec = &pod["spec"];
    assert_eq!(spec["newField"], true, "fields newer than us stay");
    assert_eq!(spec["schedulerName"], "special");
    assert_eq!(spec["restartPolicy"], "Never");
    let container = &spec["containers"][0];
    assert_eq!(container["unknownToUs"], json!({"x": 1}));
    assert_eq!(container["terminationMessagePolicy"], "FallbackToLogsOnError");
    assert_eq!(container["ports"], json!([{"name": "tfjob-port", "containerPort": 2222}]));
    assert_eq!(container["env"][0]["name"], "A");
    assert_eq!(container["env"][1]["name"], "TF_CONFIG");
    assert_ne!(container["env"][1]["value"], "mine");
    assert_eq!(container["env"].as_array().unwrap().len(), 2);
}

#[test]
fn other_containers_get_no_cluster() {
    let (pod, _) = one(&json!({"spec": {
        "initContainers": [{"name": "fetch", "image": "i"}],
        "containers": [
            {"name": "sidecar", "image": "i", "terminationMessagePolicy": "File"},
            {"name": "tensorflow", "image": "tf"},
        ],
    }}));
    let spec = &pod["spec"];
    assert_eq!(spec["containers"][0]["env"], Value::Null);
    assert_eq!(spec["containers"][0]["ports"], Value::Null);
    assert_eq!(spec["containers"][0]["terminationMessagePolicy"], "File");
    assert_eq!(spec["initContainers"][0]["env"], Value::Null);
    assert_eq!(spec["containers"][1]["env"][0]["name"], "TF_CONFIG");
}

#[test]
fn restart_policies_of_pods() {
    for (given, expected) in [
        ("Always", "Always"),
        ("OnFailure", "OnFailure"),
        ("Never", "Never"),
        ("ExitCode", "Never"),
    ] {
        let template = json!({"spec": {"containers": [{"name": "tensorflow", "image": "tf"}]}});
        let worker = json!({"restartPolicy": given, "template": template});
        let spec = json!({"tfReplicaSpecs": {"Worker": worker}});
        assert_eq!(
            build(spec.clone(), ReplicaType::Worker, 0).0["spec"]["restartPolicy"],
            expected
        );
        let mut whole = spec;
        whole["runPolicy"] = json!({"restartScope": "Job"});
        assert_eq!(build(whole, ReplicaType::Worker, 0).0["spec"]["restartPolicy"], "Never");
    }
}

#[test]
fn the_master_role() {
    let template = json!({"spec": {"containers": [{"name": "tensorflow", "image": "tf"}]}});
    let role = |spec: &Value, kind, index| {
        build(spec.clone(), kind, index).0["metadata"]["labels"][names::LABEL_ROLE].clone()
    };
    let workers = json!({"tfReplicaSpecs": {"Worker": {"replicas": 2, "template": template}}});
    assert_eq!(role(&workers, ReplicaType::Worker, 0), "master");
    assert_eq!(role(&workers, ReplicaType::Worker, 1), Value::Null);
    let mut chief = workers;
    chief["tfReplicaSpecs"]["Chief"] = json!({"template": template});
    assert_eq!(role(&chief, ReplicaType::Chief, 0), "master");
    assert_eq!(role(&chief, ReplicaType::Worker, 0), Value::Null);
}

#[test]
fn a_service_is_headless_and_finds_pods_that_are_not_ready() {
    let (_, service) =
        one(&json!({"spec": {"containers": [{"name": "tensorflow", "image": "tf"}]}}));
    assert_eq!(
        service["spec"],
        json!({
            "clusterIP": "None",
            "publishNotReadyAddresses": true,
            "selector": {
                "training.kubeflow.org/operator-name": "tfjob-controller",
                "training.kubeflow.org/job-name": "mnist",
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/replica-index": "1",
            },
            "ports": [{"name": "tfjob-port", "port": 2222}],
        })
    );
    assert_eq!(service["metadata"]["name"], "mnist-worker-1");
}

#[test]
fn ports_of_a_service_are_valid_together() {
    let ports = |ports: Value| {
        let container = json!({"name": "tensorflow", "image": "tf", "ports": ports});
        one(&json!({"spec": {"containers": [container]}})).1["spec"]["ports"].clone()
    };
    assert_eq!(
        ports(json!([{"name": "http", "containerPort": 80}, {"containerPort": 81}])),
        json!([{"name": "http", "port": 80}, {"name": "port-81", "port": 81},
            {"name": "tfjob-port", "port": 2222}])
    );
    assert_eq!(
        ports(json!([{"name": "grpc", "containerPort": 2222}])),
        json!([{"name": "tfjob-port", "port": 2222}]),
        "one number cannot have two names"
    );
    assert_eq!(
        ports(json!([{"name": "tfjob-port", "containerPort": 3333, "protocol": "TCP"}])),
        json!([{"name": "tfjob-port", "port": 3333, "protocol": "TCP"}])
    );
    assert_eq!(
        ports(json!([{"name": "u", "containerPort": 53, "protocol": "UDP"}])),
        json!([{"name": "u", "port": 53, "protocol": "UDP"}, {"name": "tfjob-port", "port": 2222}])
    );
}

#[test]
fn no_template_makes_it_panic() {
    for template in [
        json!({"spec": {"containers": [{"name": "tensorflow", "ports": null, "env": null}]}}),
        json!({"spec": {"containers": [{"name": "tensorflow", "ports": 7, "env": "x"}]}}),
        json!({"metadata": [], "spec": {"containers": [{"name": "tensorflow"}, 5, null]}}),
        json!({"metadata": {"labels": 3}, "spec": {"containers": [{"name": "tensorflow"}],
            "initContainers": {}}}),
    ] {
        let _ = one(&template);
    }
}

#[test]
fn a_jobs_words_to_its_node_go_to_its_pods() {
    let key = |name: &str| format!("trainyard.dev/{name}");
    let meta = Meta {
        annotations: [(key("a"), "job".to_owned()), (key("b"), "job".to_owned())].into(),
        ..Meta::default()
    };
    for (given, a) in [(json!({"trainyard.dev/a": "template"}), "template"), (Value::Null, "job")] {
        let containers = json!([{"name": "tensorflow", "image": "tf"}]);
        let template =
            json!({"metadata": {"annotations": given}, "spec": {"containers": containers}});
        let spec = json!({"tfReplicaSpecs": {"Worker": {"template": template}}});
        let spec = TfJobSpec::parse(spec).unwrap();
        let config = Config::default();
        let builder = Builder { meta: &meta, spec: &spec, config: &config };
        let id = ReplicaId { kind: ReplicaType::Worker, index: 0 };
        let pod = builder.pod(id, &JobStatus::default()).unwrap().body;
        assert_eq!(pod["metadata"]["annotations"], json!({key("a"): a, key("b"): "job"}));
    }
}

#[test]
fn pods_stay_on_a_lost_node_as_long_as_the_run_policy_says_unless_their_template_does() {
    let tolerations = |seconds: Value, own: Value| {
        let template = json!({"spec": {"containers": [{"name": "tensorflow", "image": "tf"}],
            "tolerations": own}});
        let spec = json!({
            "runPolicy": {"nodeLossTolerationSeconds": seconds},
            "tfReplicaSpecs": {"Worker": {"template": template}},
        });
        build(spec, ReplicaType::Worker, 0).0["spec"]["tolerations"].clone()
    };
    let ours = |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 30});
    let (not_ready, unreachable) =
        (ours("node.kubernetes.io/not-ready"), ours("node.kubernetes.io/unreachable"));
    assert_eq!(tolerations(json!(null), json!(null)), json!(null), "the cluster's own");
    assert_eq!(tolerations(json!(30), json!(null)), json!([not_ready, unreachable]));
    let gpu = json!({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"});
    assert_eq!(tolerations(json!(30), json!([gpu])), json!([gpu, not_ready, unreachable]));
    let own = json!({"key": "node.kubernetes.io/unreachable", "operator": "Exists",
        "effect": "NoExecute", "tolerationSeconds": 5});
    assert_eq!(tolerations(json!(30), json!([own])), json!([own, not_ready]));
    let all = json!({"operator": "Exists"});
    assert_eq!(tolerations(json!(30), json!([all])), json!([all]));
    let elsewhere = json!({"operator": "Exists", "effect": "NoSchedule"});
    assert_eq!(
        tolerations(json!(30), json!([elsewhere])),
        json!([elsewhere, not_ready, unreachable])
    );
}
