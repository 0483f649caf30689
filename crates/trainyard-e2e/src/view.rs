//! A live view of a namespace: list and watch of each resource, read-your-writes for the tests.
//!
//! Must not write anything and must not know jobs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use http::Request;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::rest::{Resource, Rest};
use crate::seen::{Seen, terminating, text, version};

/// How long a watch that broke waits before the next try.
const AGAIN: Duration = Duration::from_millis(50);
/// How long our own write may take to come back on a watch.
const OWN_WRITE: Duration = Duration::from_secs(10);

/// A namespace, kept current. Cheap to clone; the watches end with the last clone.
#[derive(Clone)]
pub struct View {
    state: Arc<State>,
    changed: watch::Receiver<u64>,
    _watches: Arc<JoinSet<()>>,
}

struct State {
    seen: Mutex<Arc<Seen>>,
    changes: watch::Sender<u64>,
}

impl State {
    fn change(&self, edit: impl FnOnce(&mut Seen)) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        edit(Arc::make_mut(&mut seen));
        drop(seen);
        self.changes.send_modify(|count| *count += 1);
    }
}

impl View {
    /// Starts the watches of these resources and waits until all have listed.
    pub async fn open(rest: &Rest, resources: &[Resource]) -> anyhow::Result<Self> {
        let (sender, changed) = watch::channel(0);
        let state = Arc::new(State { seen: Mutex::default(), changes: sender });
        let mut watches = JoinSet::new();
        for resource in resources.iter().copied() {
            let from = list(rest, resource, &state).await?;
            watches.spawn(follow(rest.clone(), resource, from, Arc::clone(&state)));
        }
        Ok(Self { state, changed, _watches: Arc::new(watches) })
    }

    /// What is there now.
    #[must_use]
    pub fn now(&self) -> Arc<Seen> {
        Arc::clone(&self.state.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for any change.
    pub async fn change(&mut self) {
        // The sender lives in `state`, so this never fails while we are here.
        let _ = self.changed.changed().await;
    }

    /// Waits until the view has `written`, the answer to our own write, or something newer.
    pub async fn reach(&self, resource: Resource, written: &Value) -> anyhow::Result<()> {
        let wanted = version(written);
        self.until(|seen| seen.position(resource) >= wanted).await
    }

    /// Waits until the view knows that the object is gone or, unless that is `entirely` to be so,
    /// is being deleted.
    pub async fn reach_deletion(
        &self,
        resource: Resource,
        deleted: &Value,
        entirely: bool,
    ) -> anyhow::Result<()> {
        let name = text(&deleted["metadata"]["name"]);
        let uid = &deleted["metadata"]["uid"];
        self.until(|seen| {
            let object = seen.object(resource, name);
            object["metadata"]["uid"] != *uid || (!entirely && terminating(object))
        })
        .await
    }

    async fn until(&self, holds: impl Fn(&Seen) -> bool) -> anyhow::Result<()> {
        let mut view = self.clone();
        let reached = async {
            loop {
                view.changed.mark_unchanged();
                if holds(&view.now()) {
                    return;
                }
                view.change().await;
            }
        };
        tokio::time::timeout(OWN_WRITE, reached)
            .await
            .map_err(|_| anyhow::anyhow!("the watch never showed our own write"))
    }
}

async fn list(rest: &Rest, resource: Resource, state: &State) -> Result<String, kube::Error> {
    let mut list = rest.list(resource).await?;
    let items = match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    };
    let position = version(&list);
    state.change(|seen| {
        seen.replace_all(resource, items);
        seen.advance(resource, position);
    });
    Ok(text(&list["metadata"]["resourceVersion"]).to_owned())
}

async fn follow(rest: Rest, resource: Resource, mut from: String, state: Arc<State>) {
    loop {
        if watch_from(&rest, resource, &mut from, &state).await.is_err() {
            tokio::time::sleep(AGAIN).await;
            if let Ok(version) = list(&rest, resource, &state).await {
                from = version;
            }
        }
    }
}

async fn watch_from(
    rest: &Rest,
    resource: Resource,
    from: &mut String,
    state: &State,
) -> anyhow::Result<()> {
    let path = rest.path(resource);
    let request = Request::get(format!("{path}?watch=1&timeoutSeconds=290&resourceVersion={from}"))
        .body(Vec::new())?;
    let events = rest.client().request_events::<Value>(request).await?;
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        let event = event?;
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                text(&object["metadata"]["resourceVersion"]).clone_into(from);
                let position = version(&object);
                state.change(|seen| {
                    seen.put(resource, object);
                    seen.advance(resource, position);
                });
            }
            WatchEvent::Deleted(object) => {
                text(&object["metadata"]["resourceVersion"]).clone_into(from);
                let position = version(&object);
                state.change(|seen| {
                    seen.remove(resource, &object);
                    seen.advance(resource, position);
                });
            }
            WatchEvent::Bookmark(mark) => from.clone_from(&mark.metadata.resource_version),
            WatchEvent::Error(status) => anyhow::bail!("{}", status.message),
        }
    }
    Ok(())
}
