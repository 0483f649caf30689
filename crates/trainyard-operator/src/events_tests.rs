//! Writing events to a server that refuses, forgets and falls silent.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::{
    Options,
    fake::{Asked, Fake, Reply},
    tfjob::TfJobs,
};

fn subject() -> Arc<Subject> {
    Arc::new(Subject {
        namespace: "team".to_owned(),
        name: "mnist".to_owned(),
        uid: "u1".to_owned(),
        version: "7".to_owned(),
    })
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_123 + second * 1000).unwrap()
}

fn events(fake: &Fake) -> Events {
    Events::new::<TfJobs>(fake.calls(&Options::default()), Arc::default())
}

/// Writes everything that is queued, or gives up after that time.
async fn written(events: &Events, seconds: u64) -> bool {
    let closed = CancellationToken::new();
    closed.cancel();
    tokio::time::timeout(Duration::from_secs(seconds), events.write(closed)).await.is_ok()
}

fn accept() -> Reply {
    Reply::Json(201, json!({}))
}

#[tokio::test(start_paused = true)]
async fn an_event_is_what_kubectl_describe_shows() {
    let fake = Fake::new(|_| accept());
    let events = events(&fake);
    events.tell(&subject(), &Event::normal("TFJobCreated", "TFJob mnist is created."), at(0));
    assert!(written(&events, 1).await);
    let Asked { method, path, body, .. } = fake.asked().remove(0);
    assert_eq!((method.as_str(), &*path), ("POST", "/api/v1/namespaces/team/events"));
    let name = body["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("mnist.") && name.len() == "mnist.".len() + 16, "{name}");
    assert_eq!(
        body,
        json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"name": name, "namespace": "team"},
            "involvedObject": {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": "mnist",
                "namespace": "team", "uid": "u1", "resourceVersion": "7"},
            "type": "Normal", "reason": "TFJobCreated", "message": "TFJob mnist is created.",
            "source": {"component": "tf-operator"}, "reportingComponent": "tf-operator",
            "firstTimestamp": "2023-11-14T22:13:20Z", "lastTimestamp": "2023-11-14T22:13:20Z",
            "count": 1,
        })
    );
}

#[tokio::test(start_paused = true)]
async fn the_same_later_raises_the_count_or_is_told_anew() {
    let fake = Fake::new(|asked| match asked.method.as_str() {
        "PATCH" if asked.body["count"] == 3 => Reply::refuse(404, "NotFound", "x"),
        _ => accept(),
    });
    let events = events(&fake);
    let event = Event::warning("FailedCreatePod", "Error creating: quota");
    for second in [0, 1, 10, 20] {
        events.tell(&subject(), &event, at(second));
        assert!(written(&events, 1).await);
    }
    let asked = fake.asked();
    let lines: Vec<_> = asked.iter().map(|asked| asked.method.as_str()).collect();
    assert_eq!(lines, ["POST", "PATCH", "POST", "PATCH"]);
    let name = asked[0].body["metadata"]["name"].as_str().unwrap();
    assert_eq!(asked[1].path, format!("/api/v1/namespaces/team/events/{name}"));
    assert_eq!(asked[1].body, json!({"count": 3, "lastTimestamp": "2023-11-14T22:13:30Z"}));
    assert_eq!(asked[2].body["count"], 3);
    assert_eq!(asked[3].body["count"], 4);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_job_is_written_however_long_it_takes() {
    let asked = AtomicUsize::new(0);
    let fake = Fake::new(move |_| match asked.fetch_add(1, Ordering::SeqCst) {
        0..10 => Reply::Broken,
        10 => Reply::Later(429, 3),
        11 => Reply::Silence,
        12 => Reply::Json(500, json!({})),
        _ => accept(),
    });
    let events = events(&fake);
    events.tell(&subject(), &Event::normal("TFJobSucceeded", "done").terminal(), at(0));
    assert!(written(&events, 600).await);
    assert_eq!(fake.asked().len(), 14);
}

#[tokio::test(start_paused = true)]
async fn other_events_are_given_up_after_some_attempts() {
    let fake = Fake::new(|_| Reply::Broken);
    let events = events(&fake);
    events.tell(&subject(), &Event::normal("Created", "x"), at(0));
    assert!(written(&events, 600).await);
    assert_eq!(fake.asked().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_goes_away_takes_no_events() {
    let fake = Fake::new(|_| Reply::refuse(403, "Forbidden", "x"));
    let events = events(&fake);
    events.tell(&subject(), &Event::normal("TFJobSucceeded", "done").terminal(), at(0));
    assert!(written(&events, 1).await);
    assert_eq!(fake.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn too_many_lose_the_oldest_but_no_end() {
    let fake = Fake::new(|_| accept());
    let events = events(&fake);
    let subject = subject();
    events.tell(&subject, &Event::normal("TFJobSucceeded", "done").terminal(), at(0));
    for n in 0..=WAITING_MAX {
        events.tell(&subject, &Event::normal("Created", n.to_string()), at(0));
    }
    assert!(written(&events, 1).await);
    let asked = fake.asked();
    assert_eq!(asked.len(), WAITING_MAX + 1);
    assert_eq!(asked[0].body["reason"], "TFJobSucceeded");
    assert_eq!(asked[1].body["message"], "1");
}

#[tokio::test(start_paused = true)]
async fn few_requests_go_out_at_a_time() {
    static NOW: AtomicUsize = AtomicUsize::new(0);
    let fake = Fake::new(|_| {
        NOW.fetch_add(1, Ordering::SeqCst);
        Reply::Silence
    });
    let events = events(&fake);
    for n in 0..100 {
        events.tell(&subject(), &Event::normal("Created", n.to_string()), at(0));
    }
    assert!(!written(&events, 10).await);
    assert_eq!(NOW.load(Ordering::SeqCst), AT_A_TIME);
}

#[test]
fn long_messages_are_cut_between_characters() {
    let long = "ä".repeat(MESSAGE_MAX);
    assert_eq!(cut(&long).len(), MESSAGE_MAX);
    assert_eq!(cut(&format!("x{long}")).len(), MESSAGE_MAX - 1);
    assert_eq!(cut("short"), "short");
}
