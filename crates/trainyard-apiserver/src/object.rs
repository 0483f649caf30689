//! An object as it is kept: its JSON text with the revision inside, and what selectors ask about it.
//!
//! Lists and watches are answered by copying these texts, never by building them again. Must not
//! know kinds, verbs or how objects are stored.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What is asked of objects without reading their text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// `metadata.uid`.
    pub(crate) uid: Box<str>,
    /// `metadata.labels`, sorted by key.
    pub(crate) labels: Box<[(Box<str>, Box<str>)]>,
    /// The fields of its kind that field selectors may name, beside name and namespace.
    pub(crate) fields: Box<[(Box<str>, Box<str>)]>,
}

/// An object that is about to be stored: all but its revision is known.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    text: Vec<u8>,
    /// Where the digits of the revision go.
    hole: usize,
    head: usize,
    /// What selectors ask.
    pub(crate) meta: Meta,
}

/// An object as it is kept. Never changed; a write makes another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    /// The revision at which this text was written, as in its `metadata.resourceVersion`.
    pub(crate) revision: u64,
    /// The JSON text, beginning with `{"apiVersion":…,"kind":…,"metadata":`.
    pub(crate) text: Bytes,
    /// How many bytes `{"apiVersion":…,"kind":…,` takes.
    pub(crate) head: usize,
    /// What selectors ask.
    pub(crate) meta: Meta,
}

impl Draft {
    /// Writes down an object of the given type. `apiVersion`, `kind` and `metadata.resourceVersion`
    /// of the value itself are not looked at.
    pub(crate) fn of(
        api_version: &str,
        kind: &str,
        object: &Map<String, Value>,
        fields: Box<[(Box<str>, Box<str>)]>,
    ) -> Self {
        let empty = Map::new();
        let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
        let mut text = Vec::with_capacity(1024);
        text.extend_from_slice(b"{\"apiVersion\":");
        push_text(&mut text, api_version);
        text.extend_from_slice(b",\"kind\":");
        push_text(&mut text, kind);
        text.push(b',');
        let head = text.len();
        text.extend_from_slice(b"\"metadata\":{\"resourceVersion\":\"");
        let hole = text.len();
        text.push(b'"');
        for (key, value) in metadata.iter().filter(|(key, _)| *key != "resourceVersion") {
            push_member(&mut text, key, value);
        }
        text.push(b'}');
        let rest = object
            .iter()
            .filter(|(key, _)| !matches!(key.as_str(), "apiVersion" | "kind" | "metadata"));
        for (key, value) in rest {
            push_member(&mut text, key, value);
        }
        text.push(b'}');
        Self { text, hole, head, meta: meta_of(metadata, fields) }
    }

    /// How many bytes it will take, nearly.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// The object as a trial run shows it: it has no revision.
    pub(crate) fn unwritten(self) -> Stored {
        const MEMBER: &[u8] = b"\"resourceVersion\":\"\",";
        let from = self.hole.saturating_sub(MEMBER.len() - 2);
        let mut text = self.text;
        if text.get(from..from + MEMBER.len()) == Some(MEMBER) {
            text.drain(from..from + MEMBER.len());
        }
        Stored { revision: 0, text: text.into(), head: self.head, meta: self.meta }
    }

    /// The object at a revision.
    pub(crate) fn at(self, revision: u64) -> Stored {
        let digits = revision.to_string();
        let mut text = Vec::with_capacity(self.text.len() + digits.len());
        text.extend_from_slice(self.text.get(..self.hole).unwrap_or_default());
        text.extend_from_slice(digits.as_bytes());
        text.extend_from_slice(self.text.get(self.hole..).unwrap_or_default());
        Stored { revision, text: text.into(), head: self.head, meta: self.meta }
    }
}

fn push_text(text: &mut Vec<u8>, value: &str) {
    push_json(text, &value);
}

fn push_json(text: &mut Vec<u8>, value: &impl Serialize) {
    // Writing JSON into memory cannot fail: keys are texts.
    let _ = serde_json::to_writer(text, value);
}

fn push_member(text: &mut Vec<u8>, key: &str, value: &Value) {
    text.push(b',');
    push_text(text, key);
    text.push(b':');
    push_json(text, value);
}

fn meta_of(metadata: &Map<String, Value>, fields: Box<[(Box<str>, Box<str>)]>) -> Meta {
    let labels = metadata.get("labels").and_then(Value::as_object);
    let mut labels: Vec<(Box<str>, Box<str>)> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key.as_str().into(), value.as_str()?.into())))
        .collect();
    labels.sort_unstable();
    let uid = metadata.get("uid").and_then(Value::as_str).unwrap_or_default().into();
    Meta { uid, labels: labels.into(), fields }
}

impl Stored {
    /// The object as a value, its own `apiVersion` and `kind` included.
    pub(crate) fn value(&self) -> Value {
        crate::request::body::read(&self.text).map(|read| read.value).unwrap_or_default()
    }

    /// The text after `{"apiVersion":…,"kind":…,`, that is from `"metadata":` to the end.
    pub(crate) fn rest(&self) -> &[u8] {
        self.text.get(self.head..).unwrap_or_default()
    }
}

/// A shared object.
pub(crate) type Object = Arc<Stored>;

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_revision_is_in_the_text() {
        let value = json!({
            "kind": "X", "apiVersion": "y",
            "metadata": {"name": "a", "resourceVersion": "7", "uid": "u", "labels": {"b": "2", "a": "1"}},
            "spec": {"x": [1, "\"quoted\""]},
        });
        let draft = Draft::of("v1", "Pod", value.as_object().unwrap(), Box::default());
        let stored = draft.at(42);
        let read = stored.value();
        assert_eq!(read["metadata"]["resourceVersion"], "42");
        assert_eq!((&read["apiVersion"], &read["kind"]), (&json!("v1"), &json!("Pod")));
        assert_eq!(read["spec"], value["spec"]);
        let draft = Draft::of("v1", "Pod", value.as_object().unwrap(), Box::default());
        let unwritten = draft.unwritten().value();
        assert_eq!(unwritten["metadata"]["name"], "a");
        assert!(unwritten["metadata"].get("resourceVersion").is_none());
        assert!(stored.rest().starts_with(b"\"metadata\":{"));
        assert_eq!(&*stored.meta.uid, "u");
        assert_eq!(stored.meta.labels[0], ("a".into(), "1".into()));
    }
}
