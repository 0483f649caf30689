//! Follows one kind of object: lists it, then watches it, for ever.
//!
//! Owns what happens when a watch ends, breaks or is too old, and that one object that cannot be
//! read harms no other. Objects are read straight into the small types that decisions need. Must
//! not know what the objects mean nor where they are kept.

use std::{borrow::Cow, collections::BTreeSet, fmt::Write, time::Duration};

use http_body_util::BodyExt;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep, timeout_at};
use trainyard_api::Meta;

use crate::{
    backoff::Backoff,
    cache::Object,
    calls::{Call, CallError, Calls, Turn, Verb},
    lines::Lines,
};

const PAGE: u32 = 500;
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// The API server ends a watch after this long; a little less for some, so that they do not all
/// end at once.
const WATCH_SECONDS: u64 = 290;
/// How long after its time an unended watch counts as broken.
const OVERDUE: Duration = Duration::from_secs(10);
/// A watch that lived this long was a good one.
const GOOD: Duration = Duration::from_secs(1);
/// A kind that there need not be is looked for at least so often.
const ABSENT_MAX: Duration = Duration::from_secs(10);
/// A kind that was there is missed when it was not so many times in a row.
const PATIENCE: u32 = 3;
/// How many unreadable objects are remembered as told of.
const COMPLAINTS_MAX: usize = 1000;

/// What is followed.
#[derive(Debug)]
pub(crate) struct Source {
    /// Plural name.
    pub(crate) resource: &'static str,
    pub(crate) path: String,
    /// Label selector, ready for a query.
    pub(crate) selector: Option<String>,
    /// What to do when the API server does not know the resource.
    pub(crate) remedy: &'static str,
}

/// What is learnt.
#[derive(Debug)]
pub(crate) enum News<T> {
    /// Everything there is at a version; of the unreadable ones only the UID is known.
    All { objects: Vec<T>, unreadable: Vec<String>, version: u64 },
    /// An object is there, new or changed.
    There(T),
    /// An object is gone, and this is the last that was known of it.
    Gone { uid: String, version: u64, last: Option<T> },
}

/// How a watch ended.
enum End {
    /// As it should, or by a broken connection: go on from the last version.
    Closed,
    /// The last version is too old: list again.
    Expired,
    Failed(CallError),
}

/// Follows `source` and tells of everything, until dropped.
pub(crate) async fn follow<T: DeserializeOwned + Object>(
    calls: &Calls,
    source: &Source,
    tell: impl FnMut(News<T>),
) {
    Follower::new(calls, source, tell).follow().await;
}

/// The same for a kind that there need not be. `absent` is told when the API server does not know
/// it or does not let us read it; should it appear later, it is followed.
pub(crate) async fn follow_optional<T: DeserializeOwned + Object>(
    calls: &Calls,
    source: &Source,
    tell: impl FnMut(News<T>),
    absent: &(dyn Fn() + Send + Sync),
) {
    let mut follower = Follower::new(calls, source, tell);
    follower.absent = Some(absent);
    follower.follow().await;
}

struct Follower<'a, F> {
    calls: &'a Calls,
    source: &'a Source,
    tell: F,
    complaints: BTreeSet<String>,
    backoff: Backoff,
    rounds: u64,
    /// Whom to tell that there is no such kind, where there need not be.
    absent: Option<&'a (dyn Fn() + Send + Sync)>,
    /// How often in a row it was not there; not counted while it never was.
    refusals: Option<u32>,
}

impl<'a, F> Follower<'a, F> {
    fn new(calls: &'a Calls, source: &'a Source, tell: F) -> Self {
        Self {
            calls,
            source,
            tell,
            complaints: BTreeSet::new(),
            backoff: Backoff::new(RETRY_MIN, RETRY_MAX),
            rounds: 0,
            absent: None,
            refusals: None,
        }
    }

    async fn follow<T>(&mut self)
    where
        T: DeserializeOwned + Object,
        F: FnMut(News<T>),
    {
        loop {
            let version = self.list_until_it_works().await;
            self.refusals = Some(0);
            self.watch_until_expired(version).await;
        }
    }

    async fn list_until_it_works<T>(&mut self) -> String
    where
        T: DeserializeOwned + Object,
        F: FnMut(News<T>),
    {
        let mut page = PAGE;
        loop {
            match self.list(Some(page)).await {
                Ok(version) => return version,
                // Whoever may make objects may make them large.
                Err(CallError::TooLarge(_)) if page > 1 => page = (page / 8).max(1),
                // The pages' snapshot has expired between two of them.
                Err(error) if error.code() == 410 => match self.list(None).await {
                    Ok(version) => return version,
                    Err(error) => self.pause_after("list", &error).await,
                },
                Err(error) => self.pause_after("list", &error).await,
            }
        }
    }

    async fn list<T>(&mut self, limit: Option<u32>) -> Result<String, CallError>
    where
        T: DeserializeOwned + Object,
        F: FnMut(News<T>),
    {
        let (mut objects, mut unreadable) = (Vec::new(), Vec::new());
        let mut next = String::new();
        let version = loop {
            let mut query = Vec::new();
            query.extend(limit.map(|limit| format!("limit={limit}")));
            if !next.is_empty() {
                query.push(format!("continue={}", encoded(&next)));
            }
            let answer = self.calls.send(self.call(Verb::List, query)).await?;
            let page: Page<'_> = serde_json::from_slice(&answer)
                .map_err(|error| CallError::Answer(error.to_string()))?;
            for item in page.items {
                match self.read(item) {
                    Ok(object) => objects.push(object),
                    Err(meta) => unreadable.extend(meta.map(|meta| meta.uid)),
                }
            }
            if page.metadata.r#continue.is_empty() {
                break page.metadata.resource_version.into_owned();
            }
            next = page.metadata.r#continue.into_owned();
        };
        if self.backoff.succeeded() {
            tracing::info!(resource = self.source.resource, "listed again");
        }
        let number = version.parse().unwrap_or(0);
        (self.tell)(News::All { objects, unreadable, version: number });
        Ok(version)
    }

    async fn watch_until_expired<T>(&mut self, mut version: String)
    where
        T: DeserializeOwned + Object,
        F: FnMut(News<T>),
    {
        loop {
            let (begin, from) = (Instant::now(), version.clone());
            let end = self.watch(&mut version).await;
            // The API server ends a watch whose reader falls behind: whoever got on goes on at once.
            let got_on = matches!(end, End::Closed) && version != from;
            let good = got_on || begin.elapsed() >= GOOD;
            if good {
                self.backoff.succeeded();
            }
            match end {
                End::Expired => {
                    tracing::debug!(resource = self.source.resource, "the watch is too old");
                    if !good {
                        sleep(self.backoff.failed()).await;
                    }
                    return;
                }
                End::Closed if good => {}
                End::Closed => sleep(self.backoff.failed()).await,
                End::Failed(error) if error.code() == 404 => return,
                End::Failed(error) => self.pause_after("watch", &error).await,
            }
        }
    }

    async fn watch<T>(&mut self, version: &mut String) -> End
    where
        T: DeserializeOwned + Object,
        F: FnMut(News<T>),
    {
        self.rounds += 1;
        let jitter = (self.source.path.len() as u64 * 7 + self.rounds * 13) % 30;
        let seconds = WATCH_SECONDS - jitter;
        let query = vec![
            "watch=true".to_owned(),
            "allowWatchBookmarks=true".to_owned(),
            format!("timeoutSeconds={seconds}"),
            format!("resourceVersion={}", encoded(version)),
        ];
        let deadline = Instant::now() + Duration::from_secs(seconds) + OVERDUE;
        let mut body = match self.calls.open(self.call(Verb::Watch, query)).await {
            Ok(body) => body,
            Err(error) if error.code() == 410 => return End::Expired,
            Err(error) => return End::Failed(error),
        };
        let mut lines = Lines::default();
        let mut unanswered = self.calls.unanswered();
        loop {
            let frame = tokio::select! {
                frame = timeout_at(deadline, body.frame()) => frame,
                // The way to the API server may have broken without a word.
                _ = unanswered.changed() => return End::Closed,
            };
            let data = match frame {
                Ok(Some(Ok(frame))) => frame.into_data().unwrap_or_default(),
                Ok(Some(Err(error))) => {
                    tracing::debug!(resource = self.source.resource, %error, "the watch broke");
                    return End::Closed;
                }
                Ok(None) | Err(_) => return End::Closed,
            };
            let mut end = None;
            let fits = lines.feed(&data, |line| {
                if end.is_none() {
                    end = self.event(line, version);
                }
            });
            if let Some(end) = end {
                return end;
            }
            if !fits {
                return End::Expired;
            }
        }
    }

    /// Takes one event of the watch; an end if it tells of one.
    fn event<T>(&mut self, line: &[u8], version: &mut String) -> Option<End>
    where
        T: DeserializeOwned + Object,
        F: FnMut(News<T>),
    {
        let event: Event<'_> = match serde_json::from_slice(line) {
            Ok(event) => event,
            // A line that was cut off by the end of the connection comes again.
            Err(error) => {
                tracing::debug!(resource = self.source.resource, %error, "not an event");
                return Some(End::Closed);
            }
        };
        match &*event.r#type {
            "ADDED" | "MODIFIED" => {
                // The resource version is read a second time only where it is no number.
                match self.read::<T>(event.object) {
                    Ok(object) if object.version() != 0 => {
                        *version = object.version().to_string();
                        (self.tell)(News::There(object));
                    }
                    Ok(object) => {
                        advance(version, meta(event.object));
                        (self.tell)(News::There(object));
                    }
                    Err(meta) => advance(version, meta),
                }
            }
            "DELETED" => {
                let gone = meta(event.object);
                if let Some(gone) = &gone {
                    let (uid, version) = (gone.uid.clone(), gone.version());
                    let last = self.read::<T>(event.object).ok();
                    (self.tell)(News::Gone { uid, version, last });
                }
                advance(version, gone);
            }
            "BOOKMARK" => advance(version, meta(event.object)),
            "ERROR" => return Some(self.ended_by(event.object)),
            other => tracing::debug!(resource = self.source.resource, other, "unknown event"),
        }
        None
    }

    fn ended_by(&self, status: &RawValue) -> End {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Status {
            code: u16,
            message: String,
        }
        let status: Status = serde_json::from_str(status.get()).unwrap_or_default();
        tracing::debug!(
            resource = self.source.resource,
            status.code,
            status.message,
            "watch ended"
        );
        if status.code == 410 {
            End::Expired
        } else {
            End::Failed(CallError::Answer(status.message))
        }
    }

    /// Reads an object; its metadata if it cannot be read, and nothing if that cannot either.
    fn read<T: DeserializeOwned>(&mut self, object: &RawValue) -> Result<T, Option<Box<Meta>>> {
        let error = match serde_json::from_str(object.get()) {
            Ok(object) => return Ok(object),
            Err(error) => error,
        };
        let meta = meta(object);
        let name = meta.as_ref().map_or_else(
            || "an object without readable metadata".to_owned(),
            |meta| format!("{}/{}", meta.namespace, meta.name),
        );
        let resource = self.source.resource;
        if self.complaints.len() < COMPLAINTS_MAX && self.complaints.insert(name.clone()) {
            tracing::error!(resource, name, %error, "this object cannot be read; it is left alone");
        }
        Err(meta)
    }

    /// A kind that there need not be is not there. An API server that is starting may not know it
    /// yet, so one that was there before is missed only after some time.
    async fn pause_while_absent(&mut self, absent: &(dyn Fn() + Send + Sync), error: &CallError) {
        let resource = self.source.resource;
        let is_new = self.refusals.is_none_or(|refusals| refusals == PATIENCE);
        if is_new && error.code() == 403 {
            tracing::warn!(resource, %error, "not allowed to read this resource; none are assumed");
        } else {
            tracing::debug!(resource, %error, "there is no such resource");
        }
        if is_new {
            absent();
        }
        self.refusals = Some(self.refusals.map_or(PATIENCE + 1, |refusals| refusals + 1));
        sleep(self.backoff.failed().min(ABSENT_MAX)).await;
    }

    async fn pause_after(&mut self, verb: &str, error: &CallError) {
        if let Some(absent) = self.absent.filter(|_| verb == "list")
            && matches!(error.code(), 403 | 404)
        {
            return self.pause_while_absent(absent, error).await;
        }
        let pause = error.retry_after().unwrap_or_default().max(self.backoff.failed());
        let resource = self.source.resource;
        if error.code() == 404 {
            let remedy = self.source.remedy;
            tracing::error!(resource, "the API server does not know this resource; {remedy}");
        } else if pause > RETRY_MIN * 4 {
            tracing::error!(resource, verb, %error, ?pause, "cannot read; trying again");
        } else {
            tracing::warn!(resource, verb, %error, ?pause, "cannot read; trying again");
        }
        sleep(pause).await;
    }

    fn call(&self, verb: Verb, mut query: Vec<String>) -> Call {
        query.extend(self.source.selector.as_ref().map(|by| format!("labelSelector={by}")));
        let path = format!("{}?{}", self.source.path, query.join("&"));
        Call { verb, resource: self.source.resource, path, body: Vec::new(), turn: Turn::Free }
    }
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow, default)]
    metadata: PageMeta<'a>,
    #[serde(borrow, default)]
    items: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PageMeta<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
    #[serde(borrow)]
    r#continue: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct OnlyMeta {
    metadata: Meta,
}

fn meta(object: &RawValue) -> Option<Box<Meta>> {
    serde_json::from_str::<OnlyMeta>(object.get()).ok().map(|object| Box::new(object.metadata))
}

/// Moves on to the version of an object, by which the watch is resumed.
fn advance(version: &mut String, meta: Option<Box<Meta>>) {
    if let Some(meta) = meta.filter(|meta| !meta.resource_version.is_empty()) {
        *version = meta.resource_version;
    }
}

/// Text as part of a query.
pub(crate) fn encoded(text: &str) -> String {
    let mut query = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            let _ = write!(query, "%{byte:02X}");
        }
    }
    query
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
