//! From submission to success, and the traces of conditions on the way.

use serde_json::{Value, json};

use crate::{
    child::Child,
    plan::{Mark, Write},
    tfjob::world::{World, template},
};

#[test]
fn the_normal_path() {
    let mut w = World::with(&[("Worker", 2, "Never"), ("PS", 1, "Never")]);
    w.settle();
    assert_eq!(w.pod_names(), ["j-ps-0", "j-worker-0", "j-worker-1"]);
    assert_eq!(w.services.len(), 3);
    assert_eq!(w.conditions(), ["Created T"]);
    assert_eq!(w.typed().conditions[0].message, "TFJob j is created.");
    w.start("worker-0");
    w.start("ps-0");
    w.settle();
    assert_eq!(w.conditions(), ["Created T"], "one pod has not started");
    w.start("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    assert_eq!(w.typed().conditions[1].message, "TFJob j is running.");
    w.exit("worker-0", 0);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running F", "Succeeded T"]);
    assert_eq!(w.typed().conditions[2].message, "TFJob ns/j successfully completed.");
    assert_eq!(w.status_writes, 3, "created, running, succeeded");
    assert_eq!(w.marks, [Mark::Created, Mark::Running, Mark::Succeeded]);
    w.finish_deletions();
    w.settle();
    assert_eq!(w.pod_names(), ["j-worker-0"], "what ran is stopped, what ended is kept");
    assert_eq!(w.services.len(), 0);
    let counts = &w.status["replicaStatuses"];
    assert_eq!(counts["Worker"]["succeeded"], 1);
    assert_eq!(counts["Worker"]["active"], Value::Null);
    assert!(w.typed().completion_time.is_some());
}

#[test]
fn services_come_before_pods_and_evidence_before_both() {
    let w = World::with(&[("Worker", 2, "Never")]);
    let plan = w.plan();
    let kinds: Vec<Vec<&str>> = plan
        .stages
        .iter()
        .map(|stage| {
            let kind = |write: &Write| match write {
                Write::PatchStatus { .. } => "status",
                Write::Create(Child::Service, _) => "service",
                Write::Create(Child::Pod, _) => "pod",
                _ => "other",
            };
            stage.writes.iter().map(kind).collect()
        })
        .collect();
    assert_eq!(kinds, [vec!["status", "service", "service"], vec!["pod", "pod"]]);
}

#[test]
fn a_very_fast_job_never_runs() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.settle();
    w.start("worker-0");
    w.exit("worker-0", 0);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Succeeded T"]);
}

#[test]
fn a_finished_job_rests() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.settle();
    w.start_all();
    w.settle();
    w.exit("worker-0", 0);
    w.settle();
    let plan = w.plan();
    assert!(plan.is_idle() && plan.requeue_at.is_none() && plan.notices.is_empty());
    w.pods.clear();
    assert!(w.plan().is_idle(), "nothing is created for an ended job");
}

/// Replicas, who has ended well, and whether the job has succeeded then.
type Decision<'a> = (&'a [(&'a str, u32)], &'a str, &'a [&'a str], bool);

#[test]
fn who_decides_success() {
    let cases: [Decision<'_>; 12] = [
        (&[("Chief", 1), ("Worker", 2)], "", &["chief-0"], true),
        (&[("Chief", 1), ("Worker", 2)], "", &["worker-0", "worker-1"], false),
        (&[("Master", 1), ("Worker", 1)], "", &["master-0"], true),
        (&[("Chief", 1), ("Worker", 2)], "AllWorkers", &["chief-0"], true),
        (&[("Worker", 2), ("PS", 1)], "", &["worker-0"], true),
        (&[("Worker", 2), ("PS", 1)], "", &["worker-1"], false),
        (&[("Worker", 2)], "AllWorkers", &["worker-0"], false),
        (&[("Worker", 2)], "AllWorkers", &["worker-0", "worker-1"], true),
        (&[("Worker", 1), ("PS", 1)], "", &["ps-0"], false),
        (&[("Worker", 1), ("Evaluator", 1)], "", &["evaluator-0"], false),
        (&[("Chief", 0), ("Worker", 1)], "", &["worker-0"], true),
        (&[("PS", 2)], "", &["ps-0", "ps-1"], true),
    ];
    for (replicas, policy, done, expected) in cases {
        let never: Vec<_> = replicas.iter().map(|(kind, n)| (*kind, *n, "Never")).collect();
        let mut w = World::with(&never);
        w.spec["successPolicy"] = policy.into();
        w.settle();
        w.start_all();
        w.settle();
        for replica in done {
            w.exit(replica, 0);
        }
        w.settle();
        let succeeded = w.conditions().contains(&"Succeeded T".to_owned());
        assert_eq!(succeeded, expected, "{replicas:?} {policy} {done:?}");
    }
}

#[test]
fn success_and_failure_in_one_pass_is_success_alone() {
    let mut w = World::with(&[("Chief", 1, "Never"), ("PS", 1, "Never")]);
    w.settle();
    w.start_all();
    w.settle();
    w.exit("chief-0", 0);
    w.exit("ps-0", 1);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running F", "Succeeded T"]);
    assert_eq!(w.marks.iter().filter(|m| **m == Mark::Failed).count(), 0);
}

#[test]
fn a_job_without_any_replica_waits() {
    let mut w = World::with(&[("Worker", 0, "Never")]);
    w.settle();
    assert_eq!(w.conditions(), ["Created T"]);
    assert!(w.pods.is_empty());
}

#[test]
fn events_as_users_know_them() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.settle();
    let told: Vec<(String, String)> =
        w.events.iter().map(|e| (e.reason.to_string(), e.message.clone())).collect();
    let expected = [
        ("SuccessfulCreateService", "Created service: j-worker-0"),
        ("SuccessfulCreatePod", "Created pod: j-worker-0"),
    ];
    assert_eq!(told, expected.map(|(r, m)| (r.to_owned(), m.to_owned())));
}

#[test]
fn many_creations_are_told_in_one_event() {
    let mut w = World::with(&[("Worker", 11, "Never")]);
    w.settle();
    let pods: Vec<&str> = w
        .events
        .iter()
        .filter(|e| e.reason == "SuccessfulCreatePod")
        .map(|e| e.message.as_str())
        .collect();
    assert_eq!(pods, ["Created pod: j-worker-0 .. j-worker-10 (11 in all)"]);
}

#[test]
fn a_policy_in_the_template_counts_and_a_different_one_is_told() {
    let mut w =
        World::new(json!({"tfReplicaSpecs": {"MASTER": {"replicas": 1, "template": template()}}}));
    w.spec["tfReplicaSpecs"]["MASTER"]["template"]["spec"]["restartPolicy"] = "OnFailure".into();
    w.settle();
    assert_eq!(w.pod("master-0")["spec"]["restartPolicy"], "OnFailure");
    assert!(!w.reasons().contains(&"SettedPodTemplateRestartPolicy"));

    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.spec["tfReplicaSpecs"]["Worker"]["template"]["spec"]["restartPolicy"] = "OnFailure".into();
    w.settle();
    assert_eq!(w.pod("worker-0")["spec"]["restartPolicy"], "Never");
    assert!(w.reasons().contains(&"SettedPodTemplateRestartPolicy"));
}

#[test]
fn counts_are_held_back_and_conditions_are_not() {
    let mut w = World::with(&[("Worker", 3, "Never")]);
    w.settle();
    w.start("worker-0");
    let plan = w.settle();
    assert!(plan.counts_pending);
    assert_eq!(w.status_writes, 1);
    w.pass_ms(1000);
    w.settle();
    assert_eq!(w.status_writes, 2);
    assert_eq!(w.status["replicaStatuses"]["Worker"]["active"], 1);
    w.start("worker-1");
    w.settle();
    w.start("worker-2");
    w.settle();
    assert_eq!(w.status_writes, 3, "the condition takes the counts along");
    assert_eq!(w.status["replicaStatuses"]["Worker"]["active"], 3);
}

#[test]
fn a_job_of_somebody_else_or_on_its_way_out_is_left_alone() {
    let w = World::with(&[("Worker", 1, "Never")]).policy("managedBy", "kueue.x-k8s.io/multikueue");
    assert!(w.plan().is_idle());
    let w = World::with(&[("Worker", 1, "Never")])
        .policy("managedBy", "kubeflow.org/training-operator");
    assert!(!w.plan().is_idle());
}

#[test]
fn what_cannot_be_run_fails_and_says_why() {
    let cases = [
        (json!({}), "spec.tfReplicaSpecs"),
        (json!({"tfReplicaSpecs": {"Worker": {"replicas": -1, "template": template()}}}), "-1"),
        (json!({"tfReplicaSpecs": {"Gardener": {"template": template()}}}), "Gardener"),
        (
            json!({"tfReplicaSpecs": {"Worker": {"template": {"spec": {"containers": []}}}}}),
            "tensorflow",
        ),
        (
            json!({"tfReplicaSpecs": {"Worker": {"replicas": "three", "template": template()}}}),
            "three",
        ),
        (json!(null), "spec"),
    ];
    for (spec, expected) in cases {
        let mut w = World::new(spec.clone());
        w.settle();
        assert_eq!(w.conditions(), ["Created T", "Failed T"], "{spec}");
        let failed = &w.typed().conditions[1];
        assert_eq!(failed.reason, "TFJobFailedValidation");
        assert!(failed.message.contains(expected), "{}", failed.message);
        assert!(w.plan().is_idle(), "no loop: {spec}");
    }
}

#[test]
fn a_name_that_is_too_long_with_its_suffix_fails() {
    let mut w = World::with(&[("Worker", 11, "Never")]);
    w.name = "a".repeat(53);
    w.settle();
    assert_eq!(w.conditions(), ["Created T"], "53 + -worker-10 = 63");
    let mut w = World::with(&[("Worker", 11, "Never")]);
    w.name = "a".repeat(54);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Failed T"]);
    assert!(w.typed().conditions[1].message.contains("shorten the name by 1"));
}

#[test]
fn what_the_api_server_refuses_to_create_fails_a_job_that_never_ran() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.refused = Some("Pod \"j-worker-0\" is invalid: spec.nodeName: Invalid value".into());
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Failed T"]);
    assert!(w.typed().conditions[1].message.contains("spec.nodeName"));

    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.settle();
    w.start_all();
    w.settle();
    w.refused = Some("invalid".into());
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"], "what runs goes on");
}

#[test]
fn trouble_of_a_pod_is_told_as_long_as_it_lasts() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.settle();
    w.pod("worker-0")["status"] = json!({"phase": "Pending", "containerStatuses": [{
        "name": "tensorflow",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}},
    }]});
    let plan = w.settle();
    assert_eq!(plan.notices.len(), 1);
    assert_eq!(plan.notices[0].reason, "ImagePullBackOff");
    assert_eq!(
        plan.notices[0].message,
        "Error pod j-worker-0 container tensorflow waiting message: Back-off pulling image"
    );
}
