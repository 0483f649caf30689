//! Events about objects, written as the controllers of a cluster write them.
//!
//! The same words about the same object are one event with a count. An event that cannot be written
//! is lost: nothing waits for it. Must not know why events are written.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::calls::{Calls, core};
use super::clock::{Clock, seconds};
use super::view::Meta;

/// How many events are remembered for counting.
const REMEMBERED: usize = 256;

/// Whether an event tells of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Normal,
    Warning,
}

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct About {
    pub(super) api_version: Cow<'static, str>,
    pub(super) kind: Cow<'static, str>,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

impl About {
    /// An object of the core group.
    pub(super) fn core(kind: &'static str, meta: &Meta) -> Self {
        Self {
            api_version: "v1".into(),
            kind: kind.into(),
            namespace: meta.namespace.clone(),
            name: meta.name.clone(),
            uid: meta.uid.clone(),
        }
    }
}

#[derive(Debug)]
struct Told {
    digest: [u8; 8],
    path: String,
    count: u64,
}

/// Writes events in the name of one controller.
pub(super) struct Recorder {
    calls: Calls,
    clock: Clock,
    component: &'static str,
    told: Mutex<VecDeque<Told>>,
}

impl Recorder {
    pub(super) fn new(calls: Calls, clock: Clock, component: &'static str) -> Self {
        Self { calls, clock, component, told: Mutex::default() }
    }

    /// Writes an event, or counts it up.
    pub(super) async fn record(&self, about: &About, weight: Weight, reason: &str, message: &str) {
        let digest = digest(about, weight, reason, message);
        let now = seconds(self.clock.now());
        if let Some((path, count)) = self.counted(digest) {
            let edit = json!({"count": count, "lastTimestamp": now});
            match self.calls.merge(&path, &edit).await {
                Ok(()) => return,
                Err(error) if error.is_missing() => self.forget(digest),
                Err(error) => {
                    tracing::debug!(%error, reason, "an event is lost");
                    return;
                }
            }
        }
        let event = event(about, weight, (reason, message), &now, self.component, digest);
        let path = core(event["metadata"]["namespace"].as_str().unwrap_or_default(), "events", "");
        match self.calls.create(&path, &event).await {
            Ok(meta) => self.remember(digest, format!("{path}/{}", meta.name)),
            // Namespaces that go away take no events.
            Err(error) => tracing::debug!(%error, reason, "an event is lost"),
        }
    }

    fn counted(&self, digest: [u8; 8]) -> Option<(String, u64)> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let known = told.iter_mut().find(|known| known.digest == digest)?;
        known.count += 1;
        Some((known.path.clone(), known.count))
    }

    fn remember(&self, digest: [u8; 8], path: String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() >= REMEMBERED {
            told.pop_front();
        }
        told.push_back(Told { digest, path, count: 1 });
    }

    fn forget(&self, digest: [u8; 8]) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.retain(|known| known.digest != digest);
    }
}

fn digest(about: &About, weight: Weight, reason: &str, message: &str) -> [u8; 8] {
    let mut hash = Sha256::new();
    for part in [&*about.kind, &about.namespace, &about.name, &about.uid, reason, message] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update([u8::from(weight == Weight::Warning)]);
    let mut digest = [0; 8];
    digest.copy_from_slice(&hash.finalize()[..8]);
    digest
}

fn event(
    about: &About,
    weight: Weight,
    (reason, message): (&str, &str),
    now: &str,
    component: &str,
    digest: [u8; 8],
) -> Value {
    let namespace = if about.namespace.is_empty() { "default" } else { &about.namespace };
    let mut object = json!({
        "apiVersion": about.api_version, "kind": about.kind, "name": about.name, "uid": about.uid,
    });
    if !about.namespace.is_empty() {
        object["namespace"] = about.namespace.as_str().into();
    }
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {
            "namespace": namespace,
            // Two of the same words at different times are two events.
            "generateName": format!("{}.{:016x}", cut(&about.name), u64::from_be_bytes(digest)),
        },
        "involvedObject": object,
        "reason": reason,
        "message": message,
        "type": match weight { Weight::Normal => "Normal", Weight::Warning => "Warning" },
        "source": {"component": component},
        "reportingComponent": component,
        "firstTimestamp": now, "lastTimestamp": now, "count": 1,
    })
}

/// The beginning of a name, with room for more after it.
fn cut(name: &str) -> &str {
    let end = name.char_indices().map(|(at, _)| at).take_while(|at| *at <= 200).last();
    let cut = if name.len() > 200 { name.get(..end.unwrap_or(0)).unwrap_or(name) } else { name };
    cut.trim_end_matches(['-', '.'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(namespace: &str) -> About {
        let meta = Meta {
            name: "p".into(),
            namespace: namespace.into(),
            uid: "u".into(),
            ..Meta::default()
        };
        About::core("Pod", &meta)
    }

    #[test]
    fn events_of_cluster_wide_objects_are_in_the_default_namespace() {
        let written = event(&about(""), Weight::Warning, ("R", "m"), "t", "c", [0; 8]);
        assert_eq!(written["metadata"]["namespace"], "default");
        assert!(written["involvedObject"].get("namespace").is_none());
        assert_eq!(written["type"], "Warning");
        let written = event(&about("n"), Weight::Normal, ("R", "m"), "t", "c", [0; 8]);
        assert_eq!(written["involvedObject"]["namespace"], "n");
    }

    #[test]
    fn other_words_are_another_event() {
        let one = digest(&about("n"), Weight::Normal, "R", "m");
        assert_eq!(one, digest(&about("n"), Weight::Normal, "R", "m"));
        assert_ne!(one, digest(&about("n"), Weight::Normal, "Rm", ""));
        assert_ne!(one, digest(&about("n"), Weight::Warning, "R", "m"));
    }

    #[test]
    fn long_names_are_cut_between_letters() {
        assert_eq!(cut("short"), "short");
        assert_eq!(cut(&"a".repeat(253)).len(), 200);
        assert!(cut(&"ü".repeat(150)).len() <= 200);
    }
}
