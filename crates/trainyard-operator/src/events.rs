//! Events about jobs: a queue of low priority, and its writer.
//!
//! Events never hold up the writes of jobs: telling only queues, and a few requests at a time
//! write. When too many wait, the oldest are dropped, except those that tell how a job ended. Must
//! not decide what is told.

use std::{
    borrow::Cow,
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use jiff::Timestamp;
use serde::Serialize;
use tokio::{sync::Notify, time::sleep};
use tokio_util::sync::CancellationToken;
use trainyard_core::{Event, EventType};

use crate::{
    Metrics,
    backoff::Backoff,
    calls::{Call, CallError, Calls, Turn, Verb},
    event_memory::{Memory, Told},
    kind::JobKind,
};

/// Events that may wait.
const WAITING_MAX: usize = 8192;
/// Ends of jobs that may wait; more than that is a broken cluster.
const ENDS_MAX: usize = 65_536;
/// Requests at a time.
const AT_A_TIME: usize = 8;
/// Attempts to write an event that may be dropped.
const ATTEMPTS: u32 = 6;
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// Longer messages are cut.
const MESSAGE_MAX: usize = 1024;

/// What events are about.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) version: String,
}

#[derive(Debug)]
struct Waiting {
    subject: Arc<Subject>,
    kind: EventType,
    reason: Cow<'static, str>,
    message: String,
    terminal: bool,
    at: Timestamp,
    number: u64,
    count: u32,
}

#[derive(Debug, Default)]
struct Backlog {
    ends: VecDeque<Waiting>,
    others: VecDeque<Waiting>,
    memory: Memory,
}

/// The events of one kind of job.
pub(crate) struct Events {
    backlog: Mutex<Backlog>,
    news: Notify,
    calls: Calls,
    metrics: Arc<Metrics>,
    api_version: &'static str,
    kind: &'static str,
    source: Cow<'static, str>,
    /// How many may wait.
    waiting_max: usize,
}

impl Events {
    pub(crate) fn new<K: JobKind>(calls: Calls, metrics: Arc<Metrics>) -> Self {
        Self::about(K::API_VERSION, K::KIND, K::EVENT_SOURCE.into(), calls, metrics)
    }

    /// Events about objects of any kind, in somebody's name.
    pub(crate) fn about(
        api_version: &'static str,
        kind: &'static str,
        source: Cow<'static, str>,
        calls: Calls,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            backlog: Mutex::default(),
            news: Notify::new(),
            calls,
            metrics,
            api_version,
            kind,
            source,
            waiting_max: WAITING_MAX,
        }
    }

    /// The same with more patience.
    pub(crate) fn with_room_for(self, waiting_max: usize) -> Self {
        Self { waiting_max, ..self }
    }

    /// Queues an event.
    pub(crate) fn tell(&self, subject: &Arc<Subject>, event: &Event, at: Timestamp) {
        let mut backlog = self.lock();
        let (number, count) = match backlog.memory.tell(&subject.uid, event, at) {
            Told::New(number) => (number, 1),
            Told::Before(number, count) => (number, count),
            Told::JustNow => return,
        };
        let waiting = Waiting {
            subject: Arc::clone(subject),
            kind: event.kind,
            reason: event.reason.clone(),
            message: cut(&event.message).to_owned(),
            terminal: event.terminal,
            at,
            number,
            count,
        };
        let (queue, max) = if event.terminal {
            (&mut backlog.ends, ENDS_MAX)
        } else {
            (&mut backlog.others, self.waiting_max)
        };
        queue.push_back(waiting);
        if queue.len() > max {
            queue.pop_front();
            self.metrics.event_dropped();
        }
        drop(backlog);
        self.news.notify_one();
    }

    /// Writes what is queued until it is closed and everything is written.
    pub(crate) async fn write(&self, closed: CancellationToken) {
        let mut under_way = FuturesUnordered::new();
        loop {
            while under_way.len() < AT_A_TIME {
                let Some(waiting) = self.take() else { break };
                under_way.push(self.write_one(waiting));
            }
            tokio::select! {
                Some(()) = under_way.next() => {}
                () = self.news.notified(), if under_way.len() < AT_A_TIME => {}
                () = closed.cancelled(), if under_way.is_empty() => return,
            }
        }
    }

    fn take(&self) -> Option<Waiting> {
        let mut backlog = self.lock();
        let waiting = backlog.ends.pop_front().or_else(|| backlog.others.pop_front());
        if backlog.others.is_empty() {
            // A burst has passed: its memory is given back.
            backlog.others.shrink_to(64);
        }
        waiting
    }

    async fn write_one(&self, event: Waiting) {
        let mut backoff = Backoff::new(RETRY_MIN, RETRY_MAX);
        let mut new = event.count == 1;
        let mut attempts = 0;
        loop {
            let call = if new { self.create(&event) } else { Self::raise(&event) };
            let Err(error) = self.calls.send(call).await else { return };
            attempts += 1;
            match error.code() {
                // The first one has expired; tell it anew.
                404 if !new => {
                    new = true;
                    continue;
                }
                // It was written although the answer got lost.
                409 if new => return,
                // A namespace that goes away takes no events.
                400..=428 | 431..=499 => {
                    self.drop_one(&event, &error);
                    return;
                }
                _ => {}
            }
            if !event.terminal && attempts >= ATTEMPTS {
                self.drop_one(&event, &error);
                return;
            }
            sleep(error.retry_after().unwrap_or_default().max(backoff.failed())).await;
        }
    }

    fn drop_one(&self, event: &Waiting, error: &CallError) {
        self.metrics.event_dropped();
        let (job, uid) = (&event.subject.name, &event.subject.uid);
        let namespace = &event.subject.namespace;
        tracing::debug!(job = %format_args!("{namespace}/{job}"), uid, reason = %event.reason,
            %error, "an event could not be written");
    }

    fn create(&self, event: &Waiting) -> Call {
        let subject = &*event.subject;
        let time = trainyard_api::time::whole_seconds(event.at).to_string();
        let name = name(event);
        let body = Body {
            api_version: "v1",
            kind: "Event",
            metadata: BodyMeta { name: &name, namespace: &subject.namespace },
            involved_object: Involved {
                api_version: self.api_version,
                kind: self.kind,
                name: &subject.name,
                namespace: &subject.namespace,
                uid: &subject.uid,
                resource_version: &subject.version,
            },
            r#type: event.kind.as_str(),
            reason: &event.reason,
            message: &event.message,
            source: Component { component: &self.source },
            reporting_component: &self.source,
            first_timestamp: &time,
            last_timestamp: &time,
            count: event.count,
        };
        let path = format!("/api/v1/namespaces/{}/events", subject.namespace);
        call(Verb::Create, path, &body)
    }

    fn raise(event: &Waiting) -> Call {
        let subject = &*event.subject;
        let time = trainyard_api::time::whole_seconds(event.at).to_string();
        let body = Raise { count: event.count, last_timestamp: &time };
        let path = format!("/api/v1/namespaces/{}/events/{}", subject.namespace, name(event));
        call(Verb::Patch, path, &body)
    }

    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn name(event: &Waiting) -> String {
    format!("{}.{:016x}", event.subject.name, event.number)
}

fn call(verb: Verb, path: String, body: &impl Serialize) -> Call {
    // Text and numbers always become JSON.
    let body = serde_json::to_vec(body).unwrap_or_default();
    Call { verb, resource: "events", path, body, turn: Turn::Spare }
}

/// As much of a message as an event may hold.
fn cut(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message.get(..end).unwrap_or_default()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: BodyMeta<'a>,
    involved_object: Involved<'a>,
    r#type: &'a str,
    reason: &'a str,
    message: &'a str,
    source: Component<'a>,
    reporting_component: &'a str,
    first_timestamp: &'a str,
    last_timestamp: &'a str,
    count: u32,
}

#[derive(Serialize)]
struct BodyMeta<'a> {
    name: &'a str,
    namespace: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Involved<'a> {
    api_version: &'a str,
    kind: &'a str,
    name: &'a str,
    namespace: &'a str,
    uid: &'a str,
    resource_version: &'a str,
}

#[derive(Serialize)]
struct Component<'a> {
    component: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Raise<'a> {
    count: u32,
    last_timestamp: &'a str,
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
