//! Failures that end a job, and what is kept and deleted then.

use serde_json::{Value, json};
use trainyard_api::FailureKind;

use crate::tfjob::world::World;

fn run_then_exit(replicas: &[(&str, u32, &str)], ends: &[(&str, i64)]) -> World {
    let mut w = World::with(replicas);
    w.settle();
    w.start_all();
    w.settle();
    for (replica, code) in ends {
        w.exit(replica, *code);
    }
    w.settle();
    w
}

#[test]
fn a_failure_is_told_in_detail() {
    let w = run_then_exit(&[("Worker", 2, "Never")], &[("worker-1", 137)]);
    assert_eq!(w.conditions(), ["Created T", "Running F", "Failed T"]);
    let status = w.typed();
    let failed = status.conditions.last().unwrap();
    assert_eq!(failed.reason, "TFJobFailed");
    assert_eq!(
        failed.message,
        "TFJob ns/j has failed because 1 Worker replica(s) failed. Pod j-worker-1, container \
         tensorflow exited with code 137 (SIGKILL, Error). Last words: last words of worker-1"
    );
    let failure = status.failure.unwrap();
    assert_eq!(failure.kind, FailureKind::ReplicaFailed);
    assert_eq!((failure.pod.as_str(), failure.exit_code), ("j-worker-1", Some(137)));
    assert_eq!(failure.signal, "SIGKILL");
    assert!(status.completion_time.is_some());
    assert_eq!(status.replica_statuses[&trainyard_api::ReplicaType::Worker].failed, 1);
}

#[test]
fn any_type_that_fails_for_good_fails_the_job() {
    for (kind, replica) in
        [("Chief", "chief-0"), ("PS", "ps-0"), ("Evaluator", "evaluator-0"), ("Worker", "worker-0")]
    {
        let others: &[(&str, u32, &str)] = if kind == "Worker" {
            &[("Worker", 1, "Never")]
        } else {
            &[("Worker", 1, "Never"), (kind, 1, "Never")]
        };
        let w = run_then_exit(others, &[(replica, 1)]);
        assert_eq!(w.conditions().last().unwrap(), "Failed T", "{kind}");
    }
}

#[test]
fn a_permanent_exit_code_has_its_own_warning() {
    let w = run_then_exit(&[("Worker", 1, "ExitCode")], &[("worker-0", 2)]);
    assert!(w.events.iter().any(|e| e.reason == "TFJobFailed"
        && e.message == "job \"j\" is failing because \"Worker\" replica(s) failed."));
    assert!(w.events.iter().any(|e| e.message == "Pod: ns.j-worker-0 exited with code 2"));
    let ends = w.events.iter().filter(|e| e.terminal).count();
    assert_eq!(ends, 1);
}

#[test]
fn what_is_deleted_at_the_end() {
    // Worker 0 ends the job with success; worker 1 has failed earlier under a policy that
    // tolerates it (dynamic), worker 2 runs, the parameter server waits.
    let cases: [(Value, &[&str]); 4] = [
        (json!("Running"), &["worker-0", "worker-1"]),
        (json!("All"), &[]),
        (json!("None"), &["ps-0", "worker-0", "worker-1", "worker-2"]),
        (json!(null), &["worker-0", "worker-1"]),
    ];
    for (policy, left) in cases {
        let mut w = World::with(&[("Worker", 3, "Never"), ("PS", 1, "Never")])
            .policy("cleanPodPolicy", policy.clone());
        w.spec["enableDynamicWorker"] = true.into();
        w.settle();
        for replica in ["worker-0", "worker-1", "worker-2"] {
            w.start(replica);
        }
        w.settle();
        w.exit("worker-1", 1);
        w.settle();
        w.exit("worker-0", 0);
        w.settle();
        w.finish_deletions();
        w.settle();
        assert_eq!(w.live_replicas(), left, "{policy}");
        assert!(w.services.is_empty(), "services go whatever the policy: {policy}");
    }
}

#[test]
fn old_top_level_fields_mean_the_same() {
    let mut w = World::with(&[("Worker", 1, "Never"), ("PS", 1, "Never")]);
    w.spec["cleanPodPolicy"] = "All".into();
    w.settle();
    w.start_all();
    w.exit("worker-0", 0);
    w.settle();
    w.finish_deletions();
    w.settle();
    assert!(w.pods.is_empty());
}

#[test]
fn dynamic_workers_may_fail_until_none_is_left() {
    let mut w = World::with(&[("Worker", 2, "ExitCode")]);
    w.spec["enableDynamicWorker"] = true.into();
    w.settle();
    w.start_all();
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    w.exit("worker-1", 1);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    w.exit("worker-0", 1);
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running F", "Failed T"]);
}

#[test]
fn with_dynamic_workers_the_deciding_type_makes_it_run() {
    let mut w = World::with(&[("Chief", 1, "Never"), ("Worker", 3, "Never")]);
    w.spec["enableDynamicWorker"] = true.into();
    w.settle();
    w.start("worker-0");
    w.settle();
    assert_eq!(w.conditions(), ["Created T"]);
    w.start("chief-0");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
}

#[test]
fn a_replica_that_has_succeeded_cannot_fail_any_more() {
    let mut w = World::with(&[("Worker", 2, "Never")]);
    w.spec["successPolicy"] = "AllWorkers".into();
    w.settle();
    w.start_all();
    w.settle();
    w.exit("worker-1", 0);
    w.settle_counts();
    w.evict("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    w.pods.remove("j-worker-1");
    w.settle();
    assert!(!w.has("worker-1"), "a completed index is never run again");
    w.exit("worker-0", 0);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Succeeded T");
}

/// A kubelet publishes the terminated container first and the pod's final phase later; the job
/// ends in between.
#[test]
fn finished_pods_are_kept_for_their_logs_before_their_phase_says_that_they_are() {
    let cases = [
        ("Never", 0, "Succeeded"),
        ("Never", 1, "Failed"),
        ("ExitCode", 0, "Succeeded"),
        ("ExitCode", 1, "Failed"),
        ("OnFailure", 0, "Succeeded"),
    ];
    for (policy, code, condition) in cases {
        let mut w = World::with(&[("Worker", 2, policy), ("Evaluator", 1, policy)]);
        w.settle();
        w.start_all();
        w.settle();
        w.terminate("evaluator-0", 0);
        w.terminate("worker-0", code);
        if code != 0 {
            w.pass_ms(5_000);
        }
        w.settle();
        let ended = w.conditions();
        assert_eq!(ended.last().unwrap(), &format!("{condition} T"), "{policy} {code}");
        w.publish_end("evaluator-0");
        w.publish_end("worker-0");
        w.settle();
        w.finish_deletions();
        assert_eq!(w.pod_names(), ["j-evaluator-0", "j-worker-0"], "{policy} {code}");
        assert_eq!(w.deletes, ["j-worker-1"], "{policy} {code}: only what runs is deleted");
    }
}

#[test]
fn a_finished_pod_whose_phase_is_never_published_counts_once() {
    let mut w = World::with(&[("Chief", 1, "Never"), ("Worker", 2, "ExitCode")]);
    w.settle();
    w.start_all();
    w.settle();
    w.terminate("worker-0", 0);
    w.terminate("worker-1", 137);
    w.settle_counts();
    assert_eq!(w.status["replicaStatuses"]["Worker"]["succeeded"], 1);
    assert_eq!(w.typed().restarts, 0, "it may have been evicted");
    w.pass_ms(5_000);
    w.settle_counts();
    assert_eq!(w.typed().restarts, 1);
    w.delete_pod("worker-0");
    w.settle_counts();
    w.finish_deletions();
    w.pass_ms(400_000);
    w.settle_counts();
    assert_eq!(w.pod_names(), ["j-chief-0", "j-worker-1"], "completed work is not done again");
    assert_eq!(w.typed().restarts, 1);
}

#[test]
fn a_program_whose_end_nobody_can_judge_yet_is_taken_for_one_that_runs() {
    let mut w = World::with(&[("Worker", 2, "Never")]);
    w.settle();
    w.start_all();
    w.settle_counts();
    let plan = w.settle();
    assert_eq!(plan.requeue_at, None, "nothing is waited for");
    w.terminate("worker-1", 143);
    let plan = w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
    assert_eq!(w.status["replicaStatuses"]["Worker"]["active"], 2);
    assert_eq!(plan.requeue_at.map(|at| at.duration_since(w.now).as_secs()), Some(5));
    assert!(w.typed().unavailable_replicas.is_empty());
    w.pass_ms(1_000);
    w.publish_end("worker-1");
    w.settle();
    assert_eq!(w.conditions(), ["Created T", "Running F", "Failed T"]);
}

#[test]
fn an_ended_program_is_judged_although_its_kubelet_never_publishes_the_phase() {
    let mut w = World::with(&[("Worker", 2, "Never")]);
    w.settle();
    w.start_all();
    w.settle();
    w.terminate("worker-1", 1);
    let at = w.settle().requeue_at.unwrap();
    w.now = at;
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Failed T");
}

#[test]
fn success_waits_for_no_phase() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.settle();
    w.start_all();
    w.settle();
    w.terminate("worker-0", 0);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Succeeded T");
}

#[test]
fn a_native_sidecar_neither_fails_a_job_nor_undoes_its_success() {
    for policy in ["Never", "ExitCode", "OnFailure"] {
        let mut w = World::with(&[("Worker", 1, policy)]).policy("backoffLimit", 0);
        w.spec["tfReplicaSpecs"]["Worker"]["template"]["spec"]["initContainers"] =
            json!([{"name": "proxy", "image": "p", "restartPolicy": "Always"}]);
        w.settle();
        let sidecar = |w: &mut World, state: Value, restarts: i64| {
            w.pod("worker-0")["status"]["initContainerStatuses"] =
                json!([{"name": "proxy", "restartCount": restarts, "state": state}]);
        };
        let ended = |code: i64| json!({"terminated": {"exitCode": code, "reason": "Error"}});
        // It starts badly, is started again, and is stopped when the training is over.
        sidecar(&mut w, ended(1), 0);
        w.settle_counts();
        assert_eq!(w.conditions(), ["Created T"], "{policy}");
        w.start("worker-0");
        sidecar(&mut w, json!({"running": {}}), 3);
        w.settle_counts();
        assert_eq!(w.conditions(), ["Created T", "Running T"], "{policy}");
        assert_eq!(w.typed().restarts, 0, "{policy}");
        w.terminate("worker-0", 0);
        sidecar(&mut w, ended(143), 3);
        w.settle_counts();
        assert_eq!(w.conditions().last().unwrap(), "Succeeded T", "{policy}");
    }
}

#[test]
fn a_job_whose_init_container_fails_has_never_run() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    w.spec["tfReplicaSpecs"]["Worker"]["template"]["spec"]["initContainers"] =
        json!([{"name": "fetch", "image": "f"}]);
    w.settle();
    // Its kubelet shows the end some time before the phase that follows from it.
    let now = w.now.to_string();
    w.pod("worker-0")["status"] = json!({
        "phase": "Pending",
        "initContainerStatuses": [
            {"name": "fetch", "state": {"terminated": {
                "exitCode": 3, "reason": "Error", "finishedAt": now,
            }}},
        ],
        "containerStatuses": [
            {"name": "tensorflow", "state": {"waiting": {"reason": "PodInitializing"}}},
        ],
    });
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T"]);
    w.pod("worker-0")["status"]["phase"] = json!("Failed");
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Failed T"]);
}
