//! What a group asks for, what its members carry, and who is no member.

use serde_json::{Value, json};

use crate::tfjob::world::{World, replica};

/// A job of parameter servers and workers that ask for this and that much processor time.
fn asking(ps: &str, workers: &str) -> World {
    let mut w = World::with(&[("PS", 2, "Never"), ("Worker", 2, "Never")]).gang("volcano");
    for (kind, cpu) in [("PS", ps), ("Worker", workers)] {
        w.spec["tfReplicaSpecs"][kind]["template"]["spec"]["containers"][0]["resources"] =
            json!({"requests": {"cpu": cpu}, "limits": {"nvidia.com/gpu": 1}});
    }
    w
}

fn group(mut w: World) -> Value {
    w.settle();
    w.group()["spec"].clone()
}

#[test]
fn a_group_is_the_job_s() {
    let mut w = asking("1", "2");
    w.annotations = [("volcano.sh/sla-waiting-time".to_owned(), "1h".to_owned())].into();
    w.settle();
    let group = w.group();
    assert_eq!(group["apiVersion"], "scheduling.volcano.sh/v1beta1");
    assert_eq!(group["kind"], "PodGroup");
    let meta = &group["metadata"];
    assert_eq!((meta["name"].as_str(), meta["namespace"].as_str()), (Some("j"), Some("ns")));
    assert_eq!(meta["annotations"], json!({"volcano.sh/sla-waiting-time": "1h"}));
    assert_eq!(meta["labels"]["training.kubeflow.org/job-name"], "j");
    assert_eq!(meta["labels"]["training.kubeflow.org/operator-name"], "tfjob-controller");
    assert_eq!(
        meta["ownerReferences"],
        json!([{"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "j", "uid": "job-uid",
            "controller": true, "blockOwnerDeletion": true}])
    );
    assert_eq!(
        group["spec"],
        json!({"minMember": 4, "queue": "default",
            "minResources": {"cpu": "6", "nvidia.com/gpu": "4"}})
    );
}

#[test]
fn the_policy_counts_more() {
    let policy = json!({
        "minAvailable": 3, "queue": "research", "priorityClass": "high",
        "minResources": {"cpu": 4}, "scheduleTimeoutSeconds": 60,
    });
    let w = asking("1", "2").policy("schedulingPolicy", policy);
    assert_eq!(
        group(w.clone()),
        json!({"minMember": 3, "queue": "research", "priorityClassName": "high",
            "minResources": {"cpu": "4"}})
    );
    assert_eq!(
        group(w.gang("sig-plugins")),
        json!({"minMember": 3, "minResources": {"cpu": "4"}, "scheduleTimeoutSeconds": 60})
    );
}

#[test]
fn the_resources_of_the_first_by_priority() {
    for (ps, worker, expected) in [
        (None, None, "4"),
        (None, Some("high"), "5"),
        (Some("high"), Some("low"), "4"),
        (Some("low"), Some("high"), "5"),
        (Some("unknown"), Some("low"), "5"),
    ] {
        let mut w = asking("1", "2").policy("schedulingPolicy", json!({"minAvailable": 3}));
        w.classes = [("high".to_owned(), 1000), ("low".to_owned(), 10)].into();
        for (kind, class) in [("PS", ps), ("Worker", worker)] {
            w.spec["tfReplicaSpecs"][kind]["template"]["spec"]["priorityClassName"] = class.into();
        }
        assert_eq!(group(w)["minResources"]["cpu"], expected, "{ps:?} {worker:?}");
    }
}

#[test]
fn the_priority_class_that_all_templates_name() {
    for (ps, worker, expected) in
        [("high", "high", json!("high")), ("high", "low", Value::Null), ("high", "", Value::Null)]
    {
        let mut w = asking("1", "2");
        for (kind, class) in [("PS", ps), ("Worker", worker)] {
            w.spec["tfReplicaSpecs"][kind]["template"]["spec"]["priorityClassName"] = class.into();
        }
        assert_eq!(group(w)["priorityClassName"], expected, "{ps} {worker}");
    }
}

#[test]
fn the_queue_of_a_group_stays_and_strangers_fields_too() {
    let mut w = asking("1", "2");
    w.settle();
    w.groups.get_mut("j").unwrap()["spec"]["queue"] = "moved".into();
    w.groups.get_mut("j").unwrap()["spec"]["networkTopology"] = json!({"mode": "soft"});
    w.groups.get_mut("j").unwrap()["spec"]["minResources"]["cpu"] = "6000m".into();
    w = w.policy("schedulingPolicy", json!({"queue": "research"}));
    w.settle();
    assert_eq!(w.group_writes, 1, "the same amount in other words is the same");
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = 1.into();
    w.settle();
    assert_eq!(w.group_writes, 2);
    assert_eq!(
        w.group()["spec"],
        json!({"minMember": 3, "queue": "moved", "networkTopology": {"mode": "soft"},
            "minResources": {"cpu": "4", "nvidia.com/gpu": "3"}})
    );
}

#[test]
fn what_is_no_longer_asked_for_leaves_the_group() {
    let mut w = asking("1", "2").policy("schedulingPolicy", json!({"priorityClass": "high"}));
    w.settle();
    assert_eq!(w.group()["spec"]["priorityClassName"], "high");
    w.spec["runPolicy"]["schedulingPolicy"] = Value::Null;
    for kind in ["PS", "Worker"] {
        w.spec["tfReplicaSpecs"][kind]["template"]["spec"]["containers"][0]["resources"] =
            Value::Null;
    }
    assert_eq!(group(w), json!({"minMember": 4, "queue": "default"}));
}

#[test]
fn dynamic_workers_begin_with_one() {
    let mut w = asking("1", "2");
    w.spec["enableDynamicWorker"] = true.into();
    w.spec["tfReplicaSpecs"]["Worker"]["replicas"] = 9.into();
    assert_eq!(
        group(w.clone()),
        json!({"minMember": 3, "minTaskMember": {"ps": 2, "worker": 1}, "queue": "default",
            "minResources": {"cpu": "4", "nvidia.com/gpu": "3"}})
    );
    let told = w.policy("schedulingPolicy", json!({"minAvailable": 5}));
    assert_eq!(
        group(told),
        json!({"minMember": 5, "queue": "default",
            "minResources": {"cpu": "8", "nvidia.com/gpu": "5"}})
    );
    let mut alone = World::with(&[("Worker", 4, "Never")]).gang("volcano");
    alone.spec["enableDynamicWorker"] = true.into();
    assert_eq!(group(alone)["minMember"], 1);
}

#[test]
fn a_minimum_above_all_replicas_is_told_and_lowered() {
    let mut w = asking("1", "2").policy("schedulingPolicy", json!({"minAvailable": 9}));
    let plan = w.settle();
    assert_eq!(w.group()["spec"]["minMember"], 4);
    assert_eq!(
        (&*plan.notices[0].reason, &*plan.notices[0].message),
        (
            "MinAvailableTooLarge",
            "spec.runPolicy.schedulingPolicy.minAvailable: 9 is more than the 4 replicas of the \
             gang; 4 is used"
        )
    );
}

#[test]
fn members_carry_the_marks_of_their_scheduler() {
    let member = |scheduler: &str, template: Value| {
        let mut w = World::with(&[("PS", 1, "Never")]).gang(scheduler);
        w.spec["tfReplicaSpecs"]["PS"]["template"]["metadata"] = template;
        w.settle();
        w.group_phase("Inqueue");
        w.settle();
        w.pod("ps-0").clone()
    };
    let pod = member("Volcano", json!({"annotations": {"a": "b", "volcano.sh/task-spec": "x"}}));
    assert_eq!(pod["spec"]["schedulerName"], "volcano");
    assert_eq!(
        pod["metadata"]["annotations"],
        json!({"a": "b", "scheduling.k8s.io/group-name": "j", "volcano.sh/task-spec": "ps"})
    );
    let pod = member("trainyard", json!({"annotations": null}));
    assert_eq!(pod["spec"]["schedulerName"], "trainyard");
    assert_eq!(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], "j");
    let pod = member("sig-plugins", Value::Null);
    assert_eq!(pod["spec"]["schedulerName"], "sig-plugins");
    assert_eq!(pod["metadata"]["annotations"], Value::Null);
    assert_eq!(pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], "j");
    let pod = member("", Value::Null);
    assert_eq!(pod["spec"]["schedulerName"], Value::Null);
    assert_eq!(pod["metadata"]["annotations"], Value::Null);
}

#[test]
fn another_scheduler_s_pods_are_left_alone_and_do_not_count() {
    let mut w = asking("1", "2");
    w.spec["tfReplicaSpecs"]["PS"]["template"]["spec"]["schedulerName"] = "special".into();
    let plan = w.settle();
    assert_eq!(
        (&*plan.notices[0].reason, &*plan.notices[0].message),
        (
            "SetPodTemplateSchedulerName",
            "Another scheduler is specified when gang-scheduling is enabled and it will not be \
             overwritten: PS (special) is no part of the gang"
        )
    );
    assert_eq!(w.group()["spec"]["minMember"], 2);
    assert_eq!(w.group()["spec"]["minResources"]["cpu"], "4");
    assert_eq!(w.live_replicas(), ["worker-0", "worker-1"], "they take no room before the others");
    w.group_phase("Inqueue");
    w.settle();
    assert_eq!(w.pods.len(), 2);
    w.group_phase("Running");
    w.settle();
    let pod = w.pod("ps-0").clone();
    assert_eq!(pod["spec"]["schedulerName"], "special");
    assert_eq!(pod["metadata"]["annotations"], Value::Null);
    assert_eq!(w.pod("worker-0")["spec"]["schedulerName"], "volcano");
}

#[test]
fn a_job_of_another_scheduler_is_no_gang() {
    let mut w = World::with(&[("Worker", 2, "Never")]).gang("volcano");
    w.spec["tfReplicaSpecs"]["Worker"]["template"]["spec"]["schedulerName"] = "special".into();
    w.settle();
    assert_eq!((w.pods.len(), w.groups.len()), (2, 0));
}

#[test]
fn our_scheduler_answers_to_volcano_s_name() {
    for (own, named, members) in
        [("trainyard", "volcano", 1), ("volcano", "trainyard", 0), ("volcano", "volcano", 1)]
    {
        let mut w = World::with(&[("Evaluator", 1, "Never")]).gang(own);
        w.spec["tfReplicaSpecs"]["Evaluator"] = replica(1, "Never");
        w.spec["tfReplicaSpecs"]["Evaluator"]["template"]["spec"]["schedulerName"] = named.into();
        let plan = w.settle();
        assert_eq!(w.groups.len(), members, "{own} {named}");
        assert_eq!(plan.notices.len(), 1 - members, "{own} {named}");
    }
}
