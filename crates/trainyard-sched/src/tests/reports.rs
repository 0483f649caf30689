//! What is said of PodGroups and queues: once, again when it was lost, never when it is there.

use serde_json::{Value, from_value, json};
use trainyard_schema::refusal;

use super::world::{World, key, member, time};
use crate::{Constraint, Decision, Delta, GroupPhase, GroupReport, Reported};

fn group(version: u64, status: &Value) -> Delta {
    let value = json!({
        "metadata": {"namespace": "n", "name": "g", "uid": "g", "creationTimestamp": time(900),
            "resourceVersion": version.to_string()},
        "spec": {"minMember": 2}, "status": status,
    });
    Delta::Group(Box::new(from_value(value).unwrap()))
}

fn reports(world: &mut World) -> Vec<GroupReport> {
    let reports = world.decide().into_iter().filter_map(|decision| match decision {
        Decision::Report(report) => Some(*report),
        _ => None,
    });
    reports.collect()
}

fn told(version: Option<u64>) -> Delta {
    let (namespace, name, uid) = ("n".to_owned(), "g".to_owned(), "g".to_owned());
    Delta::Reported(Box::new(Reported { namespace, name, uid, version }))
}

#[test]
fn a_report_is_made_once_and_again_when_it_was_lost_or_written_over() {
    let mut world = World::new();
    world.node("a", "4");
    world.state.apply(group(1, &json!({})));
    assert_eq!(reports(&mut world)[0].phase, GroupPhase::Inqueue);
    assert_eq!(reports(&mut world), []);
    world.state.apply(told(None));
    assert_eq!(reports(&mut world)[0].phase, GroupPhase::Inqueue);
    world.state.apply(told(Some(5)));
    // An older version says nothing of what was written since.
    world.state.apply(group(3, &json!({"phase": "Pending"})));
    assert_eq!(reports(&mut world), []);
    world.state.apply(group(5, &json!({"phase": "Inqueue"})));
    assert_eq!(reports(&mut world), []);
    world.state.apply(group(6, &json!({})));
    assert_eq!(reports(&mut world)[0].phase, GroupPhase::Inqueue);
}

#[test]
fn a_status_that_says_it_all_is_left_alone_by_a_new_scheduler() {
    let mut world = World::new();
    world.node("a", "4");
    let condition = json!({"type": "Scheduled", "status": "True",
        "reason": "tasks in gang are ready to be scheduled"});
    let status = json!({"phase": "Running", "running": 2, "conditions": [condition]});
    world.state.apply(group(7, &status));
    for pod in ["g-0", "g-1"] {
        let mut value = member(pod, "g", 900, &json!({"cpu": "1"}));
        value["spec"]["nodeName"] = json!("a");
        value["status"] = json!({"phase": "Running"});
        world.pod(value);
    }
    assert_eq!(reports(&mut world), []);
    world.end("g-0");
    assert_eq!(reports(&mut world)[0].succeeded, 1);
}

#[test]
fn groups_of_other_schedulers_are_left_alone() {
    let mut world = World::new();
    world.node("a", "4");
    let mut value = member("g-0", "g", 900, &json!({"cpu": "1"}));
    value["spec"]["schedulerName"] = json!("somebody");
    world.pod(value);
    world.state.apply(group(1, &json!({})));
    assert_eq!(reports(&mut world), []);
}

#[test]
fn a_pod_that_was_told_before_is_not_told_again() {
    let mut world = World::new();
    world.node("a", "1").gang("g", 2, "1");
    world.decide();
    let said = world.said["g-0"].clone();
    let mut other = World::new();
    other.node("a", "1").gang("g", 2, "1");
    for pod in ["g-0", "g-1"] {
        let waits = json!([{"type": "PodScheduled", "status": "False", "message": said}]);
        other.gone(pod);
        let mut value = world.pods[pod].clone();
        value["status"] = json!({"conditions": waits});
        other.pod(value);
    }
    other.decide();
    assert!(other.said.is_empty(), "{:?}", other.said);
}

#[test]
fn what_no_decision_looks_at_is_no_news() {
    let mut world = World::new();
    world.node("a", "1").gang("g", 2, "1");
    world.decide();
    let pod = |change: fn(&mut Value)| {
        let mut value = world.pods["g-0"].clone();
        value["metadata"]["resourceVersion"] = json!("77");
        change(&mut value);
        Delta::Pod(Box::new(from_value(value).unwrap()))
    };
    assert!(!world.state.is_news(&pod(|_| {})));
    assert!(!world.state.is_news(&pod(|value| {
        value["status"] = json!({"conditions": [
            {"type": "PodScheduled", "status": "False", "message": "m"},
        ]});
    })));
    assert!(world.state.is_news(&pod(|value| value["status"] = json!({"phase": "Failed"}))));
}

#[test]
fn a_group_that_is_not_let_in_says_why() {
    let mut world = World::new();
    world.node("a", "4");
    world.state.apply(Delta::Group(Box::new(
        from_value(json!({
            "metadata": {"namespace": "n", "name": "big", "uid": "big"},
            "spec": {"minMember": 2, "minResources": {"cpu": "400"}},
        }))
        .unwrap(),
    )));
    let explained = world.state.explain(&key("big"), world.now).unwrap();
    assert_eq!(explained.constraint, Constraint::TooLarge);
    let words = "there is not enough in the cluster: cpu: 400 asked for, 4 free: 396 too little";
    assert_eq!(explained.message, words, "nothing is overused where nothing runs");
}

#[test]
fn what_waits_is_looked_at_when_it_grows_old() {
    let mut world = World::new();
    world.node("a", "1");
    assert_eq!(world.state.next_due(world.now), None);
    world.gang("g", 2, "1").decide();
    let made = world.now;
    assert_eq!(world.state.next_due(made), Some(made + 60));
    assert_eq!(world.state.next_due(made + 60), Some(made + 600));
    assert_eq!(world.state.next_due(made + 600), None);
}

#[test]
fn a_node_that_refuses_is_left_in_peace_for_a_while() {
    let mut world = World::new();
    world.node("a", "4");
    let refuse = |value: &mut Value| {
        value["status"] = json!({"phase": "Failed", "reason": "OutOfcpu"});
    };
    world.gang("g", 1, "1").decide();
    assert_eq!(world.node_of("g-0"), Some("a"));
    world.change("g-0", refuse).gang("h", 1, "1").decide();
    assert_eq!(world.node_of("h-0"), None);
    assert!(world.said["h-0"].contains("refused a pod"), "{}", world.said["h-0"]);
    assert_eq!(world.state.next_due(world.now), Some(world.now + 30));
    world.now += 30;
    world.decide();
    assert_eq!(world.node_of("h-0"), Some("a"));
    // Longer after the next one.
    world.change("h-0", refuse).gang("i", 1, "1").decide();
    world.now += 59;
    world.decide();
    assert_eq!(world.node_of("i-0"), None);
    world.now += 1;
    world.decide();
    assert_eq!(world.node_of("i-0"), Some("a"));
}

#[test]
fn whatever_a_kubelet_says_when_it_lets_a_pod_not_in_its_node_is_left_in_peace() {
    let next = |reason: &str, message: &str| {
        let mut world = World::new();
        world.node("a", "4").gang("g", 1, "1").decide();
        let refused = json!({"phase": "Failed", "reason": reason, "message": message});
        world.change("g-0", |pod| pod["status"] = refused).gang("h", 1, "1").decide();
        world.node_of("h-0").map(str::to_owned)
    };
    for reason in refusal::REASONS.into_iter().chain(["OutOfpods", "OutOfnvidia.com/gpu"]) {
        assert_eq!(next(reason, "Pod was rejected: …"), None, "{reason}");
    }
    assert_eq!(next("Evicted", "Pod was rejected: The node had condition: [DiskPressure]. "), None);
    let ran =
        [("Evicted", "The node was low on resource: memory. "), ("", ""), ("SysctlForbidden", "")];
    for (reason, message) in ran {
        assert_eq!(next(reason, message).as_deref(), Some("a"), "{reason}");
    }
}

#[test]
fn queues_add_up() {
    let mut world = World::new();
    world.node("a", "4").queue("root", &json!({})).queue("q", &json!({}));
    world.gang_with("g", 2, &json!({"minMember": 2, "queue": "q"}), &json!({"cpu": "1"}));
    world.gang_with("h", 5, &json!({"minMember": 5, "queue": "q"}), &json!({"cpu": "1"}));
    world.decide();
    world.decide();
    let closing = json!({"metadata": {"name": "empty"}, "status": {"state": "Closing"}});
    world.state.apply(Delta::Queue(Box::new(from_value(closing).unwrap())));
    let ledgers = world.state.ledgers();
    let of = |name: &str| &ledgers.iter().find(|one| one.queue.name == name).unwrap().status;
    assert_eq!((of("q").running, of("q").inqueue, of("q").state.as_str()), (1, 1, "Open"));
    assert_eq!((of("q").allocated.get("cpu"), of("root").allocated.get("cpu")), (2000, 2000));
    assert_eq!(of("empty").state, "Closed");
}
