//! Golden conversions: the manifests people have, and what becomes of them.

use super::*;

fn container() -> Value {
    json!({"name": "tensorflow", "image": "example/mnist:1"})
}

fn template() -> Value {
    json!({"spec": {"containers": [container()], "restartPolicy": "OnFailure"}})
}

fn lifted_template() -> Value {
    json!({"spec": {"containers": [container()]}})
}

fn manifest(version: &str, spec: Value) -> Value {
    let mut job = json!({
        "apiVersion": format!("kubeflow.org/{version}"), "kind": "TFJob",
        "metadata": {"name": "mnist"},
    });
    job["spec"] = spec;
    job
}

/// Converts, and checks what holds for every conversion.
fn converted(document: Value) -> Value {
    let result = convert(document).unwrap();
    assert_eq!(convert(result.clone()).unwrap(), result, "a second conversion changes nothing");
    validate(&result, None).unwrap();
    result
}

fn spec_of(document: Value) -> Value {
    let result = converted(document);
    assert_eq!(result["apiVersion"], "kubeflow.org/v1");
    assert_eq!(result["kind"], "TFJob");
    result["spec"].clone()
}

fn problem(document: Value) -> String {
    convert(document).unwrap_err().to_string()
}

#[test]
fn a_v1beta1_job_with_a_master_in_capitals() {
    let container = json!({
        "image": "<DOCKER_USERNAME>/tf-mnist:gpu", "name": "tensorflow",
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    });
    let job = json!({
        "apiVersion": "kubeflow.org/v1beta1", "kind": "TFJob",
        "metadata": {"name": "module6-ex1-gpu"},
        "spec": {"tfReplicaSpecs": {"MASTER": {"replicas": 1, "template": {"spec": {
            "containers": [container], "restartPolicy": "OnFailure",
        }}}}},
    });
    let wanted = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
        "metadata": {"name": "module6-ex1-gpu"},
        "spec": {"tfReplicaSpecs": {"Master": {
            "replicas": 1, "restartPolicy": "OnFailure",
            "template": {"spec": {"containers": [container]}},
        }}},
    });
    let result = converted(job);
    assert_eq!(result, wanted);
    assert!(result.to_string().starts_with(r#"{"apiVersion":"kubeflow.org/v1","kind":"TFJob","m"#));
}

#[test]
fn a_v1_job_whose_templates_hold_policies_and_null_times() {
    let spec = json!({"tfReplicaSpecs": {
        "PS": {"replicas": 1, "template": {
            "metadata": {"creationTimestamp": null}, "spec": template()["spec"],
        }},
        "Worker": {"replicas": 1, "restartPolicy": "ExitCode", "template": template()},
    }});
    assert_eq!(
        spec_of(manifest("v1", spec)),
        json!({"tfReplicaSpecs": {
            "PS": {"replicas": 1, "restartPolicy": "OnFailure", "template": {
                "metadata": {"creationTimestamp": null}, "spec": {"containers": [container()]},
            }},
            "Worker": {"replicas": 1, "restartPolicy": "ExitCode", "template": lifted_template()},
        }})
    );
}

#[test]
fn run_policy_fields_at_the_old_place_are_moved() {
    for version in ["v1", "v1beta2", "v1beta1", "v1alpha2"] {
        let spec = json!({
            "cleanPodPolicy": "None", "backoffLimit": 3, "activeDeadlineSeconds": 60,
            "ttlSecondsAfterFinished": 100, "runPolicy": {"backoffLimit": 5},
            "tfReplicaSpecs": {"worker": {"template": lifted_template()}},
        });
        assert_eq!(
            spec_of(manifest(version, spec)),
            json!({
                "runPolicy": {
                    "cleanPodPolicy": "None", "backoffLimit": 5, "activeDeadlineSeconds": 60,
                    "ttlSecondsAfterFinished": 100,
                },
                "tfReplicaSpecs": {"Worker": {"template": lifted_template()}},
            })
        );
    }
}

#[test]
fn a_generated_name_and_a_clean_v1_job_stay_as_they_are() {
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
        "metadata": {"generateName": "tfjob", "namespace": "kubeflow"},
        "spec": {"tfReplicaSpecs": {
            "PS": {"replicas": 1, "restartPolicy": "OnFailure", "template": lifted_template()},
            "Worker": {"replicas": 3, "restartPolicy": "OnFailure", "template": lifted_template()},
        }},
    });
    assert_eq!(converted(job.clone()), job);
}

#[test]
fn a_v1alpha1_list_becomes_a_map() {
    let job = json!({
        "apiVersion": "kubeflow.org/v1alpha1", "kind": "TfJob", "metadata": {"name": "mnist"},
        "spec": {
            "runtimeId": "76no", "tfImage": "example/tf:1", "schedulerName": "kube-batch",
            "cleanupPodPolicy": "Running",
            "tensorboard": {
                "logDir": "/tmp/logs", "serviceType": "LoadBalancer",
                "volumes": [{"name": "logs", "emptyDir": {}}],
                "volumeMounts": [{"name": "logs", "mountPath": "/tmp/logs"}],
            },
            "terminationPolicy": {"chief": {"replicaName": "MASTER", "replicaIndex": 0}},
            "replicaSpecs": [
                {"tfReplicaType": "MASTER", "replicas": 1, "tfPort": 2222, "template": template()},
                {"tfReplicaType": "WORKER", "replicas": 2, "tfPort": 3333, "template": template()},
            ],
        },
        "status": {"phase": "Done", "state": "Succeeded"},
    });
    let pod = |container: Value| json!({"spec": {"containers": [container], "schedulerName": "kube-batch"}});
    let mut worker = container();
    worker["ports"] = json!([{"containerPort": 3333, "name": "tfjob-port"}]);
    assert_eq!(
        converted(job),
        json!({
            "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "mnist"},
            "spec": {
                "runPolicy": {"cleanPodPolicy": "Running"},
                "tensorBoard": {
                    "image": "example/tf:1", "logDir": "/tmp/logs", "serviceType": "LoadBalancer",
                    "volumes": [{"name": "logs", "emptyDir": {}}],
                    "volumeMounts": [{"name": "logs", "mountPath": "/tmp/logs"}],
                },
                "tfReplicaSpecs": {
                    "Master": {
                        "replicas": 1, "restartPolicy": "OnFailure", "template": pod(container()),
                    },
                    "Worker": {
                        "replicas": 2, "restartPolicy": "OnFailure", "template": pod(worker),
                    },
                },
            },
        })
    );
}

#[test]
fn the_field_table_s_spelling_and_defaults_are_taken() {
    for (version, list) in
        [("v1beta1", "TFReplicaSpec"), ("v1alpha1", "tfReplicaSpecs"), ("v1alpha1", "replicaSpecs")]
    {
        let entries = json!([
            {"Template": template()},
            {"TfReplicaType": "PS", "Replicas": 2, "Template": template()},
        ]);
        assert_eq!(
            spec_of(manifest(version, json!({ list: entries }))),
            json!({"tfReplicaSpecs": {
                "Master": {"restartPolicy": "OnFailure", "template": lifted_template()},
                "PS": {
                    "replicas": 2, "restartPolicy": "OnFailure", "template": lifted_template(),
                },
            }})
        );
    }
}

#[test]
fn a_parameter_server_without_template_runs_the_standard_server() {
    for (image, wanted) in
        [(json!(null), "tensorflow/tensorflow:1.3.0"), (json!("example/tf:1"), "example/tf:1")]
    {
        let spec = spec_of(manifest(
            "v1alpha1",
            json!({"tfImage": image, "replicaSpecs": [
                {"template": template()}, {"tfReplicaType": "PS", "replicas": 1},
            ]}),
        ));
        let server = &spec["tfReplicaSpecs"]["PS"];
        assert_eq!(server["restartPolicy"], "OnFailure");
        let container = &server["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], wanted);
        assert_eq!(container["command"][1], "-c");
        assert!(container["command"][2].as_str().unwrap().contains("tf.train.Server"));
    }
    let spec = json!({"replicaSpecs": [{"tfReplicaType": "WORKER"}]});
    assert_eq!(
        problem(manifest("v1alpha1", spec)),
        "spec.replicaSpecs[0].template: is missing; give Worker a pod template with a container \
         named tensorflow"
    );
}

fn with_chief(types: &[&str], chief: &str, index: i64) -> Value {
    let entries: Vec<_> = types
        .iter()
        .map(|kind| json!({"tfReplicaType": kind, "replicas": 1, "template": template()}))
        .collect();
    manifest(
        "v1alpha1",
        json!({
            "replicaSpecs": entries,
            "terminationPolicy": {"chief": {"replicaName": chief, "replicaIndex": index}},
        }),
    )
}

#[test]
fn the_deciding_replica_is_kept_or_refused() {
    converted(with_chief(&["MASTER", "WORKER"], "MASTER", 0));
    let spec = spec_of(with_chief(&["WORKER", "PS"], "WORKER", 0));
    assert!(spec.get("terminationPolicy").is_none());
    for (types, chief, index, part) in [
        (&["MASTER", "WORKER"][..], "WORKER", 0, "WORKER 0 cannot be said in v1: the Master"),
        (&["WORKER", "PS"], "WORKER", 1, "WORKER 1 cannot be said in v1: worker 0 decides"),
        (&["WORKER", "PS"], "PS", 0, "PS 0 cannot be said in v1"),
        (&["WORKER", "PS"], "MASTER", 0, "MASTER 0 is no replica of this job"),
        (&["WORKER"], "GARDENER", 0, "GARDENER 0 is no replica of this job"),
    ] {
        let problem = problem(with_chief(types, chief, index));
        assert!(problem.starts_with("spec.terminationPolicy.chief: "), "{problem}");
        assert!(problem.contains(part), "{problem}");
    }
}

#[test]
fn ports_are_named_and_contradictions_are_errors() {
    let with = |port: Value, ports: Value| {
        let mut template = template();
        template["spec"]["containers"][0]["ports"] = ports;
        manifest("v1alpha1", json!({"replicaSpecs": [{"tfPort": port, "template": template}]}))
    };
    let pointer = "/tfReplicaSpecs/Master/template/spec/containers/0/ports";
    for (port, given, wanted) in [
        (json!(null), json!([{"containerPort": 80}]), json!([{"containerPort": 80}])),
        (
            json!(80),
            json!([{"containerPort": 80}]),
            json!([{"containerPort": 80, "name": "tfjob-port"}]),
        ),
        (
            json!(81),
            json!([{"containerPort": 80}]),
            json!([{"containerPort": 80}, {"containerPort": 81, "name": "tfjob-port"}]),
        ),
        (
            json!(81),
            json!([{"containerPort": 81, "name": "tfjob-port"}]),
            json!([{"containerPort": 81, "name": "tfjob-port"}]),
        ),
    ] {
        assert_eq!(spec_of(with(port, given)).pointer(pointer), Some(&wanted));
    }
    for (port, given, part) in [
        (json!(81), json!([{"containerPort": 80, "name": "tfjob-port"}]), "make them equal"),
        (json!(80), json!([{"containerPort": 80, "name": "web"}]), "name that port tfjob-port"),
        (json!(0), json!([]), "must be a port number"),
        (json!("80"), json!([]), "must be a port number"),
    ] {
        let problem = problem(with(port, given));
        assert!(problem.starts_with("spec.replicaSpecs[0].tfPort: "), "{problem}");
        assert!(problem.contains(part), "{problem}");
    }
}

#[test]
fn fractions_become_text() {
    let mut replica = json!({"template": lifted_template()});
    replica["template"]["spec"]["containers"][0]["resources"] =
        json!({"limits": {"cpu": 0.5, "nvidia.com/gpu": 1}, "requests": {"cpu": 0.25}});
    let spec = spec_of(manifest("v1beta2", json!({"tfReplicaSpecs": {"Worker": replica}})));
    assert_eq!(
        spec["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "0.5", "nvidia.com/gpu": 1}, "requests": {"cpu": "0.25"}})
    );
}

#[test]
fn lists_are_converted_and_other_documents_are_not_touched() {
    let old = manifest("v1alpha2", json!({"tfReplicaSpecs": {"ps": {"template": template()}}}));
    let other = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"spec": null}});
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [old, other]});
    let result = convert(list).unwrap();
    assert_eq!(result["items"][0]["apiVersion"], "kubeflow.org/v1");
    assert_eq!(result["items"][1], other);
    let jobs = json!({"apiVersion": "kubeflow.org/v1beta1", "kind": "TFJobList", "items": [old]});
    assert_eq!(convert(jobs).unwrap()["apiVersion"], "kubeflow.org/v1");
    let bad = json!({"apiVersion": "v1", "kind": "List", "items": [
        other, manifest("v1alpha1", json!({})),
    ]});
    assert!(problem(bad).starts_with("items[1].spec.tfReplicaSpecs: is missing"));
    let invalid = json!({"apiVersion": "v1", "kind": "List", "items": [
        manifest("v1", json!({"tfReplicaSpecs": {"PS": {}}})),
    ]});
    let problem = problem(invalid);
    assert!(problem.contains("items[0].spec.tfReplicaSpecs[PS].template"), "{problem}");
    for document in [
        json!(null),
        json!([1, {"kind": "TFJob"}]),
        json!({"kind": "TFJob"}),
        json!({"apiVersion": "example.com/v1", "kind": "TFJob", "spec": {"replicaSpecs": []}}),
        json!({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {}}),
        json!({"apiVersion": "v1", "kind": "List", "items": 7}),
    ] {
        assert_eq!(convert(document.clone()).unwrap(), document);
    }
}

#[test]
fn what_cannot_be_converted_is_named() {
    let worker = || json!({"template": lifted_template()});
    for (version, spec, wanted) in [
        ("v7", json!({}), "apiVersion: \"kubeflow.org/v7\" is not known"),
        ("v1", json!(null), "spec: must be an object"),
        ("v1", json!({}), "spec.tfReplicaSpecs: is missing"),
        ("v1", json!({"tfReplicaSpecs": "x"}), "spec.tfReplicaSpecs: \"x\" must map"),
        (
            "v1",
            json!({"tfReplicaSpecs": {"Gardener": worker()}}),
            "spec.tfReplicaSpecs[Gardener]: is not a replica type",
        ),
        (
            "v1beta1",
            json!({"tfReplicaSpecs": {"WORKER": worker(), "Worker": worker()}}),
            "spec.tfReplicaSpecs[Worker]: names Worker a second time",
        ),
        (
            "v1alpha1",
            json!({"replicaSpecs": [worker()], "tfReplicaSpecs": {"Worker": worker()}}),
            "spec.tfReplicaSpecs: means the same as spec.replicaSpecs",
        ),
        (
            "v1alpha1",
            json!({"replicaSpecs": [worker(), worker()]}),
            "spec.replicaSpecs[1].tfReplicaType: names Master a second time",
        ),
        (
            "v1alpha1",
            json!({"replicaSpecs": [{"tfReplicaType": "GARDENER"}]}),
            "spec.replicaSpecs[0].tfReplicaType: \"GARDENER\" is not a replica type",
        ),
        ("v1alpha1", json!({"replicaSpecs": [7]}), "spec.replicaSpecs[0]: must be an object"),
        (
            "v1",
            json!({"tfReplicaSpecs": {"Worker": worker()}, "backoffLimit": 1, "runPolicy": 7}),
            "spec.runPolicy: 7 must be an object",
        ),
        (
            "v1",
            json!({"tfReplicaSpecs": {"Worker": worker()}, "backoffLimit": -1}),
            "the converted job is not valid: spec.runPolicy.backoffLimit: Invalid value: -1",
        ),
        (
            "v1",
            json!({"tfReplicaSpecs": {"Worker": worker()}, "tensorboard": {}, "tensorBoard": {}}),
            "spec.tensorboard: means the same as spec.tensorBoard",
        ),
        (
            "v1alpha1",
            json!({"replicaSpecs": [worker()], "tfImage": 7}),
            "spec.tfImage: 7 must be a string",
        ),
    ] {
        let problem = problem(manifest(version, spec));
        assert!(problem.starts_with(wanted), "{problem}");
    }
}

/// Every case that is accepted under any version can be converted, and stays as it is afterwards.
#[test]
fn every_accepted_job_can_be_converted() {
    for case in crate::cases::validation_cases() {
        if case.refused.is_none() {
            let first = convert(case.object.clone());
            let first = first.unwrap_or_else(|error| panic!("{}: {error}", case.name));
            assert_eq!(convert(first.clone()).unwrap(), first, "{}", case.name);
        }
    }
}
