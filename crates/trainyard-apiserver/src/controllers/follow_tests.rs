//! Following, against a server that answers from a script.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::controllers::view::Bare;

/// Answers each request with the next line of the script, and then never again.
fn scripted(script: Vec<(u16, String)>) -> (Calls, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let script = Arc::new(Mutex::new(script.into_iter()));
    let log = Arc::clone(&asked);
    let service = tower::service_fn(move |request: Request<Body>| {
        let target = request.uri().to_string();
        log.lock().unwrap().push(target);
        let next = script.lock().unwrap().next();
        async move {
            let Some((code, text)) = next else { return std::future::pending().await };
            let body = Body::from(text.into_bytes());
            Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
        }
    });
    (Calls::new(Client::new(service, "default")), asked)
}

fn named(name: &str, revision: u32) -> Value {
    json!({"metadata": {"name": name, "resourceVersion": revision.to_string()}})
}

fn event(kind: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": kind, "object": object}))
}

async fn told(script: Vec<(u16, String)>) -> (Vec<String>, Vec<String>) {
    let (calls, asked) = scripted(script);
    let mut told = Vec::new();
    let source = Source::bare("/api/v1/things").named("a b");
    let names = |all: &[Bare]| {
        all.iter().map(|one| one.metadata.name.clone()).collect::<Vec<_>>().join(",")
    };
    let following = follow(&calls, &source, |news: News<Bare>| {
        told.push(match news {
            News::All(all) => format!("all {}", names(&all)),
            News::There(one) => format!("there {}", one.metadata.name),
            News::Gone(one) => format!("gone {}", one.metadata.name),
        });
    });
    let _ = timeout_at(Instant::now() + Duration::from_mins(1), following).await;
    let asked = asked.lock().unwrap().clone();
    (told, asked)
}

fn page(items: &[Value], revision: u32, next: &str) -> (u16, String) {
    let meta = json!({"resourceVersion": revision.to_string(), "continue": next});
    (200, json!({"metadata": meta, "items": items}).to_string())
}

#[tokio::test(start_paused = true)]
async fn pages_make_one_list_and_the_watch_goes_on_from_there() {
    let watch = event("ADDED", &named("c", 8))
        + &event("MODIFIED", &named("c", 9))
        + &event("DELETED", &named("a", 10))
        + &event(
            "BOOKMARK",
            &json!({"kind": "T", "apiVersion": "v1", "metadata": {"resourceVersion": "12"}}),
        );
    let script =
        vec![page(&[named("a", 1)], 7, "more/1"), page(&[named("b", 2)], 7, ""), (200, watch)];
    let (told, asked) = told(script).await;
    assert_eq!(told, ["all a,b", "there c", "there c", "gone a"]);
    assert_eq!(asked[0], "/api/v1/things?limit=500&fieldSelector=metadata.name%3Da%20b");
    assert!(asked[1].ends_with("&continue=more%2F1"), "{}", asked[1]);
    assert!(asked[2].contains("watch=true") && asked[2].contains("resourceVersion=7"));
    // The next watch goes on where the bookmark was.
    assert!(asked[3].contains("resourceVersion=12"), "{}", asked[3]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_too_old_begins_again_with_a_list() {
    let gone = json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
    let script = vec![
        page(&[named("a", 1)], 7, ""),
        (200, event("ERROR", &gone)),
        page(&[named("b", 2)], 9, ""),
        (410, gone.to_string()),
        page(&[], 10, ""),
    ];
    let (told, _) = told(script).await;
    assert_eq!(told, ["all a", "all b", "all "]);
}

#[tokio::test(start_paused = true)]
async fn one_object_that_cannot_be_read_harms_no_other() {
    let bad = json!({"metadata": {"name": 3}});
    let watch = event("ADDED", &bad) + &event("ADDED", &named("c", 8));
    let script = vec![page(&[bad, named("a", 1)], 7, ""), (200, watch)];
    let (told, _) = told(script).await;
    assert_eq!(told, ["all a", "there c"]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_without_haste() {
    let refused =
        json!({"kind": "Status", "code": 503, "reason": "ServiceUnavailable"}).to_string();
    let mut script = vec![(503, refused); 5];
    script.push(page(&[named("a", 1)], 7, ""));
    let begin = Instant::now();
    let (told, asked) = told(script).await;
    assert_eq!(told, ["all a"]);
    assert_eq!(asked.len(), 7);
    assert!(begin.elapsed() >= Duration::from_secs(3));
}
