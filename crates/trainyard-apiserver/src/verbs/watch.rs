//! Watches: from any revision that is still known, or from the present with everything first.
//!
//! Owns which events a watcher gets and when it ends. A watcher has no queue: it reads the store's
//! history at its own pace and is told when it has fallen behind.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream;
use http::{HeaderValue, Response, header};
use serde_json::json;
use tokio::time::Instant;
use trainyard_schema::FieldError;

use super::Ask;
use super::list::{malformed, not_in_the_future};
use super::selection::Selection;
use crate::answer::{Body, View};
use crate::api::Api;
use crate::failure::{About, Failure};
use crate::kind::Kind;
use crate::object::{Draft, Object, Stored};
use crate::request::accept::Form;
use crate::store::{self, Cursor, Event};

/// How often a watcher that wants it learns how far the store is.
const BOOKMARK: Duration = Duration::from_mins(1);
/// The last bookmark comes so long before the end.
const BEFORE_END: Duration = Duration::from_secs(2);
/// How long a watch lasts when the client does not say.
const LASTS: Duration = Duration::from_mins(45);
/// As much goes into one piece at most.
const PIECE: usize = 128 * 1024;

/// Starts a watch.
pub(super) fn start(api: &Arc<Api>, ask: &Ask) -> Result<Response<Body>, Failure> {
    let selection = Selection::read(&ask.target.kind, &ask.query)?;
    let begin = Begin::read(ask)?;
    let view = ask.view(api);
    let seconds = ask.query.number("timeoutSeconds")?.and_then(|n| u64::try_from(n).ok());
    let lasts = seconds.filter(|n| *n > 0).map_or(LASTS, Duration::from_secs);
    let mut watcher = Watcher {
        api: api.clone(),
        view,
        selection,
        namespace: ask.target.namespace.clone(),
        bookmarks: ask.query.flag("allowWatchBookmarks"),
        until: Instant::now() + lasts.min(Duration::from_hours(24)),
        cursor: None,
        columns_told: false,
        initial: Vec::new().into_iter(),
        end_of_initial: None,
        events: Vec::new().into_iter(),
        pending: Vec::new(),
    };
    watcher.begin(&begin)?;
    let body = Body::pieces(stream::unfold(watcher, |mut watcher| async move {
        watcher.piece().await.map(|piece| (piece, watcher))
    }));
    let mut response = Response::new(body);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    Ok(response)
}

/// Where a watch begins.
#[derive(Debug, PartialEq, Eq)]
enum Begin {
    /// With all that is there; then the end of it is told, if that is wanted.
    Everything { told: bool, not_older: u64 },
    /// After a revision.
    After(u64),
    /// With what happens from now on.
    Now,
}

impl Begin {
    fn read(ask: &Ask) -> Result<Self, Failure> {
        let query = &ask.query;
        let revision = query
            .text("resourceVersion")
            .map(|text| text.parse().map_err(|_| Failure::unreasoned(malformed(text).to_string())));
        let revision = revision.transpose()?;
        let matching = query.text("resourceVersionMatch");
        let about = || About::new("meta.k8s.io", "ListOptions", "");
        let forbidden = |why: &str| {
            Failure::invalid(about(), &[FieldError::forbidden("resourceVersionMatch", why)])
        };
        match (query.choice("sendInitialEvents"), matching) {
            (None, Some(_)) => Err(forbidden(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )),
            (Some(_), None) => Err(forbidden(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            )),
            (Some(_), Some(other)) if other != "NotOlderThan" => {
                let errors = [
                    FieldError::forbidden(
                        "resourceVersionMatch",
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                    ),
                    FieldError::not_supported("resourceVersionMatch", other, &["NotOlderThan"]),
                ];
                Err(Failure::invalid(about(), &errors))
            }
            (Some(true), _) => {
                Ok(Self::Everything { told: true, not_older: revision.unwrap_or(0) })
            }
            (Some(false), _) => Ok(revision.filter(|r| *r > 0).map_or(Self::Now, Self::After)),
            (None, None) => Ok(match revision {
                None | Some(0) => Self::Everything { told: false, not_older: 0 },
                Some(revision) => Self::After(revision),
            }),
        }
    }
}

struct Watcher {
    api: Arc<Api>,
    view: View,
    selection: Selection,
    /// Empty for all.
    namespace: String,
    bookmarks: bool,
    until: Instant,
    /// `None` when the watch is to end after what is pending.
    cursor: Option<Cursor>,
    columns_told: bool,
    /// What was there at the beginning and is still to be told; texts are only made of a piece of it,
    /// so that a client that does not read keeps little alive.
    initial: std::vec::IntoIter<Object>,
    /// The revision of the bookmark behind it.
    end_of_initial: Option<u64>,
    /// Events still to be told.
    events: std::vec::IntoIter<Arc<Event>>,
    pending: Vec<u8>,
}

/// What an event is to this watcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    const fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }

    /// By whether it was wanted before and is wanted now.
    const fn of(before: bool, now: bool) -> Option<Self> {
        match (before, now) {
            (false, true) => Some(Self::Added),
            (true, true) => Some(Self::Modified),
            (true, false) => Some(Self::Deleted),
            (false, false) => None,
        }
    }
}

impl Watcher {
    fn storage(&self) -> &str {
        &self.view.kind.storage
    }

    fn begin(&mut self, begin: &Begin) -> Result<(), Failure> {
        let after = match *begin {
            Begin::After(revision) => {
                not_in_the_future(&self.api, revision)?;
                revision
            }
            Begin::Now => self.api.store.revision(),
            Begin::Everything { told, not_older } => {
                not_in_the_future(&self.api, not_older)?;
                self.everything(told)?
            }
        };
        match self.api.store.watch(self.storage(), after) {
            Ok(cursor) => self.cursor = Some(cursor),
            Err(compacted) => {
                self.too_old(after, compacted.oldest);
            }
        }
        Ok(())
    }

    /// Puts all that is there before the stream; the revision at which it was there.
    fn everything(&mut self, told: bool) -> Result<u64, Failure> {
        let namespace = Some(self.namespace.clone()).filter(|namespace| !namespace.is_empty());
        let selection = self.selection.clone();
        let wants = |ns: &str, name: &str, stored: &Stored| selection.wants(ns, name, stored);
        let all = store::Query {
            namespace: namespace.as_deref(),
            filter: if selection.is_everything() { None } else { Some(&wants) },
            ..store::Query::default()
        };
        let listing = self.api.store.list(self.storage(), &all);
        let listing = listing.map_err(Failure::internal)?;
        self.initial = listing.items.into_iter();
        self.end_of_initial = Some(listing.revision).filter(|_| told && self.bookmarks);
        Ok(listing.revision)
    }

    /// The next piece of the answer; `None` at the end.
    async fn piece(&mut self) -> Option<Bytes> {
        loop {
            while self.pending.len() < PIECE && self.push_next() {}
            if !self.pending.is_empty() {
                return Some(std::mem::take(&mut self.pending).into());
            }
            let (until, mark) = (self.until, self.next_bookmark());
            let cursor = self.cursor.as_mut()?;
            let next = tokio::time::timeout_at(until.min(mark), cursor.next()).await;
            match next {
                Ok(Ok(events)) => self.events = events.into_iter(),
                Ok(Err(compacted)) => {
                    let position = self.cursor.take().map_or(0, |cursor| cursor.position());
                    self.too_old(position, compacted.oldest);
                }
                Err(_) => {
                    if Instant::now() >= until {
                        self.cursor = None;
                    } else if let (true, Some(cursor)) = (self.bookmarks, &mut self.cursor) {
                        let revision = cursor.quiet();
                        self.push_bookmark(revision, false);
                    }
                }
            }
        }
    }

    /// Every minute, and a last time shortly before the end.
    fn next_bookmark(&self) -> Instant {
        let now = Instant::now();
        let last = self.until.checked_sub(BEFORE_END).filter(|last| *last > now);
        last.map_or(now + BOOKMARK, |last| last.min(now + BOOKMARK))
    }

    /// Adds the next thing that is to be told; false when there is none.
    fn push_next(&mut self) -> bool {
        if let Some(object) = self.initial.next() {
            self.push(Change::Added.name(), &object);
        } else if let Some(revision) = self.end_of_initial.take() {
            self.push_bookmark(revision, true);
        } else if let Some(event) = self.events.next() {
            self.push_event(&event);
        } else {
            return false;
        }
        true
    }

    fn push_event(&mut self, event: &Event) {
        if !self.namespace.is_empty() && *event.namespace() != *self.namespace {
            return;
        }
        let wanted =
            |object: &Object| self.selection.wants(event.namespace(), event.name(), object);
        let before = event.previous.as_ref().is_some_and(wanted);
        let now = !event.deleted && wanted(&event.object);
        let Some(change) = Change::of(before, now) else { return };
        // An object that leaves the selection is shown as it was last seen inside it.
        let shown = match (&event.previous, change) {
            (Some(previous), Change::Deleted) if !event.deleted => {
                Arc::new(at_revision(&self.view.kind, previous, event.revision))
            }
            _ => event.object.clone(),
        };
        self.push(change.name(), &shown);
    }

    fn push(&mut self, change: &str, object: &Stored) {
        self.open_event(change);
        match self.view.form {
            Form::Table { .. } => {
                self.view.at(self.api.clock.now());
                let metadata = json!({"resourceVersion": object.revision.to_string()});
                let table = self.view.table_value(&[object], &metadata, !self.columns_told);
                self.columns_told = true;
                self.pending.extend_from_slice(table.to_string().as_bytes());
            }
            Form::Whole => self.pending.extend_from_slice(&self.view.whole(object)),
            Form::Metadata => self.pending.extend_from_slice(&self.view.one(object)),
        }
        self.pending.extend_from_slice(b"}\n");
    }

    fn open_event(&mut self, change: &str) {
        if self.pending.capacity() == 0 {
            self.pending.reserve(4096.min(PIECE));
        }
        self.pending.extend_from_slice(b"{\"type\":\"");
        self.pending.extend_from_slice(change.as_bytes());
        self.pending.extend_from_slice(b"\",\"object\":");
    }

    fn push_bookmark(&mut self, revision: u64, is_end_of_initial: bool) {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if is_end_of_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.view.form {
            Form::Table { .. } => {
                // A row of an object that is nothing but this.
                let empty = serde_json::Map::from_iter([("metadata".to_owned(), metadata)]);
                let kind = &self.view.kind;
                let draft =
                    Draft::of(&kind.storage_api_version, &kind.kind, &empty, Box::default());
                let metadata = json!({"resourceVersion": revision.to_string()});
                let row = draft.at(revision);
                let table = self.view.table_value(&[&row], &metadata, !self.columns_told);
                self.columns_told = true;
                table
            }
            Form::Metadata => json!({
                "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
            }),
            Form::Whole => json!({
                "kind": self.view.kind.kind, "apiVersion": self.view.api_version(),
                "metadata": metadata,
            }),
        };
        self.open_event("BOOKMARK");
        self.pending.extend_from_slice(object.to_string().as_bytes());
        self.pending.extend_from_slice(b"}\n");
    }

    /// The last event of a watcher that asks for what is no longer known.
    fn too_old(&mut self, asked: u64, oldest: u64) {
        let message = format!("too old resource version: {asked} ({oldest})");
        let status = Failure::expired(message).status();
        self.open_event("ERROR");
        self.pending.extend_from_slice(status.to_string().as_bytes());
        self.pending.extend_from_slice(b"}\n");
        self.cursor = None;
    }
}

/// An object with another revision in its text.
fn at_revision(kind: &Kind, stored: &Stored, revision: u64) -> Stored {
    let value = stored.value();
    let empty = serde_json::Map::new();
    let object = value.as_object().unwrap_or(&empty);
    let fields = stored.meta.fields.clone();
    Draft::of(&kind.storage_api_version, &kind.kind, object, fields).at(revision)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_by_what_was_wanted() {
        assert_eq!(Change::of(false, true), Some(Change::Added));
        assert_eq!(Change::of(true, true), Some(Change::Modified));
        assert_eq!(Change::of(true, false), Some(Change::Deleted));
        assert_eq!(Change::of(false, false), None);
    }
}
