//! What a job that does not run says, and jobs that never can.

use serde_json::json;
use trainyard_api::volcano::JobPhase::{Failed, Pending, Running};

use crate::{
    child::Child,
    plan::Mark,
    volcano::world::{World, mnist, task},
};

#[test]
fn the_obstacle_of_the_group_is_quoted() {
    let mut w = World::new(mnist());
    w.settle_counts();
    assert_eq!(w.typed().state.reason, "PodGroupPending");
    let group = w.objects.get_mut(&(Child::PodGroup, "j-u".to_owned())).unwrap();
    group["status"] = json!({"phase": "Inqueue", "conditions": [{"type": "Unschedulable",
        "status": "True", "reason": "NotEnoughResources", "message": "test message"}]});
    w.settle_counts();
    let state = w.typed().state;
    assert_eq!((&*state.reason, &*state.message), ("NotEnoughResources", "test message"));
    let since = state.last_transition_time.unwrap();
    assert!(since < w.now, "only a phase moves the time");
    let notices = w.plan().notices;
    assert_eq!(notices[0].reason, "PodGroupPending");
    assert_eq!(notices[0].message, "PodGroup ns:j unschedulable, reason: test message");
    w.objects.get_mut(&(Child::PodGroup, "j-u".to_owned())).unwrap()["status"] =
        json!({"phase": "Inqueue"});
    w.pod("ps-0")["status"] = json!({"phase": "Pending", "containerStatuses": [{"name": "c",
        "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}]});
    w.settle_counts();
    let state = w.typed().state;
    assert_eq!(state.message, "Pod j-ps-0 waits: no such image");
    w.start_all();
    w.settle_counts();
    let state = w.typed().state;
    assert_eq!((w.phase(), &*state.reason, &*state.message), (Running, "", ""));
}

#[test]
fn jobs_that_cannot_run_fail_at_once_and_for_good() {
    let cyclic = json!({"tasks": [
        {"name": "a", "replicas": 1, "dependsOn": {"name": ["b"]}},
        {"name": "b", "replicas": 1, "dependsOn": {"name": ["a"]}}]});
    let plugin = json!({"plugins": {"mpi": []}, "tasks": [task("a", 1)]});
    let policy = |event: &str| json!({"event": event, "action": "RestartJob"});
    let policies = json!({"policies": [policy("*"), policy("PodFailed")], "tasks": [task("a", 1)]});
    let volume = |claim: &str| json!({"mountPath": "/data", "volumeClaimName": claim});
    let volumes = json!({"volumes": [volume("a"), volume("b")], "tasks": [task("a", 1)]});
    for (spec, word) in [
        (json!({}), "No task"),
        (cyclic, "wait for each other"),
        (plugin, "mpi"),
        (policies, "spec.policies[1]: if there's * here"),
        (volumes, "spec.volumes[1]: duplicated mountPath: /data"),
    ] {
        let mut w = World::new(spec);
        w.settle();
        let state = w.typed().state;
        assert_eq!((w.phase(), &*state.reason), (Failed, "InvalidJob"));
        assert!(state.message.contains(word), "{}", state.message);
        assert!(w.creates.is_empty());
        assert_eq!(w.marks, [Mark::Created, Mark::Failed]);
        let writes = w.status_writes;
        w.pass_ms(100_000);
        w.settle_counts();
        assert_eq!(w.status_writes, writes);
    }
}

#[test]
fn a_refused_pod_ends_a_job_that_has_never_run() {
    let mut w = World::new(mnist());
    w.settle();
    w.refused = Some("Pod \"j-ps-0\" is invalid: spec.containers: Required value".into());
    w.settle();
    assert_eq!(w.phase(), Failed);
    assert!(w.typed().state.message.contains("Required value"));
    assert!(w.names(Child::PodGroup).is_empty());
    let mut w = World::running(mnist());
    w.refused = Some("invalid".into());
    w.settle();
    assert_eq!(w.phase(), Running);
}

#[test]
fn a_deleted_job_is_left_alone() {
    let mut w = World::running(mnist());
    w.vanish("ps-0");
    w.metadata["deletionTimestamp"] = "2027-01-15T08:00:00Z".into();
    assert!(w.plan().is_idle());
}

#[test]
fn dependent_tasks_wait_and_do_not_count_until_they_may_start() {
    let mut spec = json!({"tasks": [task("a", 1), task("b", 2)]});
    spec["tasks"][1]["dependsOn"] = json!({"name": ["a"]});
    let mut w = World::new(spec);
    w.settle();
    let group = &w.object(Child::PodGroup, "j-u")["spec"];
    assert_eq!((&group["minMember"], &group["minTaskMember"]), (&json!(1), &json!({"a": 1})));
    assert_eq!(group["minResources"]["pods"], "1");
    w.admit();
    w.settle_counts();
    assert_eq!(w.names(Child::Pod), ["j-a-0"]);
    w.start("a-0");
    w.pod("a-0")["status"]["containerStatuses"][0]["ready"] = false.into();
    w.settle_counts();
    assert_eq!(w.names(Child::Pod), ["j-a-0"], "it runs but is not ready");
    assert_eq!(w.typed().state.message, "Task b waits until a is ready.");
    w.start("a-0");
    w.settle_counts();
    assert_eq!(w.names(Child::Pod), ["j-a-0", "j-b-0", "j-b-1"]);
    let group = &w.object(Child::PodGroup, "j-u")["spec"];
    assert_eq!(
        (&group["minMember"], &group["minTaskMember"]),
        (&json!(3), &json!({"a": 1, "b": 2}))
    );
    assert_eq!(w.phase(), Pending);
    w.start_all();
    w.settle_counts();
    assert_eq!(w.phase(), Running);
    w.exit("a-0", 0);
    w.settle_counts();
    assert_eq!(w.names(Child::Pod).len(), 3);
}

/// As Volcano judges it: no container says that it is not ready.
#[test]
fn a_pod_that_runs_without_a_word_of_its_containers_is_ready() {
    let mut spec = json!({"tasks": [task("a", 1), task("b", 1)]});
    spec["tasks"][1]["dependsOn"] = json!({"name": ["a"]});
    let mut w = World::new(spec);
    w.settle();
    w.admit();
    w.settle_counts();
    w.pod("a-0")["status"] = json!({"phase": "Running"});
    w.settle_counts();
    assert_eq!(w.names(Child::Pod), ["j-a-0", "j-b-0"]);
}

#[test]
fn one_dependency_is_enough_where_any_is_asked_for() {
    for (iteration, started) in [("any", true), ("all", false)] {
        let mut spec = json!({"tasks": [task("a", 1), task("b", 1), task("c", 1)]});
        spec["tasks"][2]["dependsOn"] = json!({"name": ["a", "b"], "iteration": iteration});
        let mut w = World::new(spec);
        w.settle();
        w.admit();
        w.settle();
        w.start("a-0");
        w.settle();
        assert_eq!(w.names(Child::Pod).contains(&"j-c-0"), started, "{iteration}");
    }
}

#[test]
fn strange_arguments_of_plugins_are_told_and_ignored() {
    let mut spec = mnist();
    spec["plugins"]["svc"] = json!(["9090", "--publish-not-ready-addresses"]);
    let mut w = World::new(spec);
    w.settle();
    let notice = &w.plan().notices[0];
    assert_eq!(notice.reason, "PluginError");
    assert!(notice.message.contains("spec.plugins.svc: \"9090\""));
    assert_eq!(w.object(Child::Service, "j")["spec"]["publishNotReadyAddresses"], true);
}

#[test]
fn mere_counts_wait_a_little() {
    let mut w = World::running(json!({"tasks": [task("w", 3)]}));
    let writes = w.status_writes;
    w.exit("w-0", 1);
    w.settle();
    w.pass_ms(500);
    w.exit("w-1", 1);
    let plan = w.settle();
    assert!(plan.counts_pending && plan.requeue_at.is_some());
    assert_eq!(w.status_writes, writes);
    w.pass_ms(500);
    w.settle();
    assert_eq!((w.status_writes, w.typed().failed), (writes + 1, 2));
}

#[test]
fn a_job_without_pods_waits_first_and_runs_then() {
    let mut w = World::new(json!({"tasks": [task("w", 0)]}));
    w.step();
    assert_eq!(w.visited(), [Pending]);
    w.settle();
    assert_eq!(w.visited(), [Pending, Running]);
}
