//! `logs` and `explain` where not everything may be read or reached: against a server that answers what
//! real ones were seen to answer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::process::{Ended, run};

/// A path and what it is answered with.
type Route = (&'static str, u16, Value);

/// A server of few words, for as long as the test.
struct Server {
    folder: tempfile::TempDir,
}

impl Server {
    fn with(routes: Vec<Route>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let mut all = discovery();
        all.extend(routes);
        let routes = Arc::new(all);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let routes = Arc::clone(&routes);
                std::thread::spawn(move || answer(stream, &routes));
            }
        });
        let folder = tempfile::tempdir().expect("a folder");
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": format!("http://{address}")}}],
            "users": [{"name": "u", "user": {}}],
            "contexts": [{"name": "x", "context":
                {"cluster": "c", "user": "u", "namespace": "team"}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), config.to_string()).expect("a file");
        Self { folder }
    }

    fn run(&self, args: &[&str]) -> Ended {
        let file = self.folder.path().join("kubeconfig");
        run(&[args, &["--kubeconfig", file.to_str().expect("the path is text")]].concat())
    }
}

/// Answers one request after another on a connection.
fn answer(stream: TcpStream, routes: &[Route]) {
    let mut writer = stream.try_clone().expect("a second handle");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    while let Some(first) = lines.next() {
        let path = first.split([' ', '?']).nth(1).unwrap_or_default().to_owned();
        for header in lines.by_ref() {
            if header.is_empty() {
                break;
            }
        }
        let found = routes.iter().find(|(route, ..)| *route == path);
        let (code, body) = found.map_or_else(
            || (404, refusal(404, "the server could not find the requested resource")),
            |(_, code, body)| (*code, body.clone()),
        );
        // A log is text, everything else JSON.
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        let head = format!("HTTP/1.1 {code} x\r\ncontent-length: {}\r\n\r\n", body.len());
        if writer.write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn discovery() -> Vec<Route> {
    let resources = |all: &[(&str, &str, &str)]| -> Value {
        let one = |(plural, kind, scope): &(&str, &str, &str)| {
            json!({"resource": plural, "responseKind": {"kind": kind}, "scope": scope,
                "singularResource": kind.to_lowercase(), "verbs": ["get", "list"]})
        };
        all.iter().map(one).collect()
    };
    let group = |name: &str, version: &str, all: &[(&str, &str, &str)]| {
        json!({"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": name},
            "versions": [{"version": version, "resources": resources(all)}]}]})
    };
    let core = [
        ("pods", "Pod", "Namespaced"),
        ("events", "Event", "Namespaced"),
        ("nodes", "Node", "Cluster"),
    ];
    vec![
        ("/api", 200, group("", "v1", &core)),
        ("/apis", 200, group("kubeflow.org", "v1", &[("tfjobs", "TFJob", "Namespaced")])),
    ]
}

fn refusal(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message,
        "reason": "x", "code": code})
}

fn forbidden(path: &'static str, resource: &str) -> Route {
    let words = format!(
        "{resource} is forbidden: User \"ann\" cannot list resource \"{resource}\" at the cluster scope"
    );
    (path, 403, refusal(403, &words))
}

fn job(conditions: &Value, failure: &Value) -> Route {
    let job = json!({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob",
        "metadata": {"name": "mnist", "namespace": "team", "uid": "u"},
        "spec": {"runPolicy": {"cleanPodPolicy": "All"},
                 "tfReplicaSpecs": {"Worker": {"replicas": 4}}},
        "status": {"conditions": conditions, "failure": failure,
            "replicaRecords": [
                {"replica": "worker-0", "restarts": 1, "lastRestartTime": "2026-01-01T00:00:00Z"}]},
    });
    ("/apis/kubeflow.org/v1/namespaces/team/tfjobs/mnist", 200, job)
}

fn pod(index: u32, spec: &Value, status: &Value) -> Value {
    let mut spec = spec.clone();
    spec["containers"] = json!([{"name": "tensorflow"}]);
    json!({
        "metadata": {"name": format!("mnist-worker-{index}"), "namespace": "team",
            "uid": format!("p{index}"), "ownerReferences": [{"uid": "u"}],
            "labels": {"training.kubeflow.org/job-name": "mnist",
                "training.kubeflow.org/replica-type": "worker",
                "training.kubeflow.org/replica-index": index.to_string()}},
        "spec": spec, "status": status,
    })
}

/// Four workers: one runs, one's log is forbidden, one's node is away, one waits for a node.
fn pods() -> Route {
    let placed = json!({"nodeName": "b"});
    let runs = json!({"phase": "Running", "containerStatuses": [
        {"name": "tensorflow", "restartCount": 0, "state": {"running": {}}}]});
    let waits = json!({"phase": "Pending", "conditions": [{"type": "PodScheduled",
        "status": "False", "message": "0/3 nodes are available:\n3 Insufficient cpu."}]});
    let all = json!([
        pod(0, &placed, &runs),
        pod(1, &placed, &runs),
        pod(2, &placed, &runs),
        pod(3, &json!({}), &waits)
    ]);
    ("/api/v1/namespaces/team/pods", 200, json!({"kind": "PodList", "items": all}))
}

fn events() -> Route {
    let all = json!([
        {"type": "Warning", "reason": "FailedScheduling", "message": "no\nroom",
         "lastTimestamp": "2026-01-01T00:00:00Z",
         "involvedObject": {"kind": "Pod", "name": "mnist-worker-3"}},
        {"type": "Normal", "reason": "TFJobSucceeded", "message": "all is done",
         "lastTimestamp": "2026-01-01T00:00:00Z",
         "involvedObject": {"kind": "TFJob", "name": "digits"}},
    ]);
    ("/api/v1/namespaces/team/events", 200, json!({"kind": "EventList", "items": all}))
}

fn running() -> Value {
    json!([{"type": "Running", "status": "True"}])
}

#[test]
fn logs_show_what_they_reach_and_name_the_rest() {
    let log = "2026-01-01T00:00:00Z one\n2026-01-01T00:00:01Z two\n";
    let no_right =
        "pods \"mnist-worker-1\" is forbidden: User \"ann\" cannot get resource \"pods/log\"";
    let away = "Get \"https://10.0.0.3:10250/containerLogs/x\": dial tcp: no route to host";
    let server = Server::with(vec![
        job(&running(), &Value::Null),
        pods(),
        ("/api/v1/namespaces/team/pods/mnist-worker-0/log", 200, json!(log)),
        ("/api/v1/namespaces/team/pods/mnist-worker-1/log", 403, refusal(403, no_right)),
        ("/api/v1/namespaces/team/pods/mnist-worker-2/log", 500, refusal(500, away)),
    ]);
    let ended = server.run(&["logs", "mnist"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert_eq!(ended.out, "worker-0 | one\nworker-0 | two\n");
    let said = [
        "worker-1: forbidden: User \"ann\" cannot get resource \"pods/log\"".to_owned(),
        format!("worker-2: its node b cannot be asked: {away}"),
        "worker-3: it has not started: 0/3 nodes are available: 3 Insufficient cpu.".to_owned(),
    ];
    assert_eq!(ended.err, said.map(|line| format!("not shown: {line}\n")).concat());
    let ended = server.run(&["logs", "mnist", "--replica", "worker-0"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "one\ntwo\n"), "{}", ended.err);
}

#[test]
fn a_replaced_pod_has_no_previous_log_and_says_where_its_end_is_told() {
    let server = Server::with(vec![job(&running(), &Value::Null), pods()]);
    let ended = server.run(&["logs", "mnist", "--previous"]);
    assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{}", ended.err);
    let said =
        "not shown: worker-0: its pod was replaced: the one before is gone and its log with it";
    assert!(ended.err.starts_with(said), "{}", ended.err);
    assert!(ended.err.contains("`trainyard describe`"), "{}", ended.err);
}

#[test]
fn a_job_whose_pods_are_gone_tells_what_its_status_knows() {
    let conditions = json!([{"type": "Failed", "status": "True", "message": "worker-1 failed"}]);
    let failure = json!({"pod": "mnist-worker-1", "message": "Traceback\nKeyError"});
    let nothing = ("/api/v1/namespaces/team/pods", 200, json!({"kind": "PodList", "items": []}));
    let server = Server::with(vec![job(&conditions, &failure), nothing, events()]);
    let ended = server.run(&["logs", "mnist"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    let expected = "mnist: Failed: worker-1 failed\n\
        last words of mnist-worker-1:\n  Traceback\n  KeyError\n\
        not shown: worker-0, worker-1, worker-2 and worker-3: its pod was deleted when the job ended \
        (cleanPodPolicy: All)\n";
    assert_eq!(ended.err, expected);
    // One that is gone itself is known by its events.
    let ended = server.run(&["logs", "digits"]);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("the job \"digits\" is gone"), "{}", ended.err);
    assert!(ended.err.contains("TFJobSucceeded: all is done"), "{}", ended.err);
}

#[test]
fn explain_works_with_rights_in_one_namespace() {
    let server = Server::with(vec![
        job(&running(), &Value::Null),
        pods(),
        events(),
        forbidden("/api/v1/pods", "pods"),
        forbidden("/api/v1/nodes", "nodes"),
    ]);
    let ended = server.run(&["explain", "mnist"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    for part in [
        "tfjob.kubeflow.org/mnist: 1 pod has no node\n",
        "  pods       worker-3: 0/3 nodes are available: 3 Insufficient cpu.\n",
        "FailedScheduling of pod/mnist-worker-3: no room\n",
        "  not seen   nodes (what each has left, and what keeps it out): forbidden: User \"ann\" cannot",
        "takes the right to list pods and nodes\n",
        "ClusterRole trainyard-explain",
    ] {
        assert!(ended.out.contains(part), "{part}\n--- in\n{}", ended.out);
    }
    let ended = server.run(&["explain", "mnist", "-o", "json"]);
    let shown: Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!(shown["notSeen"][1]["resource"], "nodes");
    assert_eq!(shown["waitingPods"][0]["replica"], "worker-3");
}

#[test]
fn messages_of_several_lines_do_not_tear_tables() {
    let server = Server::with(vec![events()]);
    let ended = server.run(&["events", "--no-headers"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let rows: Vec<&str> = ended.out.lines().collect();
    assert_eq!(rows.len(), 2, "{}", ended.out);
    assert!(rows[0].ends_with("Pod/mnist-worker-3   no room"), "{}", ended.out);
}
