//! Commands about queues (`bus.volcano.sh` with a target of kind Queue), until they are taken.
//!
//! Must not carry them out.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use tokio::sync::Notify;
use trainyard_api::Meta;

use crate::cache::Object;
use crate::watch::{News, Source};

/// A command as it is followed.
#[derive(Debug, Deserialize)]
pub(super) struct SeenCommand {
    metadata: Meta,
    #[serde(default)]
    action: String,
    #[serde(default)]
    target: Target,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Target {
    kind: String,
    name: String,
}

impl Object for SeenCommand {
    fn uid(&self) -> &str {
        &self.metadata.uid
    }

    fn name(&self) -> &str {
        &self.metadata.name
    }

    fn version(&self) -> u64 {
        self.metadata.version()
    }

    fn owner(&self) -> Option<&str> {
        None
    }

    fn same_facts(&mut self, _: &Self) -> bool {
        false
    }
}

/// An order to open or close a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) queue: String,
    pub(super) action: String,
}

/// Orders that nobody has taken yet.
#[derive(Default)]
pub(super) struct Orders {
    waiting: Mutex<BTreeMap<String, Order>>,
    changed: Notify,
}

impl Orders {
    pub(super) fn source() -> Source {
        Source {
            resource: "commands",
            path: "/apis/bus.volcano.sh/v1alpha1/commands".to_owned(),
            selector: None,
            remedy: "",
        }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<String, Order>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hear(&self, news: News<SeenCommand>) {
        let mut waiting = self.locked();
        match news {
            News::All { objects, .. } => {
                waiting.clear();
                for order in objects.into_iter().filter_map(order) {
                    waiting.insert(order.uid.clone(), order);
                }
            }
            News::There(command) => {
                if let Some(order) = order(command) {
                    waiting.insert(order.uid.clone(), order);
                }
            }
            News::Gone { uid, .. } => {
                waiting.remove(&uid);
            }
        }
        let is_empty = waiting.is_empty();
        drop(waiting);
        if !is_empty {
            self.changed.notify_one();
        }
    }

    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// All that wait.
    pub(super) fn take(&self) -> Vec<Order> {
        std::mem::take(&mut *self.locked()).into_values().collect()
    }

    /// One that could not be carried out.
    pub(super) fn put_back(&self, order: Order) {
        self.locked().insert(order.uid.clone(), order);
        self.changed.notify_one();
    }
}

fn order(command: SeenCommand) -> Option<Order> {
    let SeenCommand { metadata, action, target } = command;
    let is_known = matches!(action.as_str(), "OpenQueue" | "CloseQueue");
    (target.kind == "Queue" && is_known).then_some(Order {
        namespace: metadata.namespace,
        name: metadata.name,
        uid: metadata.uid,
        queue: target.name,
        action,
    })
}
