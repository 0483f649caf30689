//! Two operators, one lease, and an API server that comes and goes.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use serde_json::{Value, json};

use super::*;
use crate::{
    Options,
    fake::{Asked, Fake, Reply},
};

/// A server that holds one lease and checks versions as the API server does.
#[derive(Clone, Default)]
struct Server {
    lease: Arc<Mutex<Option<Value>>>,
    away: Arc<AtomicBool>,
}

impl Server {
    fn fake(&self) -> Fake {
        let server = self.clone();
        Fake::new(move |asked| server.answer(asked))
    }

    fn answer(&self, asked: &Asked) -> Reply {
        if self.away.load(Ordering::SeqCst) {
            return Reply::Broken;
        }
        let mut stored = self.lease.lock().unwrap();
        let version = stored.as_ref().map(|lease| lease["metadata"]["resourceVersion"].clone());
        match (asked.method.as_str(), version) {
            ("GET" | "PUT", None) => return Reply::refuse(404, "NotFound", "lease"),
            ("GET", Some(_)) => {}
            ("POST", Some(_)) => return Reply::refuse(409, "AlreadyExists", "lease"),
            ("PUT", Some(version)) if version != asked.body["metadata"]["resourceVersion"] => {
                return Reply::refuse(409, "Conflict", "lease");
            }
            (_, version) => {
                let next: u64 =
                    version.and_then(|v| v.as_str().unwrap().parse().ok()).unwrap_or(0) + 1;
                let mut lease = asked.body.clone();
                lease["metadata"]["resourceVersion"] = json!(next.to_string());
                *stored = Some(lease);
            }
        }
        Reply::Json(200, stored.clone().unwrap())
    }

    fn holder(&self) -> String {
        let lease = self.lease.lock().unwrap();
        lease.as_ref().unwrap()["spec"]["holderIdentity"].as_str().unwrap().to_owned()
    }

    fn leader(&self, identity: &str) -> Leader {
        let calls = self.fake().calls(&Options::default());
        Leader::new(
            &calls,
            LeaderOptions::new("ns", "lease", identity),
            Clock::start(crate::options::Time::OfRuntime),
        )
    }
}

async fn within<T>(seconds: u64, future: impl Future<Output = T>) -> Option<T> {
    timeout(Duration::from_secs(seconds), future).await.ok()
}

#[tokio::test(start_paused = true)]
async fn the_second_waits_while_the_first_renews() {
    let server = Server::default();
    let mut first = server.leader("first");
    let mut second = server.leader("second");
    first.acquire().await;
    let (kept, taken) = tokio::join!(within(120, first.keep()), within(120, second.acquire()));
    assert!(kept.is_none() && taken.is_none());
    assert_eq!(server.holder(), "first");
}

#[tokio::test(start_paused = true)]
async fn the_second_takes_over_after_the_lease_time_when_the_first_dies() {
    let server = Server::default();
    server.leader("first").acquire().await;
    let begin = Instant::now();
    server.leader("second").acquire().await;
    let took = begin.elapsed().as_secs();
    assert!((15..=17).contains(&took), "{took} s");
    assert_eq!(server.holder(), "second");
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_once() {
    let server = Server::default();
    let mut first = server.leader("first");
    first.acquire().await;
    let mut second = server.leader("second");
    assert!(within(1, second.acquire()).await.is_none());
    first.release().await;
    let begin = Instant::now();
    second.acquire().await;
    assert!(begin.elapsed() <= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_lease_renewed_behind_our_back_is_released_too() {
    let server = Server::default();
    let mut first = server.leader("first");
    first.acquire().await;
    // A renewal that was given up arrived all the same.
    server.lease.lock().unwrap().as_mut().unwrap()["metadata"]["resourceVersion"] = json!("99");
    first.release().await;
    assert_eq!(server.holder(), "");
    let mut second = server.leader("second");
    second.acquire().await;
    first.release().await;
    assert_eq!(server.holder(), "second", "only what is ours is released");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_took_is_not_released() {
    let server = Server::default();
    let mut first = server.leader("first");
    first.acquire().await;
    server.lease.lock().unwrap().as_mut().unwrap()["spec"]["holderIdentity"] = json!("thief");
    server.lease.lock().unwrap().as_mut().unwrap()["metadata"]["resourceVersion"] = json!("99");
    first.release().await;
    assert_eq!(server.holder(), "thief");
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_cannot_renew_stops_before_others_take_over() {
    let server = Server::default();
    let mut first = server.leader("first");
    first.acquire().await;
    assert!(within(30, first.keep()).await.is_none());
    server.away.store(true, Ordering::SeqCst);
    let begin = Instant::now();
    first.keep().await;
    let took = begin.elapsed();
    assert!(took <= Duration::from_secs(10), "{took:?}");
    first.release().await;
    server.away.store(false, Ordering::SeqCst);
    assert_eq!(server.holder(), "first", "what is lost is not released");
}

#[tokio::test(start_paused = true)]
async fn a_short_absence_of_the_server_loses_nothing() {
    let server = Server::default();
    let mut first = server.leader("first");
    first.acquire().await;
    let absence = async {
        sleep(Duration::from_secs(5)).await;
        server.away.store(true, Ordering::SeqCst);
        sleep(Duration::from_secs(5)).await;
        server.away.store(false, Ordering::SeqCst);
    };
    let (kept, ()) = tokio::join!(within(60, first.keep()), absence);
    assert!(kept.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_another_took_is_lost_at_once() {
    let server = Server::default();
    let mut first = server.leader("first");
    first.acquire().await;
    server.lease.lock().unwrap().as_mut().unwrap()["spec"]["holderIdentity"] = json!("thief");
    server.lease.lock().unwrap().as_mut().unwrap()["metadata"]["resourceVersion"] = json!("99");
    assert!(within(3, first.keep()).await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_or_touched_is_written_again() {
    let server = Server::default();
    let mut first = server.leader("first");
    first.acquire().await;
    *server.lease.lock().unwrap() = None;
    assert!(within(10, first.keep()).await.is_none());
    assert_eq!(server.holder(), "first");
    server.lease.lock().unwrap().as_mut().unwrap()["metadata"]["resourceVersion"] = json!("99");
    assert!(within(10, first.keep()).await.is_none());
    assert_eq!(server.holder(), "first");
}
