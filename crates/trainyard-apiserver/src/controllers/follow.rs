//! Follows the objects of one kind: lists them, then watches them, for ever.
//!
//! Owns what happens when a watch ends, breaks or is too old. Nothing is queued: whoever listens
//! takes each piece of news at once. Must not know what the objects mean.

use std::borrow::Cow;
use std::io;
use std::pin::pin;
use std::time::Duration;

use futures::{AsyncBufRead, AsyncBufReadExt as _};
use http::{Request, header};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout_at};

use super::calls::{Calls, METADATA, METADATA_LIST, WHOLE, segment};
use super::error::Error;
use super::view::{Bare, null_is_empty};

const PAGE: u32 = 500;
const WATCH_SECONDS: u64 = 280;
/// How long after its time an unended watch counts as broken.
const OVERDUE: Duration = Duration::from_secs(10);
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// A watch that lived this long was a good one.
const GOOD: Duration = Duration::from_secs(1);
/// No event is longer.
const LINE_MAX: usize = 16 << 20;

/// What is followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    path: String,
    query: String,
    bare: bool,
}

impl Source {
    /// Whole objects of a collection.
    pub(super) fn new(path: impl Into<String>) -> Self {
        Self { path: path.into(), query: String::new(), bare: false }
    }

    /// Only metadata of a collection.
    pub(super) fn bare(path: impl Into<String>) -> Self {
        Self { bare: true, ..Self::new(path) }
    }

    /// Only objects of this name.
    pub(super) fn named(mut self, name: &str) -> Self {
        self.query = format!("&fieldSelector=metadata.name%3D{}", segment(name));
        self
    }

    /// Only objects with this label.
    pub(super) fn labelled(mut self, label: &str, value: &str) -> Self {
        self.query = format!("&labelSelector={}%3D{}", segment(label), segment(value));
        self
    }

    const fn accept(&self, list: bool) -> &'static str {
        match (self.bare, list) {
            (false, _) => WHOLE,
            (true, true) => METADATA_LIST,
            (true, false) => METADATA,
        }
    }
}

/// What is learnt.
#[derive(Debug)]
pub(super) enum News<T> {
    /// Everything there is. Comes first, and again when a watch had to be given up.
    All(Vec<T>),
    /// An object is there, new or changed.
    There(T),
    /// An object is gone; this was its last state.
    Gone(T),
}

/// How a watch ended.
enum End {
    /// Go on from the last revision.
    Closed,
    /// List again.
    Expired,
    /// Go on after a pause.
    Failed(Error),
}

/// Follows `source` and tells of everything, until dropped.
pub(super) async fn follow<T>(calls: &Calls, source: &Source, mut tell: impl FnMut(News<T>))
where
    T: DeserializeOwned,
{
    let mut pause = PAUSE_MIN;
    loop {
        let mut revision = match list(calls, source).await {
            Ok((objects, revision)) => {
                tell(News::All(objects));
                revision
            }
            Err(error) => {
                tracing::debug!(path = source.path, %error, "cannot list; trying again");
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
                continue;
            }
        };
        loop {
            let begin = Instant::now();
            let end = watch(calls, source, &mut revision, &mut tell).await;
            if begin.elapsed() >= GOOD {
                pause = PAUSE_MIN;
            } else {
                sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
            }
            match end {
                End::Closed => {}
                End::Expired => break,
                End::Failed(error) => {
                    tracing::debug!(path = source.path, %error, "the watch broke");
                    if error.is_missing() {
                        break;
                    }
                }
            }
        }
    }
}

/// All objects, in pages of one snapshot, and the revision of it.
async fn list<T: DeserializeOwned>(
    calls: &Calls,
    source: &Source,
) -> Result<(Vec<T>, String), Error> {
    let mut objects = Vec::new();
    let mut next = String::new();
    loop {
        let mut path = format!("{}?limit={PAGE}{}", source.path, source.query);
        if !next.is_empty() {
            path = format!("{path}&continue={}", segment(&next));
        }
        let page: Page = calls.read(&path, source.accept(true)).await?;
        for item in page.items {
            match serde_json::from_str(item.get()) {
                Ok(object) => objects.push(object),
                Err(error) => tracing::warn!(path = source.path, %error, "an object is unreadable"),
            }
        }
        if page.metadata.r#continue.is_empty() {
            return Ok((objects, page.metadata.resource_version));
        }
        next = page.metadata.r#continue;
    }
}

async fn watch<T>(
    calls: &Calls,
    source: &Source,
    revision: &mut String,
    tell: &mut impl FnMut(News<T>),
) -> End
where
    T: DeserializeOwned,
{
    let path = format!(
        "{}?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}\
         &resourceVersion={}{}",
        source.path,
        segment(revision),
        source.query
    );
    let failed = |error| {
        let error = Error::Call { what: format!("WATCH {}", source.path), answer: Box::new(error) };
        if matches!(error.code(), 410) { End::Expired } else { End::Failed(error) }
    };
    let deadline = Instant::now() + Duration::from_secs(WATCH_SECONDS) + OVERDUE;
    let request = Request::get(&path)
        .header(header::ACCEPT, source.accept(false))
        // A stream of compressed events is decompressed only up to the end of the first.
        .header(header::ACCEPT_ENCODING, "identity");
    let request = match request.body(Vec::new()) {
        Ok(request) => request,
        Err(error) => return failed(kube::Error::HttpError(error)),
    };
    let stream = match calls.client().request_stream(request).await {
        Ok(stream) => stream,
        Err(error) => return failed(error),
    };
    let mut stream = pin!(stream);
    let mut text = Vec::new();
    loop {
        match timeout_at(deadline, line(&mut stream, &mut text)).await {
            Ok(Ok(true)) => {}
            Ok(Ok(false)) | Err(_) => return End::Closed,
            Ok(Err(error)) => return failed(kube::Error::ReadEvents(error)),
        }
        // A line that was cut off by the end of the connection comes again.
        let Ok(event) = serde_json::from_slice::<Event<'_>>(&text) else { return End::Closed };
        if event.r#type == "ERROR" {
            let status = serde_json::from_str(event.object.get()).unwrap_or_default();
            return failed(kube::Error::Api(Box::new(status)));
        }
        // The watch goes on from here, whether the object can be read or not.
        let Ok(bare) = serde_json::from_str::<Bare>(event.object.get()) else {
            tracing::warn!(path = source.path, "an object has unreadable metadata");
            continue;
        };
        *revision = bare.metadata.resource_version;
        if event.r#type == "BOOKMARK" {
            continue;
        }
        match serde_json::from_str(event.object.get()) {
            Ok(object) if event.r#type == "DELETED" => tell(News::Gone(object)),
            Ok(object) => tell(News::There(object)),
            Err(error) => tracing::warn!(path = source.path, %error, "an object is unreadable"),
        }
    }
}

/// Reads a line; false at the end.
async fn line(stream: &mut (impl AsyncBufRead + Unpin), text: &mut Vec<u8>) -> io::Result<bool> {
    text.clear();
    loop {
        let chunk = stream.fill_buf().await?;
        if chunk.is_empty() {
            return Ok(false);
        }
        let end = memchr::memchr(b'\n', chunk);
        let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
        text.extend_from_slice(part);
        let read = part.len() + usize::from(end.is_some());
        stream.consume_unpin(read);
        if end.is_some() {
            return Ok(true);
        }
        if text.len() > LINE_MAX {
            return Err(io::Error::other("an event is too long"));
        }
    }
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMeta,
    #[serde(default = "Vec::new", deserialize_with = "null_is_empty")]
    items: Vec<Box<RawValue>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    r#continue: String,
}

#[cfg(test)]
#[path = "follow_tests.rs"]
mod tests;
