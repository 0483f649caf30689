//! What all requests share: the store, the table of kinds, the time and the keys.
//!
//! Must not know transport.

use std::sync::{Arc, Mutex, PoisonError};

use memchr::memmem;
use serde_json::Value;
use tokio::sync::MutexGuard;

use crate::clock::Clock;
use crate::crd;
use crate::kind::{Kind, World};
use crate::kinds;
use crate::object::Stored;
use crate::registry::Registry;
use crate::store::{self, Store};
use crate::tokens::Tokens;

/// Where definitions are stored.
pub(crate) const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// The state behind the API.
pub(crate) struct Api {
    pub(crate) store: Store,
    pub(crate) registry: Registry,
    pub(crate) clock: Clock,
    pub(crate) tokens: Tokens,
    /// Held by writes that take something no two objects may have.
    exclusive: tokio::sync::Mutex<()>,
    /// Held while the rows of definitions are made: an older list must not displace a newer one's.
    defining: Mutex<()>,
}

impl Api {
    /// The API over a store that may hold something already.
    pub(crate) fn new(store: Store, clock: Clock, tokens: Tokens) -> Arc<Self> {
        let api = Self {
            store,
            registry: Registry::new(kinds::rows()),
            clock,
            tokens,
            exclusive: tokio::sync::Mutex::default(),
            defining: Mutex::default(),
        };
        api.define();
        Arc::new(api)
    }

    /// Waits until no other write takes what only one object may have; `None` where that cannot be.
    pub(crate) async fn alone(&self, kind: &Kind, object: &Value) -> Option<MutexGuard<'_, ()>> {
        if kind.rules.is_exclusive(object) { Some(self.exclusive.lock().await) } else { None }
    }

    /// Makes the rows of definitions what the stored definitions say, and tells where the objects are
    /// stored of those that are gone.
    pub(crate) fn define(&self) -> Vec<String> {
        let _alone = self.defining.lock().unwrap_or_else(PoisonError::into_inner);
        let definitions = self.list(DEFINITIONS, None);
        let is_there = |storage: &str| {
            definitions.iter().any(|definition| definition["metadata"]["name"] == *storage)
        };
        let rows = self.registry.table().rows();
        let defined = rows.iter().filter(|row| row.defined);
        let gone = defined.map(|row| row.storage.clone()).filter(|name| !is_there(name)).collect();
        let kinds = definitions.iter().filter_map(|definition| {
            crd::kind_of(definition)
                .inspect_err(|error| {
                    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
                    tracing::error!(definition = name, %error, "a stored definition is not served");
                })
                .ok()
        });
        self.registry.define(kinds.collect());
        gone
    }
}

impl World for Api {
    fn get(&self, storage: &str, namespace: &str, name: &str) -> Option<Value> {
        self.store.get(storage, namespace, name).map(|stored| stored.value())
    }

    fn list(&self, storage: &str, namespace: Option<&str>) -> Vec<Value> {
        let all = store::Query { namespace, ..store::Query::default() };
        let listing = self.store.list(storage, &all).unwrap_or_default();
        listing.items.iter().map(|stored| stored.value()).collect()
    }

    /// Reads no more pods than it takes: a node asks this for everything that its pods mount.
    fn some_pod(
        &self,
        node: &str,
        namespace: &str,
        word: &str,
        holds: &dyn Fn(&Value) -> bool,
    ) -> bool {
        let quoted = format!("\"{word}\"");
        let is_it = |_: &str, _: &str, pod: &Stored| {
            let mut fields = pod.meta.fields.iter();
            fields.any(|(key, value)| &**key == "spec.nodeName" && &**value == node)
                && memmem::find(&pod.text, quoted.as_bytes()).is_some()
                && holds(&pod.value())
        };
        let namespace = Some(namespace);
        let one = store::Query { namespace, limit: 1, filter: Some(&is_it), ..Default::default() };
        self.store.list("pods", &one).is_ok_and(|found| !found.items.is_empty())
    }

    fn now(&self) -> String {
        self.clock.text()
    }
}
