//! The scheduler against an API server in memory, in paused time.

use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Constraint, Options, explain, run};
use crate::fake::{Fake, Reply};
use crate::toy::pass_time;
use crate::toy_server::{Fault, Server};
use crate::{Error, Time};

mod volumes;

const HOUR: u64 = 3_600_000;

fn options() -> Options {
    Options { names: vec!["volcano".to_owned()], time: Time::OfRuntime, ..Options::default() }
}

/// A scheduler that runs until dropped, and what it asks.
fn start(server: &Server) -> (Fake, DropGuard) {
    let (fake, stop) = (server.fake(), CancellationToken::new());
    tokio::spawn(run(fake.client(), options(), stop.clone()));
    (fake, stop.drop_guard())
}

fn node(server: &Server, name: &str, cpu: &str) {
    let has = json!({"cpu": cpu, "pods": "110"});
    server
        .make_for_all("nodes", json!({"metadata": {"name": name}, "status": {"allocatable": has}}));
}

fn group(server: &Server, name: &str, size: usize) {
    let spec = json!({"minMember": size});
    server.make("podgroups", json!({"metadata": {"name": name}, "spec": spec}));
}

fn pod(server: &Server, name: &str, group: Option<&str>, cpu: &str, priority: i64) {
    let mut metadata = json!({"name": name});
    if let Some(group) = group {
        metadata["annotations"] = json!({"scheduling.k8s.io/group-name": group});
    }
    let spec = json!({"schedulerName": "volcano", "priority": priority,
        "containers": [{"resources": {"requests": {"cpu": cpu}}}]});
    server.make_pod(json!({"metadata": metadata, "spec": spec}));
}

fn node_of(server: &Server, pod: &str) -> Option<String> {
    let pod = server.get("pods", pod)?;
    pod["spec"]["nodeName"].as_str().map(str::to_owned)
}

/// Writes that are neither events nor about queues.
fn writes(fake: &Fake) -> Vec<String> {
    let beside = |line: &String| line.contains("/events") || line.contains("/queues");
    fake.writes().into_iter().filter(|line| !beside(line)).collect()
}

fn count(lines: &[String], part: &str) -> usize {
    lines.iter().filter(|line| line.contains(part)).count()
}

#[tokio::test(start_paused = true)]
async fn a_gang_is_bound_reported_once_and_then_costs_nothing() {
    let server = Server::default();
    node(&server, "a", "4");
    group(&server, "g", 2);
    let (fake, _stop) = start(&server);
    pass_time(500).await;
    let status = |field: &str| server.get("podgroups", "g").unwrap()["status"][field].clone();
    assert_eq!(status("phase"), "Inqueue");
    pod(&server, "g-0", Some("g"), "1", 0);
    pass_time(100).await;
    assert_eq!(node_of(&server, "g-0"), None);
    pod(&server, "g-1", Some("g"), "1", 0);
    pass_time(3_000).await;
    assert_eq!(node_of(&server, "g-1").as_deref(), Some("a"));
    assert_eq!(status("phase"), "Running");
    assert_eq!(status("conditions")[0]["type"], "Scheduled");
    for pod in ["g-0", "g-1"] {
        server.pod_phase(pod, "Running");
    }
    pass_time(3_000).await;
    assert_eq!(status("running"), 2);
    let lines = writes(&fake);
    assert_eq!(count(&lines, "/binding"), 2, "{lines:#?}");
    assert_eq!(count(&lines, "/pods/g-0/status"), 0, "held back: {lines:#?}");
    assert!(count(&lines, "podgroups/g") <= 4, "{lines:#?}");
    let scheduled = server.events().into_iter().filter(|one| one.starts_with("Successfully"));
    assert_eq!(scheduled.count(), 2);
    let before = fake.writes().len();
    pass_time(HOUR).await;
    assert_eq!(fake.writes().len(), before);
    // A scheduler that comes later finds everything said.
    let (later, _stop) = start(&server);
    pass_time(HOUR).await;
    assert_eq!(later.writes(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_gang_without_room_says_why_once_and_not_too_often() {
    let server = Server::default();
    node(&server, "a", "1");
    group(&server, "g", 2);
    for name in ["g-0", "g-1"] {
        pod(&server, name, Some("g"), "1", 0);
    }
    let (fake, _stop) = start(&server);
    pass_time(2_000).await;
    let told = &server.get("pods", "g-0").unwrap()["status"]["conditions"][0];
    assert_eq!((&told["type"], &told["status"]), (&json!("PodScheduled"), &json!("False")));
    let group = server.get("podgroups", "g").unwrap();
    let condition = &group["status"]["conditions"][0];
    assert_eq!(condition["type"], "Unschedulable");
    assert_eq!(
        (&condition["status"], &condition["reason"]),
        (&json!("True"), &json!("NotEnoughResources"))
    );
    let message = condition["message"].as_str().unwrap();
    let words = "1 of 2 pods fit; cpu: 2 asked for, 1 free: 1 too little; 1/2 tasks in gang \
                 unschedulable: ";
    assert!(message.starts_with(words), "{message}");
    assert!(server.events().contains(&message.to_owned()));
    let before = writes(&fake).len();
    // What changes nothing of it is not told again, a change with pauses.
    for index in 0..10 {
        node(&server, &format!("small-{index}"), "100m");
        pass_time(100).await;
    }
    pass_time(20_000).await;
    let since = writes(&fake).split_off(before);
    assert!(count(&since, "/pods/g-0/status") <= 2, "{since:#?}");
    let before = writes(&fake).len();
    pass_time(HOUR).await;
    assert_eq!(writes(&fake).len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_volcanos_definitions_is_scheduled() {
    let server = Server::default();
    server.faults(|asked| {
        asked.path.contains("volcano.sh").then(|| Fault::Before(Reply::refuse(404, "NotFound", "")))
    });
    node(&server, "a", "4");
    pod(&server, "p", None, "1", 0);
    let (_fake, _stop) = start(&server);
    pass_time(1_000).await;
    assert_eq!(node_of(&server, "p").as_deref(), Some("a"));
    assert_eq!(server.names("queues"), Vec::<String>::new());
    // They are found when they appear.
    server.faults(|_| None);
    pass_time(15_000).await;
    assert_eq!(server.names("queues"), ["/default", "/root"]);
}

#[tokio::test(start_paused = true)]
async fn a_plain_pod_gets_a_group_once_and_then_costs_nothing() {
    let server = Server::default();
    node(&server, "a", "4");
    pod(&server, "p", None, "1", 0);
    let (fake, _stop) = start(&server);
    pass_time(10_000).await;
    let pod = server.get("pods", "p").unwrap();
    let name = format!("podgroup-{}", pod["metadata"]["uid"].as_str().unwrap());
    assert_eq!(pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"], name.as_str());
    assert_eq!(server.get("podgroups", &name).unwrap()["status"]["phase"], "Running");
    assert_eq!(count(&writes(&fake), "POST /apis/scheduling.volcano.sh"), 1);
    let before = fake.writes().len();
    pass_time(HOUR).await;
    assert_eq!(fake.writes().len(), before);
}

#[tokio::test(start_paused = true)]
async fn an_eviction_is_told_noted_and_only_then_done() {
    let server = Server::default();
    node(&server, "a", "1");
    pod(&server, "low", None, "1", 1);
    let (fake, _stop) = start(&server);
    pass_time(1_000).await;
    assert_eq!(node_of(&server, "low").as_deref(), Some("a"));
    server.pod_phase("low", "Running");
    pod(&server, "high", None, "1", 100);
    pass_time(1_000).await;
    let low = server.get("pods", "low").unwrap();
    assert!(low["metadata"]["deletionTimestamp"].is_string());
    let condition = &low["status"]["conditions"][0];
    assert_eq!(condition["type"], "DisruptionTarget");
    assert_eq!(condition["reason"], "PreemptionByScheduler");
    let lines = writes(&fake);
    let place = |line: &str| lines.iter().position(|one| one.ends_with(line));
    let (noted, done) =
        (place("pods/low/status"), place("DELETE /api/v1/namespaces/default/pods/low"));
    assert!(noted.is_some() && noted < done, "{lines:#?}");
    let high = server.get("pods", "high").unwrap();
    assert_eq!(high["status"]["nominatedNodeName"], "a");
    // For the pod, or for the group that is made for it meanwhile.
    let told = |event: &String| event.starts_with("Pod is evicted, because of preempt: room for ");
    assert!(server.events().iter().any(told), "{:?}", server.events());
    server.delete("pods", "low");
    pass_time(1_000).await;
    assert_eq!(node_of(&server, "high").as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_binding_that_fails_is_tried_again_with_longer_pauses() {
    let server = Server::default();
    node(&server, "a", "4");
    pod(&server, "p", None, "1", 0);
    let mut left = 3;
    server.faults(move |asked| {
        let fails = asked.path.ends_with("/binding") && left > 0;
        left -= i32::from(fails);
        fails.then(|| Fault::Before(Reply::refuse(500, "InternalError", "p")))
    });
    let (fake, _stop) = start(&server);
    pass_time(900).await;
    assert_eq!(count(&fake.writes(), "/binding"), 1);
    pass_time(2_500).await;
    assert_eq!(count(&fake.writes(), "/binding"), 3);
    pass_time(5_000).await;
    assert_eq!((count(&fake.writes(), "/binding"), node_of(&server, "p").is_some()), (4, true));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_refuses_is_tried_again_without_an_event() {
    let server = Server::default();
    node(&server, "a", "4");
    pod(&server, "p", None, "1", 0);
    let (_fake, _stop) = start(&server);
    pass_time(1_000).await;
    server.change("pods", "p", |pod| {
        pod["status"] = json!({"phase": "Failed", "reason": "OutOfcpu"});
    });
    pod(&server, "q", None, "1", 0);
    pass_time(20_000).await;
    assert_eq!(node_of(&server, "q"), None);
    pass_time(15_000).await;
    assert_eq!(node_of(&server, "q").as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn a_report_that_was_lost_is_written_again() {
    let server = Server::default();
    node(&server, "a", "4");
    let mut left = 2;
    server.faults(move |asked| {
        let fails = asked.method == "PATCH" && asked.path.contains("podgroups") && left > 0;
        left -= i32::from(fails);
        fails.then(|| Fault::Before(Reply::refuse(500, "InternalError", "g")))
    });
    group(&server, "g", 2);
    let (_fake, _stop) = start(&server);
    pass_time(500).await;
    assert_eq!(server.get("podgroups", "g").unwrap()["status"], Value::Null);
    pass_time(5_000).await;
    assert_eq!(server.get("podgroups", "g").unwrap()["status"]["phase"], "Inqueue");
}

fn queue_status(server: &Server, name: &str) -> Value {
    server.get_for_all("queues", name).unwrap()["status"].clone()
}

#[tokio::test(start_paused = true)]
async fn queues_are_made_summed_up_closed_and_opened() {
    let server = Server::default();
    node(&server, "a", "4");
    let (fake, _stop) = start(&server);
    pass_time(3_000).await;
    let default = server.get_for_all("queues", "default").unwrap();
    assert_eq!(default["spec"], json!({"weight": 1, "reclaimable": true, "parent": "root"}));
    assert_eq!(default["status"]["state"], "Open");
    group(&server, "g", 1);
    pod(&server, "g-0", Some("g"), "1500m", 0);
    pass_time(5_000).await;
    let status = queue_status(&server, "default");
    assert_eq!((&status["allocated"]["cpu"], &status["running"]), (&json!("1500m"), &json!(1)));
    assert_eq!(queue_status(&server, "root")["allocated"]["cpu"], "1500m");
    let order = |name: &str, action: &str| {
        server.make("commands", json!({"metadata": {"name": name}, "action": action,
            "target": {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": "default"}}));
    };
    order("close", "CloseQueue");
    pass_time(3_000).await;
    assert_eq!(queue_status(&server, "default")["state"], "Closing");
    assert_eq!(server.names("commands"), Vec::<String>::new());
    server.delete("pods", "g-0");
    server.delete("podgroups", "g");
    pass_time(3_000).await;
    let status = queue_status(&server, "default");
    assert_eq!((&status["state"], &status["allocated"]["cpu"]), (&json!("Closed"), &Value::Null));
    order("open", "OpenQueue");
    pass_time(3_000).await;
    assert_eq!(queue_status(&server, "default")["state"], "Open");
    let before = fake.writes().len();
    pass_time(HOUR).await;
    assert_eq!(fake.writes().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_does_not_count_is_told_of_once() {
    let server = Server::default();
    let spec = json!({"parent": "team"});
    server.make_for_all("queues", json!({"metadata": {"name": "q"}, "spec": spec}));
    let (_fake, _stop) = start(&server);
    pass_time(60_000).await;
    let told = server.events().into_iter().filter(|one| one.contains("is not honoured yet"));
    assert_eq!(told.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_queue_that_names_no_parent_is_one_of_roots() {
    let server = Server::default();
    for (name, spec) in [("q", json!({"weight": 2})), ("r", json!({"parent": "team"}))] {
        server.make_for_all("queues", json!({"metadata": {"name": name}, "spec": spec}));
    }
    let (fake, _stop) = start(&server);
    pass_time(10_000).await;
    let spec = |name: &str| server.get_for_all("queues", name).unwrap()["spec"].clone();
    assert_eq!(spec("q"), json!({"weight": 2, "parent": "root"}));
    assert_eq!(spec("r"), json!({"parent": "team"}));
    assert_eq!(spec("root")["parent"], Value::Null);
    let written = |line: &&String| line.starts_with("PATCH") && line.ends_with("/queues/q");
    assert_eq!(fake.writes().iter().filter(written).count(), 1, "{:#?}", fake.writes());
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_explained_from_one_look() {
    let server = Server::default();
    node(&server, "a", "1");
    group(&server, "g", 2);
    for name in ["g-0", "g-1"] {
        pod(&server, name, Some("g"), "1", 0);
    }
    let fake = server.fake();
    let explained = explain(fake.client(), &options(), "default", "g").await.unwrap();
    assert_eq!((explained.constraint, explained.waiting), (Constraint::TooLarge, 2));
    let by_pod = explain(fake.client(), &options(), "default", "g-1").await.unwrap();
    assert_eq!(by_pod, explained);
    let error = explain(fake.client(), &options(), "default", "nobody").await.unwrap_err();
    assert_eq!(error.kind(), "no_group");
    assert!(fake.writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_listed_is_named_all_at_once() {
    let fake = Fake::new(|asked| match asked.path.rsplit('/').next() {
        Some("nodes" | "queues") => Reply::refuse(403, "Forbidden", ""),
        Some("podgroups") => Reply::refuse(404, "NotFound", ""),
        _ => Reply::Json(200, json!({"metadata": {}, "items": []})),
    });
    let error = explain(fake.client(), &options(), "default", "g").await.unwrap_err();
    let Error::Forbidden { denied } = error else { panic!("{error}") };
    let named: Vec<&str> = denied.iter().map(|one| one.resource).collect();
    assert_eq!(named, ["nodes", "queues"]);
    assert!(denied[0].problem.contains("Forbidden"), "{denied:?}");
}

#[tokio::test(start_paused = true)]
async fn it_stops_when_told() {
    let server = Server::default();
    let (fake, stop) = (server.fake(), CancellationToken::new());
    let running = tokio::spawn(run(fake.client(), options(), stop.clone()));
    pass_time(1_000).await;
    stop.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(20), running).await;
    assert!(ended.unwrap().unwrap().is_ok());
}
