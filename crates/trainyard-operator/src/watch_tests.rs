//! Following against a server that ends, breaks, expires and lies.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use trainyard_core::PodView;

use super::*;
use crate::{
    Options,
    fake::{Asked, Fake, Reply},
};

fn pod(name: &str, version: u64) -> Value {
    json!({"metadata": {"name": name, "namespace": "n", "uid": name,
        "resourceVersion": version.to_string()}})
}

fn unreadable(name: &str, version: u64) -> Value {
    let mut pod = pod(name, version);
    pod["status"] = json!({"containerStatuses": "none"});
    pod
}

fn list(items: &[Value], version: u64, next: &str) -> Reply {
    Reply::Json(
        200,
        json!({"metadata": {"resourceVersion": version.to_string(), "continue": next},
            "items": items}),
    )
}

fn event(kind: &str, object: &Value) -> String {
    json!({"type": kind, "object": object}).to_string()
}

/// Follows for a while and returns what was told, and what was asked.
async fn followed(
    seconds: u64,
    answer: impl Fn(usize, &Asked) -> Reply + Send + Sync + 'static,
) -> (Vec<String>, Vec<Asked>) {
    let count = Mutex::new(0);
    let fake = Fake::new(move |asked| {
        let mut count = count.lock().unwrap();
        *count += 1;
        answer(*count - 1, asked)
    });
    let calls = fake.calls(&Options::default());
    let source = Source {
        resource: "pods",
        path: "/api/v1/pods".to_owned(),
        selector: Some(encoded("a/b=c")),
        remedy: "do something",
    };
    let told = Arc::new(Mutex::new(Vec::new()));
    let take = |news: News<PodView>| {
        told.lock().unwrap().push(match news {
            News::All { objects, unreadable, version } => {
                let names: Vec<_> = objects.iter().map(|pod| &*pod.name).collect();
                format!("all {} unreadable {} at {version}", names.join(","), unreadable.join(","))
            }
            News::There(pod) => format!("there {} {}", pod.name, pod.version),
            News::Gone { uid, version, last } => {
                let name = last.map_or_else(|| "?".into(), |pod| pod.name);
                format!("gone {uid} {version}, {name}")
            }
        });
    };
    let follow = follow(&calls, &source, take);
    tokio::time::timeout(Duration::from_secs(seconds), follow).await.unwrap_err();
    let told = told.lock().unwrap().clone();
    (told, fake.asked())
}

#[tokio::test(start_paused = true)]
async fn lists_in_pages_then_watches_from_there() {
    let (told, asked) = followed(60, |count, _| match count {
        0 => list(&[pod("a", 3)], 7, "page two/="),
        1 => list(&[pod("b", 4)], 7, ""),
        _ => Reply::Lines {
            lines: vec![
                event("ADDED", &pod("c", 8)),
                event("MODIFIED", &pod("c", 9)),
                event("DELETED", &pod("a", 10)),
            ],
            open: true,
        },
    })
    .await;
    assert_eq!(told, ["all a,b unreadable  at 7", "there c 8", "there c 9", "gone a 10, a"]);
    assert_eq!(asked[0].query, "limit=500&labelSelector=a%2Fb%3Dc");
    assert!(asked[1].query.contains("continue=page%20two%2F%3D"));
    assert!(asked[2].query.contains("resourceVersion=7"));
    assert!(asked[2].query.contains("allowWatchBookmarks=true"));
    assert_eq!(asked.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_closed_watch_goes_on_from_the_last_version() {
    let (told, asked) = followed(60, |count, _| match count {
        0 => list(&[], 7, ""),
        1 => Reply::Lines { lines: vec![event("ADDED", &pod("c", 8))], open: false },
        2 => Reply::Broken,
        3 => Reply::Lines { lines: vec![event("BOOKMARK", &pod("", 30))], open: false },
        _ => Reply::Lines { lines: vec![], open: true },
    })
    .await;
    assert_eq!(told, ["all  unreadable  at 7", "there c 8"]);
    let versions: Vec<_> = asked[1..]
        .iter()
        .map(|asked| asked.query.split("resourceVersion=").nth(1).unwrap().split('&').next())
        .collect();
    assert_eq!(versions, [Some("7"), Some("8"), Some("8"), Some("30")]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_too_old_lists_again() {
    let expired = json!({"kind": "Status", "code": 410, "message": "too old"});
    let (told, asked) = followed(60, move |count, _| match count {
        0 => list(&[], 7, ""),
        1 => Reply::Lines { lines: vec![event("ERROR", &expired)], open: true },
        2 => list(&[pod("a", 12)], 20, ""),
        3 => Reply::refuse(410, "Expired", ""),
        4 => list(&[pod("a", 12)], 30, ""),
        _ => Reply::Lines { lines: vec![], open: true },
    })
    .await;
    assert_eq!(
        told,
        ["all  unreadable  at 7", "all a unreadable  at 20", "all a unreadable  at 30"]
    );
    assert_eq!(asked.len(), 6);
}

/// Before, whoever could make five hundred large objects kept the operator from listing at all.
#[tokio::test(start_paused = true)]
async fn of_large_objects_smaller_pages_are_asked_for() {
    let (told, asked) = followed(60, |count, _| match count {
        0 => {
            let mut large = pod("a", 3);
            large["metadata"]["labels"] = json!({"words": "x".repeat(65 << 20)});
            list(&[large], 7, "")
        }
        1 => list(&[pod("a", 3)], 7, ""),
        _ => Reply::Lines { lines: vec![], open: true },
    })
    .await;
    assert_eq!(told, ["all a unreadable  at 7"]);
    assert!(asked[0].query.starts_with("limit=500&") && asked[1].query.starts_with("limit=62&"));
}

#[tokio::test(start_paused = true)]
async fn pages_that_expire_are_listed_in_one() {
    let (told, asked) = followed(60, |count, _| match count {
        0 => list(&[pod("a", 3)], 7, "next"),
        1 => Reply::refuse(410, "Expired", ""),
        2 => list(&[pod("a", 3), pod("b", 9)], 9, ""),
        _ => Reply::Lines { lines: vec![], open: true },
    })
    .await;
    assert_eq!(told, ["all a,b unreadable  at 9"]);
    assert!(!asked[2].query.contains("limit="));
}

#[tokio::test(start_paused = true)]
async fn one_unreadable_object_harms_no_other() {
    let (told, _) = followed(60, |count, _| match count {
        0 => list(&[pod("a", 3), unreadable("x", 4), pod("b", 5)], 7, ""),
        _ => Reply::Lines {
            lines: vec![
                event("MODIFIED", &unreadable("x", 8)),
                event("ADDED", &pod("c", 9)),
                event("DELETED", &unreadable("x", 10)),
            ],
            open: true,
        },
    })
    .await;
    assert_eq!(told, ["all a,b unreadable x at 7", "there c 9", "gone x 10, ?"]);
}

#[tokio::test(start_paused = true)]
async fn failures_are_tried_again_with_growing_pauses() {
    let (told, asked) = followed(300, |count, _| match count {
        0..3 => Reply::Broken,
        3 => Reply::Json(500, json!({"message": "etcd is away"})),
        4 => Reply::Later(429, 20),
        5 => Reply::Silence,
        6 => list(&[], 7, ""),
        _ => Reply::Lines { lines: vec![], open: true },
    })
    .await;
    assert_eq!(told, ["all  unreadable  at 7"]);
    assert_eq!(asked.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_away_is_not_hammered() {
    let (told, asked) = followed(600, |_, _| Reply::Broken).await;
    assert!(told.is_empty());
    assert!(asked.len() < 40, "{} requests in ten minutes", asked.len());
    assert!(asked.len() > 20, "{} requests in ten minutes", asked.len());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_falls_silent_is_opened_anew() {
    let (_, asked) = followed(1000, |count, _| match count {
        0 => list(&[], 7, ""),
        _ => Reply::Lines { lines: vec![], open: true },
    })
    .await;
    let watches = asked.iter().filter(|asked| asked.is_watch()).count();
    assert_eq!(watches, 4, "one every five minutes");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_always_ends_at_once_is_not_hammered() {
    let (_, asked) = followed(600, |count, _| match count {
        0 => list(&[], 7, ""),
        _ => Reply::Lines { lines: vec![], open: false },
    })
    .await;
    assert!(asked.len() < 40, "{} requests in ten minutes", asked.len());
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_request_makes_the_watch_look_whether_it_lives() {
    let fake = Fake::new(|asked| match (asked.is_watch(), asked.path.as_str()) {
        (true, _) => Reply::Lines { lines: vec![], open: true },
        (_, "/silence") => Reply::Silence,
        _ => list(&[], 7, ""),
    });
    let calls = fake.calls(&Options::default());
    let source = Source {
        resource: "pods",
        path: "/api/v1/pods".to_owned(),
        selector: None,
        remedy: "do something",
    };
    let follow = follow(&calls, &source, |_: News<PodView>| {});
    let write = async {
        let path = "/silence".to_owned();
        let turn = Turn::Usual;
        let call = Call { verb: Verb::Create, resource: "pods", path, body: vec![], turn };
        calls.send(call).await.unwrap_err()
    };
    let both = async { tokio::join!(follow, write) };
    tokio::time::timeout(Duration::from_secs(40), both).await.unwrap_err();
    let watches = fake.asked().iter().filter(|asked| asked.is_watch()).count();
    assert_eq!(watches, 2);
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_brought_something_goes_on_at_once() {
    let (told, _) = followed(2, |count, _| match u64::try_from(count).unwrap() {
        0 => list(&[], 100, ""),
        count @ 1..=50 => {
            Reply::Lines { lines: vec![event("ADDED", &pod("a", 100 + count))], open: false }
        }
        _ => Reply::Lines { lines: vec![], open: true },
    })
    .await;
    assert_eq!(told.len(), 51, "the list, and all that the watches brought, without pauses");
}
