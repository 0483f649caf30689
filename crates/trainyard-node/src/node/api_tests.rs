//! Registration and heartbeat against a small API server in memory: what is written, in which order, and
//! what happens when the server or someone else gets in the way.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::object::node_object;
use super::object::tests::facts;
use super::registration::register;
use super::*;

/// A Node, its Lease, and what was asked.
#[derive(Default)]
struct Store {
    node: Option<Value>,
    lease: Option<Value>,
    version: u64,
    log: Vec<String>,
    /// Statuses for the next requests, instead of doing them.
    trouble: Vec<u16>,
}

type Shared = Arc<Mutex<Store>>;

fn server() -> (Client, Shared) {
    let store = Shared::default();
    let shared = Arc::clone(&store);
    let service = tower::service_fn(move |request: Request<Body>| {
        let store = Arc::clone(&shared);
        async move {
            let (parts, body) = request.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            let (code, answer) =
                store.lock().unwrap().answer(&parts.method, parts.uri.path(), body);
            let answer = Body::from(answer.to_string().into_bytes());
            Ok::<_, Infallible>(Response::builder().status(code).body(answer).unwrap())
        }
    });
    (Client::new(service, "default"), store)
}

fn refusal(code: u16) -> (u16, Value) {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        _ => "InternalError",
    };
    let answer = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": "test",
    });
    (code, answer)
}

impl Store {
    fn answer(&mut self, method: &Method, path: &str, body: Value) -> (u16, Value) {
        self.log.push(format!("{method} {path}"));
        if !self.trouble.is_empty() {
            return refusal(self.trouble.remove(0));
        }
        self.version += 1;
        let version = self.version.to_string();
        let lease = path.contains("/leases");
        let slot = if lease { &mut self.lease } else { &mut self.node };
        match (method.as_str(), slot.as_mut()) {
            ("GET", Some(held)) => (200, held.clone()),
            ("GET" | "PUT" | "PATCH", None) => refusal(404),
            ("POST", Some(_)) => refusal(409),
            ("PUT", Some(held))
                if held["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] =>
            {
                refusal(409)
            }
            ("POST", None) | ("PUT", Some(_)) => {
                let mut body = body;
                body["metadata"]["resourceVersion"] = json!(version);
                if body["metadata"]["uid"].is_null() {
                    body["metadata"]["uid"] = json!(format!("uid-{version}"));
                }
                *slot = Some(body.clone());
                (if method == Method::POST { 201 } else { 200 }, body)
            }
            ("PATCH", Some(held)) => {
                merge(held, body);
                held["metadata"]["resourceVersion"] = json!(version);
                (200, held.clone())
            }
            _ => refusal(405),
        }
    }

    fn take_log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

/// Enough of a strategic merge for a Node: lists of `type`s are merged, unless told to replace.
fn merge(held: &mut Value, patch: Value) {
    match (held, patch) {
        (Value::Object(held), Value::Object(patch)) => {
            for (name, value) in patch {
                if value.is_null() {
                    held.remove(&name);
                } else {
                    merge(held.entry(name).or_insert(Value::Null), value);
                }
            }
        }
        (Value::Array(held), Value::Array(patch))
            if patch.iter().any(|one| one["type"].is_string()) =>
        {
            if patch.iter().any(|one| one["$patch"] == "replace") {
                held.clear();
                held.extend(patch.into_iter().filter(|one| one["type"].is_string()));
                return;
            }
            for one in patch.into_iter().filter(|one| one["type"].is_string()) {
                match held.iter_mut().find(|other| other["type"] == one["type"]) {
                    Some(other) => merge(other, one),
                    None => held.push(one),
                }
            }
        }
        (held, patch) => *held = patch,
    }
}

fn condition(store: &Shared, kind: &str) -> (String, String) {
    let store = store.lock().unwrap();
    let all = store.node.as_ref().unwrap()["status"]["conditions"].as_array().unwrap();
    let found = all.iter().find(|one| one["type"] == kind).unwrap();
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    (text("status"), text("reason"))
}

#[tokio::test]
async fn the_first_registration_is_one_write() {
    let (client, store) = server();
    let node = register(&client, &facts("n1")).await.unwrap();
    assert_eq!(node.metadata.uid.as_deref(), Some("uid-2"));
    let mut store = store.lock().unwrap();
    assert_eq!(store.take_log(), ["GET /api/v1/nodes/n1", "POST /api/v1/nodes"]);
    let declared = &store.node.as_ref().unwrap()["status"]["declaredFeatures"];
    assert_eq!(declared, &json!(["ExtendWebSocketsToKubelet"]));
}

#[tokio::test]
async fn coming_back_rewrites_the_status_and_only_what_differs_of_the_rest() {
    let (client, store) = server();
    let mut facts = facts("n1");
    register(&client, &facts).await.unwrap();
    {
        let mut store = store.lock().unwrap();
        let node = store.node.as_mut().unwrap();
        node["status"]["capacity"]["nvidia.com/gpu"] = json!("2");
        node["status"]["addresses"] = json!([{ "type": "Hostname", "address": "old" }]);
        let foreign = json!({ "type": "KernelDeadlock", "status": "False" });
        node["status"]["conditions"].as_array_mut().unwrap().push(foreign);
        store.take_log();
    }
    facts.rootless = false;
    register(&client, &facts).await.unwrap();
    let mut store = store.lock().unwrap();
    assert_eq!(
        store.take_log(),
        ["GET /api/v1/nodes/n1", "PATCH /api/v1/nodes/n1", "PATCH /api/v1/nodes/n1/status"]
    );
    let node = store.node.as_ref().unwrap();
    assert_eq!(node["metadata"]["labels"]["trainyard.dev/rootless"], "false");
    assert!(node["status"]["capacity"].get("nvidia.com/gpu").is_none());
    assert_eq!(
        node["status"]["addresses"],
        json!([
            { "type": "InternalIP", "address": "127.0.0.1" },
            { "type": "InternalIP", "address": "10.77.0.2" },
        ])
    );
    let conditions = node["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|one| one["type"] == "KernelDeadlock"));
}

#[tokio::test]
async fn a_foreign_node_is_not_touched() {
    let (client, store) = server();
    let mut foreign = serde_json::to_value(node_object(&facts("n1"), Timestamp::now())).unwrap();
    foreign["metadata"]["annotations"] = json!({});
    foreign["status"]["nodeInfo"]["containerRuntimeVersion"] = json!("containerd://2");
    store.lock().unwrap().node = Some(foreign.clone());
    let error = register(&client, &facts("n1")).await.unwrap_err();
    assert_eq!(error.kind(), "ForeignNode");
    assert_eq!(store.lock().unwrap().node, Some(foreign));
}

#[tokio::test]
async fn the_node_of_an_agent_elsewhere_is_taken_when_its_lease_has_ended() {
    let (client, store) = server();
    let mut there = serde_json::to_value(node_object(&facts("n1"), Timestamp::now())).unwrap();
    there["metadata"]["annotations"]["trainyard.dev/agent"] = json!("m2/b/1/77/9");
    let lease = |renewed: Timestamp| {
        json!({
            "metadata": { "name": "n1", "namespace": "kube-node-lease" },
            "spec": { "leaseDurationSeconds": 40, "renewTime": renewed.to_string() },
        })
    };
    {
        let mut store = store.lock().unwrap();
        store.node = Some(there);
        store.lease = Some(lease(Timestamp::now()));
    }
    let error = register(&client, &facts("n1")).await.unwrap_err();
    assert_eq!(error.kind(), "HeldNode");
    assert!(error.to_string().contains("process 77 on machine m2, whose lease ends in"), "{error}");
    assert!(error.passes());
    store.lock().unwrap().lease = Some(lease(Timestamp::from_second(1).unwrap()));
    register(&client, &facts("n1")).await.unwrap();
    let store = store.lock().unwrap();
    let agent = &store.node.as_ref().unwrap()["metadata"]["annotations"]["trainyard.dev/agent"];
    assert_eq!(agent, &json!(facts("n1").agent.to_string()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_busy_is_asked_again_and_one_that_refuses_is_not() {
    let (client, store) = server();
    let stop = CancellationToken::new();
    let within = async |seconds| {
        register_within(&client, &facts("n1"), Duration::from_secs(seconds), &stop).await
    };
    store.lock().unwrap().trouble = vec![503, 500, 429];
    assert!(within(60).await.unwrap().is_some());
    store.lock().unwrap().trouble = vec![403];
    let error = within(60).await.unwrap_err();
    assert!(error.to_string().starts_with("reading node \"n1\":"), "{error}");
    store.lock().unwrap().trouble = vec![503; 1000];
    let error = within(5).await.unwrap_err();
    assert!(error.passes());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_the_server_can_be_told_to_stop() {
    let (client, store) = server();
    store.lock().unwrap().trouble = vec![503; 1000];
    let stop = CancellationToken::new();
    let facts = facts("n1");
    let patience = Duration::from_hours(1);
    let waiting = register_within(&client, &facts, patience, &stop);
    let later = async {
        tokio::time::sleep(Duration::from_mins(1)).await;
        stop.cancel();
    };
    let began = tokio::time::Instant::now();
    let (registered, ()) = tokio::join!(waiting, later);
    assert_eq!(registered.unwrap(), None);
    assert!(began.elapsed() < Duration::from_secs(61), "{:?}", began.elapsed());
    assert!(server_version(&client, patience, &stop).await.unwrap().is_none());
}

/// What was asked for may have been done: the Node must not stay ready.
#[tokio::test(start_paused = true)]
async fn a_registration_that_is_broken_off_leaves_no_ready_node() {
    let (client, store) = server();
    register(&client, &facts("n1")).await.unwrap();
    assert_eq!(condition(&store, "Ready").0, "True");
    let stop = CancellationToken::new();
    stop.cancel();
    let registered = register_within(&client, &facts("n1"), Duration::from_secs(9), &stop).await;
    assert_eq!(registered.unwrap(), None);
    assert_eq!(condition(&store, "Ready").0, "False");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_anything_is_there() {
    let (client, store) = server();
    let stop = CancellationToken::new();
    store.lock().unwrap().trouble = vec![503, 503, 403];
    let answer = server_version(&client, Duration::from_mins(1), &stop).await.unwrap();
    assert_eq!(answer.unwrap().major, "");
    assert_eq!(store.lock().unwrap().take_log().len(), 3);
}

struct Beating {
    store: Shared,
    facts: watch::Sender<NodeFacts>,
    known: watch::Receiver<Arc<Node>>,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

async fn beating(timing: Timing) -> Beating {
    let (client, store) = server();
    let node = register(&client, &facts("n1")).await.unwrap();
    let (facts, facts_seen) = watch::channel(facts("n1"));
    let (heart, known) = Heartbeat::new(client, node, facts_seen, PathBuf::from("/"), timing);
    let stop = CancellationToken::new();
    let task = tokio::spawn(heart.run(stop.clone()));
    Beating { store, facts, known, stop, task }
}

fn quick() -> Timing {
    Timing {
        lease: Duration::from_secs(40),
        renew: Duration::from_millis(20),
        look: Duration::from_millis(20),
        refresh: Duration::from_mins(5),
    }
}

/// Waits, for a bounded time, until something holds.
async fn until(store: &Shared, holds: impl Fn(&Store) -> bool) {
    for _ in 0..500 {
        if holds(&store.lock().unwrap()) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("did not come about: {:?}", store.lock().unwrap().node);
}

#[tokio::test]
async fn the_lease_is_made_renewed_and_made_again() {
    let beating = beating(quick()).await;
    until(&beating.store, |store| store.lease.is_some()).await;
    let first = beating.store.lock().unwrap().lease.clone().unwrap();
    assert_eq!(first["spec"]["leaseDurationSeconds"], 40);
    assert_eq!(first["spec"]["holderIdentity"], "n1");
    assert_eq!(first["metadata"]["ownerReferences"][0]["uid"], "uid-2");
    assert_eq!(first["metadata"]["ownerReferences"][0]["kind"], "Node");
    let renewed = |store: &Store| {
        store
            .lease
            .as_ref()
            .is_some_and(|now| now["spec"]["renewTime"] != first["spec"]["renewTime"])
    };
    until(&beating.store, renewed).await;
    // Removed, and written by someone else in between.
    beating.store.lock().unwrap().lease = None;
    until(&beating.store, |store| store.lease.is_some()).await;
    let before = {
        let mut store = beating.store.lock().unwrap();
        store.lease.as_mut().unwrap()["metadata"]["resourceVersion"] = json!("99999");
        store.lease.clone().unwrap()
    };
    until(&beating.store, |store| {
        store
            .lease
            .as_ref()
            .is_some_and(|now| now["spec"]["renewTime"] != before["spec"]["renewTime"])
    })
    .await;
    beating.stop.cancel();
    beating.task.await.unwrap();
}

#[tokio::test]
async fn changes_are_written_and_quiet_costs_nothing() {
    let beating = beating(quick()).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let log = beating.store.lock().unwrap().take_log();
    assert!(log.iter().all(|line| !line.starts_with("PATCH")), "{log:?}");
    // The node controller gives the node up: it is set right.
    {
        let mut store = beating.store.lock().unwrap();
        let node = store.node.as_mut().unwrap();
        let conditions = node["status"]["conditions"].as_array_mut().unwrap();
        conditions.iter_mut().find(|one| one["type"] == "Ready").unwrap()["status"] =
            json!("Unknown");
    }
    let ready = |store: &Store| {
        store.node.as_ref().is_some_and(|node| {
            node["status"]["conditions"]
                .as_array()
                .unwrap()
                .iter()
                .any(|one| one["type"] == "Ready" && one["status"] == "True")
        })
    };
    until(&beating.store, ready).await;
    beating.facts.send_modify(|facts| {
        facts.labels.insert("disk".to_owned(), "ssd".to_owned());
    });
    until(&beating.store, |store| {
        store.node.as_ref().is_some_and(|node| node["metadata"]["labels"]["disk"] == "ssd")
    })
    .await;
    // Deleted by hand: it comes back, with another UID.
    beating.store.lock().unwrap().node = None;
    until(&beating.store, |store| store.node.is_some()).await;
    let uid = beating.store.lock().unwrap().node.as_ref().unwrap()["metadata"]["uid"].clone();
    let mut known = beating.known.clone();
    let seen = known.wait_for(|node| node.metadata.uid.as_deref() == uid.as_str());
    tokio::time::timeout(Duration::from_secs(5), seen).await.unwrap().unwrap();
    beating.stop.cancel();
    beating.task.await.unwrap();
}

#[tokio::test]
async fn at_the_end_the_node_is_not_ready() {
    let beating = beating(Timing::default()).await;
    until(&beating.store, |store| store.lease.is_some()).await;
    assert_eq!(condition(&beating.store, "Ready").0, "True");
    beating.stop.cancel();
    beating.task.await.unwrap();
    assert_eq!(condition(&beating.store, "Ready"), ("False".to_owned(), "AgentStopped".to_owned()));
}

#[tokio::test]
async fn a_node_that_was_deleted_is_not_made_for_the_farewell() {
    let beating = beating(Timing::default()).await;
    until(&beating.store, |store| store.lease.is_some() && store.log.len() > 4).await;
    beating.store.lock().unwrap().node = None;
    beating.stop.cancel();
    beating.task.await.unwrap();
    assert_eq!(beating.store.lock().unwrap().node, None);
}

#[tokio::test]
async fn the_status_is_refreshed_although_nothing_changes() {
    let beating = beating(Timing { refresh: Duration::from_millis(50), ..quick() }).await;
    until(&beating.store, |store| {
        store.log.iter().filter(|line| line.starts_with("PATCH")).count() >= 2
    })
    .await;
    beating.stop.cancel();
    beating.task.await.unwrap();
}

#[tokio::test]
async fn trouble_passes() {
    let beating = beating(quick()).await;
    beating.store.lock().unwrap().trouble = vec![500; 20];
    until(&beating.store, |store| store.trouble.is_empty() && store.lease.is_some()).await;
    beating.stop.cancel();
    beating.task.await.unwrap();
    assert_eq!(condition(&beating.store, "Ready").1, "AgentStopped");
}
