//! The verbs while others write: nothing is lost, nothing is given twice, pages fit together.

use std::collections::BTreeSet;

use futures::future::join_all;
use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

use crate::server::{Server, Settings};

async fn send(
    client: &Client,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<Value, kube::Error> {
    let media =
        if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = Request::builder().method(method).uri(path).header("content-type", media);
    client.request(request.body(body).unwrap()).await
}

async fn get(client: &Client, path: &str) -> Value {
    send(client, Method::GET, path, &Value::Null).await.unwrap()
}

async fn post(client: &Client, path: &str, body: &Value) -> Value {
    send(client, Method::POST, path, body).await.unwrap()
}

/// A server in memory with a namespace of its own.
async fn open() -> Client {
    let client = Server::open(Settings::default()).unwrap().client("test");
    post(&client, "/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    client
}

#[tokio::test]
async fn scaling_and_other_writes_lose_nothing() {
    let client = open().await;
    let definition = json!({
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "kind": "Thing"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                }},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    });
    post(&client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    let things = "/apis/example.com/v1/namespaces/n/things";
    let thing = json!({
        "apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"},
        "spec": {"replicas": 0},
    });
    post(&client, things, &thing).await;
    let one = format!("{things}/a");
    let writes = (1..=12).flat_map(|number| {
        [
            (format!("{one}/scale"), json!({"spec": {"replicas": number}})),
            (one.clone(), json!({"metadata": {"labels": {(format!("l{number}")): "x"}}})),
            (format!("{one}/status"), json!({"status": {(format!("s{number}")): number}})),
        ]
    });
    let client = &client;
    let written = join_all(
        writes.map(|(path, patch)| async move { send(client, Method::PATCH, &path, &patch).await }),
    )
    .await;
    for answer in written {
        answer.unwrap();
    }
    let stored = get(client, &one).await;
    assert_eq!(stored["metadata"]["labels"].as_object().unwrap().len(), 12);
    assert_eq!(stored["status"].as_object().unwrap().len(), 12);
    // Every number was another one, so each of them counts.
    assert_eq!(stored["metadata"]["generation"], 13);
    assert!((1..=12).contains(&stored["spec"]["replicas"].as_i64().unwrap()));
    let scale = get(client, &format!("{one}/scale")).await;
    let twice = json!({
        "metadata": {"name": "a", "resourceVersion": scale["metadata"]["resourceVersion"]},
        "spec": {"replicas": 20},
    });
    let put = async || send(client, Method::PUT, &format!("{one}/scale"), &twice).await;
    assert_eq!(put().await.unwrap()["spec"]["replicas"], 20);
    let refused = put().await.unwrap_err();
    assert!(matches!(refused, kube::Error::Api(status) if status.code == 409));
}

#[tokio::test]
async fn pages_are_of_one_moment_whatever_is_written() {
    let client = &open().await;
    let path = "/api/v1/namespaces/n/configmaps";
    let names: BTreeSet<String> = (0..60).map(|number| format!("c{number:02}")).collect();
    for name in &names {
        post(client, path, &json!({"metadata": {"name": name}})).await;
    }
    let mut seen = Vec::new();
    let mut revisions = BTreeSet::new();
    let mut next = String::new();
    for page in 0..20 {
        let asked = format!("{path}?limit=7&continue={next}");
        // Between the pages some go and some come, before and behind the reader.
        let gone = format!("{path}/c{:02}", 59 - page);
        let come = json!({"metadata": {"name": format!("c{page:02}-new")}});
        let (list, _, _) = tokio::join!(
            get(client, &asked),
            send(client, Method::DELETE, &gone, &Value::Null),
            send(client, Method::POST, path, &come),
        );
        revisions.insert(list["metadata"]["resourceVersion"].as_str().unwrap().to_owned());
        let items = list["items"].as_array().unwrap().iter();
        seen.extend(items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()));
        match list["metadata"]["continue"].as_str() {
            Some(token) if !token.is_empty() => next = token.to_owned(),
            _ => break,
        }
    }
    assert_eq!(revisions.len(), 1);
    // The first page may be of a moment just after the first writes.
    let whole: BTreeSet<String> = seen.iter().cloned().collect();
    assert_eq!(whole.len(), seen.len());
    let missing: Vec<_> = names.difference(&whole).collect();
    assert!(missing.iter().all(|name| *name == "c59"), "{missing:?}");
    let added: Vec<_> = whole.difference(&names).collect();
    assert!(added.iter().all(|name| *name == "c00-new"), "{added:?}");
}

#[tokio::test]
async fn no_two_services_get_the_same_address_or_port() {
    let client = &open().await;
    let path = "/api/v1/namespaces/n/services";
    let made = join_all((0..40).map(|number| async move {
        let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
        let service = json!({"metadata": {"name": format!("s{number}")}, "spec": spec});
        post(client, path, &service).await
    }))
    .await;
    let distinct = |pointer: &str| {
        made.iter().map(|service| service.pointer(pointer).unwrap().to_string()).collect()
    };
    let addresses: BTreeSet<String> = distinct("/spec/clusterIP");
    let ports: BTreeSet<String> = distinct("/spec/ports/0/nodePort");
    assert_eq!((addresses.len(), ports.len()), (40, 40));
    // One that is asked for by name is given once.
    let asked = join_all((0..8).map(|number| async move {
        let spec = json!({"clusterIP": "10.96.9.9", "ports": [{"port": 80}]});
        let service = json!({"metadata": {"name": format!("t{number}")}, "spec": spec});
        send(client, Method::POST, path, &service).await
    }))
    .await;
    assert_eq!(asked.iter().filter(|answer| answer.is_ok()).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn definitions_made_at_once_are_all_served() {
    let client = open().await;
    let make = |number: usize| {
        let client = client.clone();
        let plural = format!("things{number}");
        let definition = json!({
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com", "scope": "Cluster",
                "names": {"plural": plural, "kind": format!("Thing{number}")},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                    "openAPIV3Schema": {"type": "object"},
                }}],
            },
        });
        tokio::spawn(async move {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            post(&client, path, &definition).await;
        })
    };
    for made in join_all((0..60).map(make)).await {
        made.unwrap();
    }
    for number in 0..60 {
        let listed = get(&client, &format!("/apis/example.com/v1/things{number}")).await;
        assert_eq!(listed["items"], json!([]));
    }
}
