//! Events about pods and nodes, as a kubelet tells them: written in the background, never waited for,
//! bounded. The same words again raise the count of the event that is there.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// Events that may wait to be written; more are dropped, since a pod's status says the same.
const WAITING: usize = 1024;
/// Events that are remembered, to count repetitions.
const REMEMBERED: usize = 4096;
/// Longest message the API takes.
const MESSAGE_MAX: usize = 1024;
const COMPONENT: &str = "kubelet";

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    Normal,
    Warning,
}

/// The events of this agent; cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Events {
    queue: mpsc::Sender<Note>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Note {
    about: Value,
    namespace: String,
    host: String,
    weight: Weight,
    reason: &'static str,
    message: String,
    at: Timestamp,
}

impl Events {
    /// Begins to write events through this client.
    pub(crate) fn start(client: Client) -> Self {
        let (queue, waiting) = mpsc::channel(WAITING);
        tokio::spawn(write(client, waiting));
        Self { queue, dropped: Arc::default() }
    }

    /// Tells of a pod, or of one of its containers.
    pub(crate) fn pod(
        &self,
        pod: &Pod,
        container: Option<&str>,
        weight: Weight,
        reason: &'static str,
        message: impl Into<String>,
    ) {
        let spec = pod.spec.as_ref();
        let mut about = json!({
            "apiVersion": "v1", "kind": "Pod", "name": pod.name_any(),
            "namespace": pod.namespace().unwrap_or_default(), "uid": pod.uid().unwrap_or_default(),
        });
        if let Some(container) = container {
            let of = |kind: &str| format!("spec.{kind}{{{container}}}");
            let is_init = spec
                .and_then(|spec| spec.init_containers.as_ref())
                .is_some_and(|init| init.iter().any(|c| c.name == container));
            about["fieldPath"] = of(if is_init { "initContainers" } else { "containers" }).into();
        }
        self.put(Note {
            about,
            namespace: pod.namespace().unwrap_or_default(),
            host: spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            weight,
            reason,
            message: cut(message.into()),
            at: Timestamp::now(),
        });
    }

    fn put(&self, note: Note) {
        if self.queue.try_send(note).is_err() {
            let before = self.dropped.fetch_add(1, Ordering::Relaxed);
            if before == 0 {
                tracing::warn!("events are told faster than they can be written; some are dropped");
            }
        }
    }
}

fn cut(mut message: String) -> String {
    if message.len() > MESSAGE_MAX {
        let end = (0..=MESSAGE_MAX - 3).rev().find(|end| message.is_char_boundary(*end));
        message.truncate(end.unwrap_or_default());
        message.push_str("...");
    }
    message
}

/// What was told before: the event's name and how often.
#[derive(Debug, Default)]
struct Memory {
    known: HashMap<String, (String, u32)>,
    order: VecDeque<String>,
}

impl Memory {
    /// The name of the event for these words, and which time this is.
    fn count(&mut self, key: String, new_name: impl FnOnce() -> String) -> (String, u32) {
        if let Some((name, count)) = self.known.get_mut(&key) {
            *count += 1;
            return (name.clone(), *count);
        }
        if self.order.len() >= REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        let name = new_name();
        self.order.push_back(key.clone());
        self.known.insert(key, (name.clone(), 1));
        (name, 1)
    }
}

async fn write(client: Client, mut waiting: mpsc::Receiver<Note>) {
    let mut memory = Memory::default();
    let mut number = 0_u64;
    while let Some(note) = waiting.recv().await {
        let key = format!("{}\n{}\n{}", note.about, note.reason, note.message);
        let object = note.about["name"].as_str().unwrap_or_default();
        number += 1;
        let (name, count) =
            memory.count(key, || format!("{object}.{:x}{number:04x}", note.at.as_microsecond()));
        let api: Api<Event> = Api::namespaced(client.clone(), &note.namespace);
        if let Err(error) = put(&api, &note, &name, count).await {
            tracing::debug!(%error, reason = note.reason, "an event could not be written");
        }
    }
}

async fn put(api: &Api<Event>, note: &Note, name: &str, count: u32) -> Result<(), kube::Error> {
    if count > 1 {
        let patch = json!({"count": count, "lastTimestamp": whole(note.at)});
        return api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop);
    }
    let event = json!({
        "metadata": {"name": name, "namespace": note.namespace},
        "involvedObject": note.about,
        "type": match note.weight { Weight::Normal => "Normal", Weight::Warning => "Warning" },
        "reason": note.reason,
        "message": note.message,
        "source": {"component": COMPONENT, "host": note.host},
        "reportingComponent": COMPONENT,
        "reportingInstance": note.host,
        "firstTimestamp": whole(note.at),
        "lastTimestamp": whole(note.at),
        "count": 1,
    });
    let event: Event = serde_json::from_value(event).map_err(kube::Error::SerdeError)?;
    api.create(&PostParams::default(), &event).await.map(drop)
}

fn whole(time: Timestamp) -> String {
    let whole = jiff::TimestampRound::new().smallest(jiff::Unit::Second);
    time.round(whole.mode(jiff::RoundMode::Trunc)).unwrap_or(time).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_words_are_counted_and_the_memory_is_bounded() {
        let mut memory = Memory::default();
        assert_eq!(memory.count("a".into(), || "one".into()), ("one".into(), 1));
        assert_eq!(memory.count("a".into(), || "two".into()), ("one".into(), 2));
        for number in 0..REMEMBERED * 2 {
            memory.count(format!("k{number}"), || format!("n{number}"));
        }
        assert_eq!((memory.known.len(), memory.order.len()), (REMEMBERED, REMEMBERED));
        assert_eq!(memory.count("a".into(), || "three".into()), ("three".into(), 1));
    }

    #[test]
    fn long_messages_are_cut_at_a_character() {
        let cut = cut("é".repeat(1000));
        assert!(cut.len() <= MESSAGE_MAX && cut.ends_with("..."), "{}", cut.len());
        assert_eq!(super::cut("short".into()), "short");
    }
}
