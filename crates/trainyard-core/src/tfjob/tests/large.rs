//! Large jobs, and specifications and statuses that nobody can mean: what one plan holds.

use serde_json::{Value, json};

use crate::{
    child::Child,
    plan::{Plan, Write},
    tfjob::world::World,
};

fn created(plan: &Plan, of: Child) -> Vec<&Value> {
    let writes = plan.writes().filter_map(|write| match write {
        Write::Create(child, create) if *child == of => Some(&create.body),
        _ => None,
    });
    writes.collect()
}

/// Before there were batches the first plan held 10,000 services and as many pods, each with the names of
/// all others, 6 GB.
#[test]
fn a_plan_for_ten_thousand_replicas_holds_a_batch_of_them() {
    let mut w = World::with(&[("Worker", 10_000, "Never")]);
    let mut plans = 0;
    loop {
        let plan = w.plan();
        let services = created(&plan, Child::Service).len();
        assert!(services <= 500, "{services} services in one plan");
        if services == 0 {
            break;
        }
        let pods = created(&plan, Child::Pod);
        assert_eq!(pods.is_empty(), w.services.len() + services < 10_000, "names come first");
        assert!(plan.goes_on);
        w.carry_out(&plan);
        plans += 1;
    }
    assert_eq!((w.services.len(), plans), (10_000, 20));
    let plan = w.plan();
    let pods: usize = created(&plan, Child::Pod).iter().map(|pod| pod.to_string().len()).sum();
    assert!(pods > 0 && pods < 6 << 20, "{pods} bytes of pods in one plan");
}

#[test]
fn a_job_in_batches_gets_all_its_pods_and_runs() {
    let mut w = World::with(&[("Worker", 700, "Never"), ("PS", 3, "Never")]);
    let mut passes = 0;
    while !w.plan().is_idle() && passes < 40 {
        let plan = w.plan();
        w.carry_out(&plan);
        passes += 1;
        w.pass_ms(1_000);
    }
    assert_eq!((w.pods.len(), w.services.len()), (703, 703));
    assert!(!w.plan().goes_on);
    w.start_all();
    w.settle_counts();
    assert_eq!(w.conditions(), ["Created T", "Running T"]);
}

/// Seen before there was a bound: `replicas: 1000000000` took 24 GB.
#[test]
fn more_replicas_than_a_job_may_have_fail_it_alone() {
    for (replicas, told) in [
        (json!({"Worker": 2_147_483_647_u32}), "must be between 0 and 10000"),
        (json!({"Worker": 10_001}), "must be between 0 and 10000"),
        (json!({"Worker": 9_999, "PS": 2}), "10001 replicas in all are too many"),
    ] {
        let mut w = World::with(&[("Worker", 1, "Never"), ("PS", 1, "Never")]);
        for (kind, count) in replicas.as_object().unwrap() {
            w.spec["tfReplicaSpecs"][kind]["replicas"] = count.clone();
        }
        w.settle();
        assert_eq!(w.conditions(), ["Created T", "Failed T"]);
        let message = w.status["failure"]["message"].as_str().unwrap();
        assert!(message.contains(told), "{message}");
        assert!(w.reasons().contains(&"TFJobFailedValidation"));
        assert_eq!(w.pods.len() + w.services.len(), 0);
    }
}

/// Such a list takes fifty times its text in memory.
#[test]
fn a_specification_of_a_great_many_values_fails_its_job() {
    let mut w = World::with(&[("Worker", 1, "Never")]);
    let variables = vec![json!({"name": "a"}); 40_000];
    w.spec["tfReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["env"] =
        variables.into();
    w.settle();
    let message = w.status["failure"]["message"].as_str().unwrap();
    assert!(message.contains("at most 50000 are read"), "{message}");
}

/// Every record was compared for every replica, and every range of indices was written out.
#[test]
fn a_status_that_somebody_else_has_filled_is_read_as_far_as_a_job_goes() {
    let record = |n: usize| json!({"replica": format!("worker-{n}"), "uid": "u", "streak": 1});
    let of_workers =
        |key: &str, text: &str| json!({"replicaStatuses": {"Worker": {key: text.repeat(40_000)}}});
    for (status, pointer, wanted) in [
        (
            of_workers("startedIndexes", "0-4294967295,"),
            "/replicaStatuses/Worker/startedIndexes",
            json!("0-9999"),
        ),
        (
            of_workers("completedIndexes", "7-4294967295,"),
            "/replicaStatuses/Worker/completedIndexes",
            json!("7-9999"),
        ),
        (
            json!({"replicaRecords": (0..30_000).rev().map(record).collect::<Vec<_>>()}),
            "/replicaRecords/0/replica",
            json!("worker-10000"),
        ),
    ] {
        let mut w = World::with(&[("Worker", 10_000, "Never")]);
        w.status = status;
        let plan = w.plan();
        assert_eq!(created(&plan, Child::Service).len(), 500);
        let patch = plan.writes().find_map(|write| match write {
            Write::PatchStatus { patch, .. } => patch.pointer(pointer),
            _ => None,
        });
        assert_eq!(patch, Some(&wanted), "{pointer}");
    }
}
