//! Events to many watchers: how many arrive in a second.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use serde_json::json;

use super::load;
use crate::raw::Door;

const PATH: &str = "/api/v1/namespaces/bench/configmaps";
const PATIENCE: Duration = Duration::from_mins(5);

/// Events in a second, over all watchers.
pub(super) async fn measure(door: &Door, watchers: usize, events: usize) -> Result<f64> {
    let mut tasks = Vec::new();
    // The namespace may hold something already: watchers begin after it.
    let listed = door.ask(Method::GET, &format!("{PATH}?limit=1"), "").await?.value();
    let revision = listed["metadata"]["resourceVersion"].as_str().context("a revision")?.to_owned();
    for _ in 0..watchers {
        let mut talk = door.open().await?;
        let path = format!("{PATH}?watch=1&resourceVersion={revision}&timeoutSeconds=600");
        let answer = talk.begin(Method::GET, &path, "application/json", Bytes::new()).await?;
        ensure!(answer.status() == 200, "a watch is answered with {}", answer.status());
        tasks.push(tokio::spawn(async move {
            let seen = until(answer.into_body(), events).await;
            drop(talk);
            seen
        }));
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

/// When the last of so many events came: each is a line.
async fn until(mut body: Incoming, events: usize) -> Result<Instant> {
    let mut seen = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        seen += memchr::memchr_iter(b'\n', &data).count();
        if seen >= events {
            return Ok(Instant::now());
        }
    }
    anyhow::bail!("a watch ended after {seen} of {events} events")
}
