//! Scaling a task up and down.

use serde_json::json;
use trainyard_api::volcano::JobPhase::{Completing, Running};

use crate::{
    child::Child,
    volcano::world::{World, mnist},
};

fn scale(w: &mut World, replicas: u32) {
    w.spec["tasks"][1]["replicas"] = replicas.into();
    w.spec["minAvailable"] = (replicas + 1).into();
}

#[test]
fn up() {
    let mut w = World::running(mnist());
    scale(&mut w, 3);
    w.settle_counts();
    let data = &w.object(Child::ConfigMap, "j-svc")["data"];
    assert_eq!((&data["VC_WORKER_NUM"], &data["VC_PS_NUM"]), (&json!("3"), &json!("1")));
    let group = &w.object(Child::PodGroup, "j-u")["spec"];
    assert_eq!((&group["minMember"], &group["minResources"]["pods"]), (&json!(4), &json!("4")));
    assert_eq!(w.names(Child::Pod).len(), 4);
    w.start_all();
    w.settle_counts();
    assert_eq!((w.phase(), w.typed().running), (Running, 4));
    assert_eq!(w.patches, ["j-svc", "j-u"], "written once");
}

#[test]
fn down_is_no_eviction() {
    let mut w = World::running(mnist());
    scale(&mut w, 1);
    w.step();
    assert_eq!(w.typed().pods["j-worker-1"].phase, "Killed", "recorded before it goes");
    w.settle();
    w.finish_deletions();
    w.settle_counts();
    assert_eq!((w.phase(), w.typed().retry_count), (Running, 0));
    assert_eq!(w.names(Child::Pod), ["j-ps-0", "j-worker-0"]);
    assert_eq!(w.object(Child::ConfigMap, "j-svc")["data"]["VC_WORKER_NUM"], "1");
    assert!(!w.typed().pods.contains_key("j-worker-1"));
}

#[test]
fn down_to_those_that_have_succeeded_completes_the_task() {
    let mut w = World::running(mnist());
    w.exit("worker-0", 0);
    w.settle_counts();
    scale(&mut w, 1);
    w.settle();
    assert_eq!(w.phase(), Completing);
}

#[test]
fn down_and_up_again_while_the_pod_is_still_going() {
    let mut w = World::running(mnist());
    scale(&mut w, 1);
    w.settle();
    scale(&mut w, 2);
    w.settle();
    assert_eq!(w.names(Child::Pod).len(), 3, "the old one is waited for");
    w.finish_deletions();
    w.run();
    assert_eq!((w.phase(), w.typed().running, w.typed().retry_count), (Running, 3, 0));
}
