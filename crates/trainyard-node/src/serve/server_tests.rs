//! Who is let in, the small routes, and stopping; over real TLS on the loopback.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::fake::{Authority, ClientCertificate, FakeNode, FakePods, connect};

const SOON: Duration = Duration::from_secs(20);

/// What a client with this certificate is told; none when it is not even heard.
async fn answered(node: &FakeNode, client: Option<ClientCertificate>) -> Option<String> {
    let mut stream = connect(node.address, client).await.ok()?;
    // With TLS 1.3 the client hears of the refusal only when it reads.
    let ask = b"GET /pods HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n";
    stream.write_all(ask).await.ok()?;
    let mut answer = Vec::new();
    // A node that closes without a farewell has still said what it said.
    let _closed = timeout(SOON, stream.read_to_end(&mut answer)).await.unwrap();
    (!answer.is_empty()).then(|| String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test]
async fn only_clients_of_the_authority_are_let_in() {
    let node = FakeNode::new(FakePods::default());
    let own = answered(&node, Some(node.authority.client())).await.unwrap();
    assert!(own.starts_with("HTTP/1.1 200"), "{own}");
    assert_eq!(answered(&node, None).await, None, "no certificate");
    let other = Authority::new().client();
    assert_eq!(answered(&node, Some(other)).await, None, "another authority");
    // Nobody spoilt it for the others.
    assert!(answered(&node, Some(node.authority.client())).await.is_some());
}

#[tokio::test]
async fn others_of_the_same_authority_learn_nothing_but_why() {
    let node = FakeNode::new(FakePods::default());
    let stranger = node.authority.client_named("system:node:node-b");
    let told = answered(&node, Some(stranger)).await.unwrap();
    assert!(told.starts_with("HTTP/1.1 403"), "{told}");
    assert!(told.contains("\"system:node:node-b\"") && told.contains("--client-name"), "{told}");
    assert!(!told.contains("PodList"), "{told}");
}

#[tokio::test]
async fn small_routes_answer() {
    let node = FakeNode::new(FakePods::default());
    assert_eq!(node.ask("GET", "/healthz").await, (200, "ok".to_owned()));
    let (status, pods) = node.ask("GET", "/pods").await;
    let pods: serde_json::Value = serde_json::from_str(&pods).unwrap();
    assert_eq!((status, &pods["kind"]), (200, &"PodList".into()));
    assert_eq!(pods["items"][0]["metadata"]["name"], "p");

    let (status, summary) = node.ask("GET", "/stats/summary").await;
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(status, 200);
    assert_eq!(
        summary,
        serde_json::json!({
            "node": {
                "nodeName": "node-a",
                "startTime": "2027-01-15T07:59:50Z",
                "cpu": {"time": "2027-01-15T08:00:00Z", "usageCoreNanoSeconds": 3_000_000_000u64},
            },
            "pods": [{
                "podRef": {"name": "p", "namespace": "default", "uid": "u"},
                "startTime": "2027-01-15T07:59:50Z",
                "containers": [{
                    "name": "main",
                    "startTime": "2027-01-15T07:59:50Z",
                    "cpu": {
                        "time": "2027-01-15T08:00:00Z",
                        "usageCoreNanoSeconds": 1_500_000_000u64,
                    },
                    "memory": {"time": "2027-01-15T08:00:00Z", "workingSetBytes": 4096},
                }],
                "memory": {"time": "2027-01-15T08:00:00Z", "workingSetBytes": 4096},
                "process_stats": {"process_count": 3},
            }],
        })
    );
    let (status, metrics) = node.ask("GET", "/metrics/resource").await;
    assert_eq!(status, 200);
    assert!(metrics.contains("container_cpu_usage_seconds_total{"), "{metrics}");
}

#[tokio::test]
async fn what_is_not_there_says_so() {
    let node = FakeNode::new(FakePods { broken: true, ..FakePods::default() });
    for (method, path, status, words) in [
        ("GET", "/stats/summary", 500, "the holder does not answer"),
        ("GET", "/metrics/resource", 200, "resource_scrape_error 1"),
        ("POST", "/attach/ns/pod/main?output=1", 501, "attach is not available"),
        ("GET", "/attach/ns/pod/uid/main", 501, "kubectl logs -f"),
        ("POST", "/portForward/ns/pod", 400, "SPDY/3.1+portforward.k8s.io"),
        ("POST", "/run/ns/pod/main", 501, "use exec"),
        ("GET", "/nothing", 404, "no such path"),
        ("DELETE", "/pods", 405, ""),
        ("GET", "/containerLogs/ns/pod/main", 404, "container \"main\" not found in pod \"pod\""),
        ("GET", "/containerLogs/ns/pod/main?tailLines=-1", 422, "tailLines"),
        ("POST", "/exec/ns/pod/main?command=ls&output=1", 400, "upgrade"),
        ("GET", "/exec/ns/pod/main?output=1", 400, "command"),
    ] {
        let (found, body) = node.ask(method, path).await;
        assert_eq!(found, status, "{method} {path}: {body}");
        assert!(body.contains(words), "{method} {path}: {body}");
    }
}

#[tokio::test]
async fn a_head_without_bounds_is_refused() {
    let node = FakeNode::new(FakePods::default());
    let mut stream = node.connect().await;
    let long = format!("GET /healthz?{} HTTP/1.1\r\nhost: node\r\n\r\n", "a".repeat(1 << 20));
    // The node may close before all is sent.
    let _closed = stream.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    let _closed = timeout(SOON, stream.read_to_end(&mut answer)).await.unwrap();
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
}

#[tokio::test]
async fn stopping_ends_idle_connections_and_returns() {
    let node = FakeNode::new(FakePods::default());
    let mut idle = node.connect().await;
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: node\r\n\r\n").await.unwrap();
    let mut answer = [0; 1024];
    assert!(idle.read(&mut answer).await.unwrap() > 0);
    node.stop.cancel();
    timeout(SOON, node.server).await.unwrap().unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(node.address).await.is_err());
}
