//! Evictions, restarts of a whole job, of a task and of a pod, and their limit.

use serde_json::{Value, json};
use trainyard_api::volcano::JobPhase::{
    Completed, Failed, Pending, Restarting, Running, Terminated, Terminating,
};

use crate::{
    child::Child,
    volcano::world::{World, mnist, task},
};

/// One pod is deleted and the job comes back.
fn evict(w: &mut World, place: &str) {
    w.delete_pod(place);
    w.settle();
    w.finish_deletions();
    w.settle();
    w.finish_deletions();
    w.settle();
}

#[test]
fn an_eviction_restarts_the_job() {
    let mut w = World::running(mnist());
    let group = w.object(Child::PodGroup, "j-u")["metadata"]["uid"].clone();
    w.delete_pod("worker-0");
    w.settle_counts();
    assert_eq!((w.phase(), w.typed().terminating), (Running, 1), "not before it is gone");
    w.finish_deletions();
    w.step();
    let status = w.typed();
    assert_eq!((w.phase(), status.version, status.retry_count), (Restarting, 1, 1));
    assert_eq!(status.terminating, 2);
    assert_eq!(status.state.reason, "PodEvicted");
    assert_eq!(status.state.message, "RestartJob: Pod j-worker-0 disappeared.");
    assert_eq!(w.told("ExecuteAction"), ["Start to execute action RestartJob "]);
    w.settle();
    assert!(w.names(Child::PodGroup).is_empty());
    assert_eq!(w.names(Child::ConfigMap), ["j-svc"]);
    assert_eq!(w.phase(), Restarting);
    w.finish_deletions();
    w.settle();
    assert_eq!(w.phase(), Pending);
    assert!(w.names(Child::Pod).is_empty(), "the new group has not been admitted");
    assert_ne!(w.object(Child::PodGroup, "j-u")["metadata"]["uid"], group);
    w.run();
    let notes = &w.object(Child::Pod, "j-ps-0")["metadata"]["annotations"];
    assert_eq!(notes["volcano.sh/job-version"], "1");
    assert_eq!(notes["volcano.sh/job-retry-count"], "1");
    assert_eq!(w.visited(), [Restarting, Pending, Running]);
    assert_eq!(w.typed().running, 3);
}

#[test]
fn a_lost_node_restarts_the_job_once() {
    let mut w = World::running(mnist());
    for place in ["ps-0", "worker-0", "worker-1"] {
        w.vanish(place);
    }
    w.run();
    assert_eq!((w.phase(), w.typed().retry_count, w.typed().version), (Running, 1, 1));
}

#[test]
fn the_third_restart_fails_the_job_and_keeps_what_has_ended() {
    let mut w = World::running(mnist());
    evict(&mut w, "ps-0");
    w.run();
    assert_eq!((w.phase(), w.typed().retry_count), (Running, 1));
    evict(&mut w, "ps-0");
    w.run();
    assert_eq!((w.phase(), w.typed().retry_count), (Running, 2));
    w.exit("worker-0", 0);
    w.settle_counts();
    evict(&mut w, "ps-0");
    w.settle_counts();
    assert_eq!((w.phase(), w.typed().retry_count), (Failed, 3));
    assert_eq!(w.names(Child::Pod), ["j-worker-0"]);
    let status = w.typed();
    assert_eq!((status.succeeded, status.terminating), (1, 0));
    assert_eq!(status.state.reason, "MaxRetryReached");
    assert_eq!(
        status.state.message,
        "It was to be restarted for the 3rd time and spec.maxRetry is 3. RestartJob: Pod j-ps-0 \
         disappeared."
    );
    assert!(w.names(Child::PodGroup).is_empty() && w.names(Child::Service).is_empty());
}

fn with_policy(event: &str, action: &str) -> Value {
    json!({"tasks": [task("ps", 1), task("worker", 2)],
        "policies": [{"event": event, "action": action}]})
}

#[test]
fn a_restarted_pod_leaves_the_others_and_the_group_alone() {
    let mut w = World::running(with_policy("PodFailed", "RestartPod"));
    let uid = |w: &World, child, name: &str| w.object(child, name)["metadata"]["uid"].clone();
    let (ps, group) = (uid(&w, Child::Pod, "j-ps-0"), uid(&w, Child::PodGroup, "j-u"));
    let failed = uid(&w, Child::Pod, "j-worker-1");
    w.exit("worker-1", 1);
    w.step();
    assert_eq!((w.phase(), w.typed().retry_count, w.typed().version), (Restarting, 1, 0));
    assert!(w.typed().state.message.contains("exited with code 1"));
    w.settle();
    assert_eq!(w.phase(), Pending);
    w.run();
    assert_eq!(w.phase(), Running);
    assert_eq!(uid(&w, Child::Pod, "j-ps-0"), ps);
    assert_eq!(uid(&w, Child::PodGroup, "j-u"), group);
    assert_ne!(uid(&w, Child::Pod, "j-worker-1"), failed);
    assert_eq!(w.typed().retry_count, 1, "our own deletion is no eviction");
}

#[test]
fn a_restarted_task_takes_all_its_pods() {
    let mut w = World::running(with_policy("PodFailed", "RestartTask"));
    w.exit("worker-0", 0);
    w.settle_counts();
    w.exit("worker-1", 1);
    w.settle();
    w.run();
    assert_eq!((w.phase(), w.typed().running), (Running, 3));
    assert_eq!(w.deletes, ["j-worker-0", "j-worker-1"]);
}

#[test]
fn two_pods_that_fail_together_are_one_restart() {
    let mut w = World::running(with_policy("PodFailed", "RestartPod"));
    w.exit("worker-0", 1);
    w.exit("worker-1", 1);
    w.settle();
    w.run();
    assert_eq!((w.phase(), w.typed().retry_count), (Running, 1));
    assert_eq!(w.deletes, ["j-worker-0", "j-worker-1"]);
}

#[test]
fn containers_restarted_too_often_make_the_task_fail_each_time() {
    let mut w = World::running(with_policy("TaskFailed", "RestartTask"));
    w.restart_in_place("worker-0", 2);
    w.settle_counts();
    assert_eq!(w.phase(), Running);
    for round in 1..3 {
        w.restart_in_place("worker-0", 2);
        w.restart_in_place("worker-1", 1);
        w.settle();
        assert_eq!((w.phase(), w.typed().retry_count), (Restarting, round));
        w.settle();
        w.finish_deletions();
        w.run();
        assert_eq!((w.phase(), w.typed().running), (Running, 3));
    }
}

#[test]
fn a_group_that_is_lost_is_an_event_in_every_version() {
    let mut w = World::running(with_policy("Unknown", "RestartJob"));
    for round in 1..3 {
        w.set_group("Unknown");
        w.settle();
        assert_eq!((w.phase(), w.typed().retry_count), (Restarting, round));
        w.finish_deletions();
        w.run();
        assert_eq!(w.phase(), Running);
        w.set_group("Running");
        w.settle_counts();
    }
}

#[test]
fn what_its_node_threw_out_was_evicted() {
    let mut w = World::running(mnist());
    w.pod("worker-0")["status"] = json!({"phase": "Failed", "reason": "Evicted"});
    w.settle();
    assert_eq!((w.phase(), w.typed().retry_count), (Restarting, 1));
    assert!(w.typed().state.message.contains("failed (Evicted)"));
}

#[test]
fn done_work_stays_done_when_its_pod_disappears() {
    let mut w = World::running(mnist());
    w.exit("worker-0", 0);
    w.settle_counts();
    w.vanish("worker-0");
    w.settle_counts();
    assert_eq!((w.phase(), w.typed().succeeded), (Running, 1));
    assert_eq!(w.names(Child::Pod), ["j-ps-0", "j-worker-1"]);
    w.exit("worker-1", 0);
    w.settle();
    w.finish_deletions();
    w.settle();
    assert_eq!((w.phase(), w.typed().succeeded), (Completed, 2));
}

#[test]
fn a_pod_that_disappears_without_a_policy_comes_back() {
    let mut w = World::running(json!({"tasks": [task("w", 2)]}));
    w.vanish("w-1");
    w.settle();
    assert_eq!(w.names(Child::Pod), ["j-w-0", "j-w-1"]);
    w.run();
    assert_eq!((w.phase(), w.typed().retry_count), (Running, 0));
}

#[test]
fn exit_codes_choose_the_policy() {
    let spec = json!({"tasks": [task("w", 2)], "policies": [
        {"exitCode": 3, "action": "TerminateJob"}, {"event": "PodFailed", "action": "RestartJob"}]});
    let mut w = World::running(spec.clone());
    w.exit("w-0", 3);
    w.settle();
    assert_eq!(w.phase(), Terminating);
    w.finish_deletions();
    w.settle_counts();
    assert_eq!((w.phase(), w.typed().failed), (Terminated, 1));
    assert_eq!(w.names(Child::Pod), ["j-w-0"]);
    let mut w = World::running(spec);
    w.exit("w-0", 4);
    w.settle();
    assert_eq!(w.phase(), Restarting);
}

#[test]
fn a_pod_on_a_lost_node_is_not_waited_for() {
    let mut w = World::running(mnist());
    w.vanish("ps-0");
    w.settle();
    assert_eq!(w.phase(), Restarting);
    let due = w.plan().requeue_at.unwrap();
    assert_eq!(due.as_second() - w.now.as_second(), 30 + w.config.lost_pod_ms / 1_000);
    w.pass_ms(30_000 + w.config.lost_pod_ms);
    w.settle();
    assert_eq!(w.phase(), Pending);
    assert!(w.names(Child::Pod).is_empty());
}
