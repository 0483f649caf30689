//! Events go when they are old. A look at all of them sets the time of the next look: nothing is
//! kept in between.
//!
//! Must not know what events say.

use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tokio::time::sleep;

use super::Context;
use super::calls::{Calls, WHOLE, core, segment};
use super::clock::between;
use super::error::{Error, unless_missing};
use super::view::null_is_empty;

const PAGE: u32 = 500;
const WIDTH: usize = 8;
/// After a look that failed.
const RETRY: Duration = Duration::from_secs(10);

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page {
    metadata: PageMeta,
    #[serde(deserialize_with = "null_is_empty")]
    items: Vec<Event>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageMeta {
    r#continue: String,
}

/// What is read of an event: who it is and when it was last written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Event {
    metadata: EventMeta,
    first_timestamp: Option<String>,
    last_timestamp: Option<String>,
    #[serde(rename = "eventTime")]
    time: Option<String>,
    series: Option<Series>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct EventMeta {
    name: String,
    namespace: String,
    uid: String,
    creation_timestamp: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Series {
    last_observed_time: Option<String>,
}

impl Event {
    /// When it was last written; the beginning of time when it does not say.
    fn written(&self) -> Timestamp {
        let observed = self.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
        let times = [
            self.metadata.creation_timestamp.as_ref(),
            self.first_timestamp.as_ref(),
            self.last_timestamp.as_ref(),
            self.time.as_ref(),
            observed,
        ];
        let times = times.into_iter().flatten().filter_map(|time| time.parse().ok());
        times.max().unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// Which events of a page are old, and when the first of the others will be.
fn sift(events: Vec<Event>, life: Duration, now: Timestamp) -> (Vec<Event>, Option<Duration>) {
    let mut next: Option<Duration> = None;
    let mut old = Vec::new();
    for event in events {
        let left = life.saturating_sub(between(event.written(), now));
        if left.is_zero() {
            old.push(event);
        } else {
            next = Some(next.map_or(left, |next| next.min(left)));
        }
    }
    (old, next)
}

/// Runs until dropped.
pub(super) async fn run(context: Context) {
    let life = context.settings.event_life;
    // A few events more at each look make looks rarer.
    let least = (life / 60).max(Duration::from_millis(100));
    loop {
        let pause = match sweep(&context, life).await {
            Ok(next) => next.unwrap_or(life).max(least),
            Err(error) => {
                tracing::debug!(%error, "events cannot be read; trying again");
                RETRY
            }
        };
        sleep(pause).await;
    }
}

/// Removes what is old; answers when the next one will be.
async fn sweep(context: &Context, life: Duration) -> Result<Option<Duration>, Error> {
    let mut soonest = None;
    let mut after = String::new();
    loop {
        let mut path = format!("/api/v1/events?limit={PAGE}");
        if !after.is_empty() {
            path = format!("{path}&continue={}", segment(&after));
        }
        let page: Page = context.calls.read(&path, WHOLE).await?;
        let (old, next) = sift(page.items, life, context.clock.now());
        soonest = [soonest, next].into_iter().flatten().min();
        futures::stream::iter(old)
            .for_each_concurrent(WIDTH, |event| remove(&context.calls, event))
            .await;
        if page.metadata.r#continue.is_empty() {
            return Ok(soonest);
        }
        after = page.metadata.r#continue;
    }
}

async fn remove(calls: &Calls, event: Event) {
    let meta = event.metadata;
    let path = core(&meta.namespace, "events", &meta.name);
    let options = json!({
        "kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": meta.uid},
    });
    if let Err(error) = unless_missing(calls.delete(&path, &options).await) {
        tracing::debug!(%error, "an event cannot be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_hours(1);

    fn event(name: &str, fields: serde_json::Value) -> Event {
        let mut event: Event = serde_json::from_value(fields).unwrap();
        name.clone_into(&mut event.metadata.name);
        event
    }

    #[test]
    fn the_last_writing_counts() {
        let now = "2026-01-01T12:00:00Z".parse().unwrap();
        let old = event("old", json!({"lastTimestamp": "2026-01-01T10:59:59Z"}));
        let counted = event(
            "counted",
            json!({"firstTimestamp": "2026-01-01T01:00:00Z", "lastTimestamp": "2026-01-01T11:30:00Z"}),
        );
        let series = event(
            "series",
            json!({"eventTime": "2026-01-01T01:00:00.123456Z",
                "series": {"lastObservedTime": "2026-01-01T11:10:00.000000Z"}}),
        );
        let timeless = event("timeless", json!({}));
        let (old, next) = sift(vec![old, counted, series, timeless], HOUR, now);
        let names: Vec<&str> = old.iter().map(|event| &*event.metadata.name).collect();
        assert_eq!(names, ["old", "timeless"]);
        assert_eq!(next, Some(Duration::from_mins(10)));
        assert_eq!(sift(Vec::new(), HOUR, now).1, None);
    }
}
