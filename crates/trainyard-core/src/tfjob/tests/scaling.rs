//! Scaling up, down, to nothing, and replica types that come and go.

use serde_json::{Value, json};

use crate::tfjob::world::{World, replica};

fn running(replicas: &[(&str, u32, &str)]) -> World {
    let mut w = World::with(replicas);
    w.settle();
    w.start_all();
    w.settle_counts();
    w
}

fn scale(w: &mut World, kind: &str, replicas: u32) {
    w.spec["tfReplicaSpecs"][kind]["replicas"] = replicas.into();
    w.generation += 1;
}

#[test]
fn up() {
    let mut w = running(&[("Worker", 1, "Never"), ("PS", 1, "Never")]);
    scale(&mut w, "Worker", 3);
    w.settle_counts();
    assert_eq!(w.live_replicas(), ["ps-0", "worker-0", "worker-1", "worker-2"]);
    assert_eq!(w.services.len(), 4);
    assert_eq!(w.typed().observed_generation, Some(2));
    let text = w.pod("worker-2")["spec"]["containers"][0]["env"][0]["value"].clone();
    assert!(text.as_str().unwrap().contains("j-worker-2.ns.svc:2222"));
}

#[test]
fn down_is_no_failure() {
    for (kind, name) in [("Worker", "worker"), ("PS", "ps")] {
        let mut w = running(&[("Worker", 3, "Never"), ("PS", 3, "Never")]);
        scale(&mut w, kind, 1);
        w.settle();
        assert_eq!(w.conditions(), ["Created T", "Running T"], "{kind}");
        w.pass_ms(1_000);
        w.exit(&format!("{name}-2"), 143);
        w.settle();
        w.finish_deletions();
        w.settle_counts();
        assert_eq!(w.conditions(), ["Created T", "Running T"], "{kind}");
        assert_eq!(w.pods.len(), 4);
        assert_eq!(w.services.len(), 4);
        assert_eq!(w.status["replicaStatuses"][kind]["active"], 1);
    }
}

#[test]
fn to_nothing_and_back() {
    let mut w = running(&[("Worker", 2, "Never"), ("Evaluator", 1, "Never")]);
    scale(&mut w, "Evaluator", 0);
    w.settle();
    w.finish_deletions();
    w.settle();
    assert_eq!(w.live_replicas(), ["worker-0", "worker-1"]);
    assert!(w.plan().is_idle(), "no endless create and delete");
    scale(&mut w, "Evaluator", 1);
    w.settle();
    assert_eq!(w.live_replicas(), ["evaluator-0", "worker-0", "worker-1"]);
}

#[test]
fn a_type_that_is_no_longer_asked_for_goes() {
    let mut w = running(&[("Worker", 1, "Never"), ("PS", 1, "Never")]);
    w.spec["tfReplicaSpecs"].as_object_mut().unwrap().remove("PS");
    w.settle();
    w.finish_deletions();
    w.settle_counts();
    assert_eq!(w.live_replicas(), ["worker-0"]);
    assert_eq!(w.status["replicaStatuses"]["PS"], Value::Null);
    w.spec["tfReplicaSpecs"]["evaluator"] = replica(1, "Never");
    w.settle();
    assert_eq!(w.live_replicas(), ["evaluator-0", "worker-0"]);
}

#[test]
fn down_below_what_has_succeeded_still_ends() {
    let mut w = World::with(&[("Worker", 3, "Never")]);
    w.spec["successPolicy"] = "AllWorkers".into();
    w.settle();
    w.start_all();
    w.settle();
    w.exit("worker-1", 0);
    w.exit("worker-2", 0);
    w.settle_counts();
    assert_eq!(w.status["replicaStatuses"]["Worker"]["completedIndexes"], "1-2");
    scale(&mut w, "Worker", 1);
    w.settle();
    w.exit("worker-0", 0);
    w.settle();
    assert_eq!(w.conditions().last().unwrap(), "Succeeded T");
}

#[test]
fn pods_of_others_and_odd_names_are_left_alone() {
    let mut w = running(&[("Worker", 1, "Never")]);
    let mut odd = w.pods["j-worker-0"].clone();
    odd["metadata"]["name"] = "somebody".into();
    odd["metadata"]["uid"] = "x".into();
    odd["metadata"]["labels"]["training.kubeflow.org/replica-index"] = json!("7");
    w.pods.insert("somebody".into(), odd.clone());
    odd["metadata"]["labels"]["training.kubeflow.org/replica-index"] = json!("-1");
    odd["metadata"]["name"] = "other".into();
    w.pods.insert("other".into(), odd);
    w.settle();
    assert_eq!(w.pod_names(), ["j-worker-0", "other", "somebody"]);
}
