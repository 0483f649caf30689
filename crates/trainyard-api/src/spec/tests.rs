//! Reading and defaulting of specifications, and what is said about those that cannot be used.

use serde_json::json;

use super::*;

fn template() -> Value {
    json!({"spec": {"containers": [{"name": "tensorflow", "image": "x"}]}})
}

fn read(spec: Value) -> TfJobSpec {
    TfJobSpec::parse(spec).unwrap()
}

fn problem(spec: Value) -> String {
    TfJobSpec::parse(spec).unwrap_err().to_string()
}

#[test]
fn what_is_left_out_gets_its_default() {
    let spec = read(json!({"tfReplicaSpecs": {"worker": {"template": template()}}}));
    let worker = &spec.replicas[&ReplicaType::Worker];
    assert_eq!(worker.replicas, 1);
    assert_eq!(worker.restart_policy, RestartPolicy::Never);
    assert!(!worker.template_policy_overridden);
    assert_eq!(spec.run_policy, RunPolicy::default());
    assert_eq!(spec.success_policy, SuccessPolicy::Default);
    assert!(!spec.dynamic_workers);
    assert!(spec.tensorboard.is_none());
    assert_eq!((spec.total(), spec.count(ReplicaType::Ps)), (1, 0));
}

#[test]
fn the_replica_s_restart_policy_wins_over_the_template_s() {
    for (own, in_template, chosen, overridden) in [
        (json!(null), json!("OnFailure"), RestartPolicy::OnFailure, false),
        (json!(""), json!("Always"), RestartPolicy::Always, false),
        (json!("ExitCode"), json!(null), RestartPolicy::ExitCode, false),
        (json!("Never"), json!("Never"), RestartPolicy::Never, false),
        (json!("Never"), json!("OnFailure"), RestartPolicy::Never, true),
    ] {
        let mut template = template();
        template["spec"]["restartPolicy"] = in_template;
        let replica = json!({"restartPolicy": own, "template": template});
        let spec = read(json!({"tfReplicaSpecs": {"PS": replica}}));
        let server = &spec.replicas[&ReplicaType::Ps];
        assert_eq!(
            (server.restart_policy, server.template_policy_overridden),
            (chosen, overridden)
        );
    }
}

#[test]
fn run_policy_fields_are_read_at_both_places() {
    let replicas = || json!({"Worker": {"template": template()}});
    let spec = read(json!({
        "tfReplicaSpecs": replicas(), "cleanPodPolicy": "None", "backoffLimit": 3,
        "ttlSecondsAfterFinished": 7, "activeDeadlineSeconds": 9,
        "runPolicy": {"backoffLimit": 5, "cleanPodPolicy": null, "startTimeoutSeconds": 11,
            "nodeLossTolerationSeconds": 13},
    }));
    assert_eq!(spec.run_policy.clean_pod_policy, Some(CleanPodPolicy::None));
    assert_eq!(spec.run_policy.backoff_limit, Some(5));
    assert_eq!(spec.run_policy.ttl_seconds, Some(7));
    assert_eq!(spec.run_policy.deadline_seconds, Some(9));
    assert_eq!(spec.run_policy.start_timeout_seconds, Some(11));
    assert_eq!(spec.run_policy.node_loss_toleration_seconds, Some(13));
}

#[test]
fn another_manager_is_told_from_ours() {
    for (manager, elsewhere) in [
        (json!(null), false),
        (json!(names::MANAGED_BY_US), false),
        (json!(names::MANAGED_BY_MULTIKUEUE), true),
    ] {
        let spec = read(json!({
            "tfReplicaSpecs": {"Worker": {"template": template()}},
            "runPolicy": {"managedBy": manager},
        }));
        assert_eq!(spec.run_policy.is_managed_elsewhere(), elsewhere);
    }
}

#[test]
fn the_deciding_type_is_the_first_that_has_replicas() {
    let with = |types: &[(&str, i64)]| {
        let mut replicas = json!({});
        for (kind, count) in types {
            replicas[kind] = json!({"replicas": count, "template": template()});
        }
        read(json!({ "tfReplicaSpecs": replicas })).deciding_type()
    };
    assert_eq!(with(&[("Chief", 1), ("Worker", 2)]), Some(ReplicaType::Chief));
    assert_eq!(with(&[("MASTER", 1), ("Worker", 2)]), Some(ReplicaType::Master));
    assert_eq!(with(&[("Chief", 0), ("Worker", 2)]), Some(ReplicaType::Worker));
    assert_eq!(with(&[("PS", 2), ("Evaluator", 1)]), None);
}

#[test]
fn what_cannot_be_used_is_named() {
    let replicas = || json!({"Worker": {"template": template()}});
    for (spec, wanted) in [
        (json!(null), "spec: is missing"),
        (json!({}), "spec.tfReplicaSpecs: must name at least one replica type"),
        (json!({"tfReplicaSpecs": {}}), "spec.tfReplicaSpecs: must name at least one"),
        (
            json!({"tfReplicaSpecs": {"Gardener": {}}}),
            "spec.tfReplicaSpecs[Gardener]: is not a replica type",
        ),
        (json!({"tfReplicaSpecs": {"PS": 1}}), "spec.tfReplicaSpecs[PS]: must be an object"),
        (
            json!({"tfReplicaSpecs": {"PS": {}}}),
            "spec.tfReplicaSpecs[PS].template.spec.containers: must have at least one container",
        ),
        (
            json!({"tfReplicaSpecs": {"PS": {"replicas": -1, "template": template()}}}),
            "spec.tfReplicaSpecs[PS].replicas: -1 must be between 0 and 10000",
        ),
        (
            json!({"tfReplicaSpecs": {"PS": {"replicas": 2_147_483_648_i64}}}),
            "spec.tfReplicaSpecs[PS].replicas: 2147483648 must be between",
        ),
        (
            json!({"tfReplicaSpecs": {"Chief": {"replicas": 2}}}),
            "spec.tfReplicaSpecs[Chief].replicas: 2 is too many; a job has one Chief",
        ),
        (
            json!({"tfReplicaSpecs": {"PS": {"restartPolicy": "No", "template": template()}}}),
            "spec.tfReplicaSpecs[PS].restartPolicy: \"No\" is not known",
        ),
        (
            json!({"tfReplicaSpecs": {
                "PS": {"template": template()}, "ps": {"template": template()},
            }}),
            "spec.tfReplicaSpecs[ps]: names PS a second time",
        ),
        (
            json!({"tfReplicaSpecs": {
                "chief": {"template": template()}, "Master": {"template": template()},
            }}),
            "spec.tfReplicaSpecs: must not have both Chief and Master",
        ),
        (
            json!({"tfReplicaSpecs": replicas(), "successPolicy": "Any"}),
            "spec.successPolicy: \"Any\" is not known",
        ),
        (
            json!({"tfReplicaSpecs": replicas(), "backoffLimit": -1}),
            "spec.backoffLimit: -1 is negative",
        ),
        (
            json!({"tfReplicaSpecs": replicas(), "runPolicy": {"cleanPodPolicy": "Some"}}),
            "spec.runPolicy.cleanPodPolicy: \"Some\" is not known",
        ),
        (
            json!({"tfReplicaSpecs": replicas(), "runPolicy": {"restartScope": "Pod"}}),
            "spec.runPolicy.restartScope: \"Pod\" is not known",
        ),
        (
            json!({"tfReplicaSpecs": replicas(), "runPolicy": {"suspend": 1}}),
            "spec.runPolicy.suspend: 1 must be true or false",
        ),
        (
            json!({"tfReplicaSpecs": replicas(), "tensorBoard": {"logDir": ""}}),
            "spec.tensorBoard.logDir: must name a directory",
        ),
    ] {
        let problem = problem(spec);
        assert!(problem.starts_with(wanted), "{problem}");
    }
}
