//! Events to many watchers: how many arrive in a second.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::json;

use super::load;
use crate::raw::{Door, Talk};

const PATH: &str = "/api/v1/namespaces/bench/configmaps";
const PATIENCE: Duration = Duration::from_mins(5);
/// So often a watch may end before it counts as broken.
const ENDS_MAX: usize = 50;
const REVISION: &[u8] = b"\"resourceVersion\":\"";

/// Events in a second, over all watchers.
pub(super) async fn measure(door: &Door, watchers: usize, events: usize) -> Result<f64> {
    let mut tasks = Vec::new();
    // The namespace may hold something already: watchers begin after it.
    let listed = door.ask(Method::GET, &format!("{PATH}?limit=1"), "").await?.value();
    let revision = listed["metadata"]["resourceVersion"].as_str().context("a revision")?.to_owned();
    for _ in 0..watchers {
        let mut watcher = Watcher { door: door.clone(), revision: revision.clone(), seen: 0 };
        let first = watcher.open().await?;
        tasks.push(tokio::spawn(async move { watcher.until(events, first).await }));
    }
    let begin = Instant::now();
    load::objects(
        door,
        events,
        PATH,
        |number| json!({"metadata": {"name": format!("event-{number}")}, "data": {"key": "value"}}),
    )
    .await?;
    let mut last = begin;
    for task in tasks {
        let seen = tokio::time::timeout(PATIENCE, task).await.context("events are missing")??;
        last = last.max(seen?);
    }
    let all = u32::try_from(watchers * events).unwrap_or(u32::MAX);
    Ok(f64::from(all) / last.duration_since(begin).as_secs_f64())
}

/// One of many. A watch that the server ends, because the watcher was too slow for it, goes on where it was.
struct Watcher {
    door: Door,
    /// Of the last event.
    revision: String,
    seen: usize,
}

impl Watcher {
    async fn open(&mut self) -> Result<(Talk, Incoming)> {
        let mut talk = self.door.open().await?;
        let path = format!("{PATH}?watch=1&resourceVersion={}&timeoutSeconds=600", self.revision);
        let answer = talk.begin(Method::GET, &path, "application/json", Bytes::new()).await?;
        ensure!(answer.status() == 200, "a watch is answered with {}", answer.status());
        Ok((talk, answer.into_body()))
    }

    /// When the last of so many events came.
    async fn until(mut self, events: usize, first: (Talk, Incoming)) -> Result<Instant> {
        let (mut talk, mut body) = first;
        for _ in 0..ENDS_MAX {
            self.read(events, &mut body).await?;
            if self.seen >= events {
                return Ok(Instant::now());
            }
            (talk, body) = self.open().await?;
        }
        drop(talk);
        anyhow::bail!("a watch ended {ENDS_MAX} times, with {} of {events} events", self.seen)
    }

    /// Reads until all have come or the watch ends: each event is a line.
    async fn read(&mut self, events: usize, body: &mut Incoming) -> Result<()> {
        let mut rest = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else { continue };
            rest.extend_from_slice(&data);
            let Some(end) = memchr::memrchr(b'\n', &rest) else { continue };
            let lines = &rest[..end];
            self.seen += memchr::memchr_iter(b'\n', &rest[..=end]).count();
            if let Some(at) = memchr::memmem::rfind(lines, REVISION) {
                let number = lines[at + REVISION.len()..].iter().copied();
                let number = number.take_while(u8::is_ascii_digit).map(char::from);
                self.revision = number.collect();
            }
            if self.seen >= events {
                break;
            }
            rest.drain(..=end);
        }
        Ok(())
    }
}
