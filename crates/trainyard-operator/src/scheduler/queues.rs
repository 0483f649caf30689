//! Queues: the two that there always are, what their status says, and opening and closing them.
//!
//! Their status is written when it differs and once a second at most. Which pods a queue may have
//! is decided elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::sleep;
use tracing::{debug, info, warn};
use trainyard_core::Event;
use trainyard_sched::{DEFAULT, Queue, QueueStatus, ROOT, written};

use super::act::call;
use super::orders::{Order, Orders};
use super::seen::Kind;
use super::voice::Voice;
use super::world::World;
use crate::backoff::Backoff;
use crate::calls::{CallError, Calls, Verb};

/// Between two looks at all queues.
const PAUSE: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_mins(1);
const QUEUES: &str = "/apis/scheduling.volcano.sh/v1beta1/queues";

pub(super) struct QueueKeeper {
    calls: Calls,
    world: Arc<World>,
    voice: Arc<Voice>,
    orders: Arc<Orders>,
    /// What was written to which version: the watch may not have told of it yet.
    sent: BTreeMap<String, (u64, QueueStatus)>,
    /// States that were ordered and are not written yet.
    ordered: BTreeMap<String, &'static str>,
    /// Queues of whose parent was told, by identity.
    told: BTreeSet<String>,
    /// The version of a queue at which its parent was written, by identity.
    adopted: BTreeMap<String, u64>,
}

/// What is known of a queue and to be said of it.
struct Entry {
    queue: Queue,
    status: QueueStatus,
}

impl QueueKeeper {
    pub(super) fn new(
        calls: Calls,
        world: Arc<World>,
        voice: Arc<Voice>,
        orders: Arc<Orders>,
    ) -> Self {
        Self {
            calls,
            world,
            voice,
            orders,
            sent: BTreeMap::new(),
            ordered: BTreeMap::new(),
            told: BTreeSet::new(),
            adopted: BTreeMap::new(),
        }
    }

    /// Looks after queues for ever.
    pub(super) async fn run(mut self) {
        let mut backoff = Backoff::new(PAUSE, RETRY_MAX);
        loop {
            let orders = self.orders.clone();
            tokio::select! {
                () = self.world.sums_changed() => {}
                () = orders.changed() => {}
            }
            if !self.world.is_served(Kind::Queues) {
                continue;
            }
            if let Err(error) = self.pass().await {
                debug!(%error, "not all queues could be looked after");
                sleep(backoff.failed()).await;
                self.world.look_again();
            } else {
                backoff.succeeded();
                sleep(PAUSE).await;
            }
        }
    }

    /// One look at all queues; an error if some of it is to be tried again.
    async fn pass(&mut self) -> Result<(), CallError> {
        let mut result = self.make_missing().await;
        self.take_orders().await;
        let entries: Vec<Entry> = self.world.read(|state| {
            let ledgers = state.ledgers().into_iter();
            ledgers.map(|one| Entry { queue: one.queue.clone(), status: one.status }).collect()
        });
        self.sent.retain(|name, _| entries.iter().any(|entry| entry.queue.name == *name));
        self.told.retain(|uid| entries.iter().any(|entry| entry.queue.uid == *uid));
        self.adopted.retain(|uid, _| entries.iter().any(|entry| entry.queue.uid == *uid));
        for entry in entries {
            self.tell_of_parent(&entry.queue);
            if let Err(error) = self.write_parent(&entry.queue).await {
                result = Err(error);
            }
            if let Err(error) = self.write(entry).await {
                result = Err(error);
            }
        }
        result
    }

    async fn make_missing(&self) -> Result<(), CallError> {
        let known: BTreeSet<String> = self
            .world
            .read(|state| state.ledgers().into_iter().map(|one| one.queue.name.clone()).collect());
        for (name, spec) in [
            (ROOT, json!({"weight": 1, "reclaimable": false})),
            (DEFAULT, json!({"weight": 1, "reclaimable": true, "parent": ROOT})),
        ] {
            if known.contains(name) {
                continue;
            }
            let body = json!({
                "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                "metadata": {"name": name}, "spec": spec,
            });
            match self.calls.send(call(Verb::Create, "queues", QUEUES.to_owned(), &body)).await {
                Ok(_) => info!(queue = name, "made a queue that there always is"),
                Err(error) if error.code() == 409 => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A parent that does not count is told of once.
    fn tell_of_parent(&mut self, queue: &Queue) {
        if let Some(words) = queue.unheeded()
            && self.told.insert(queue.uid.clone())
        {
            let event = Event::warning("ParentNotHonoured", words);
            self.voice.of_queue(&queue.name, &queue.uid, &event);
        }
    }

    /// A queue that names no parent is one of `root`'s.
    async fn write_parent(&mut self, queue: &Queue) -> Result<(), CallError> {
        let is_written = self.adopted.get(&queue.uid) == Some(&queue.version);
        if queue.name == ROOT || !queue.parent.is_empty() || is_written {
            return Ok(());
        }
        // Whoever names another one meanwhile is right.
        let metadata = json!({"uid": queue.uid, "resourceVersion": queue.version.to_string()});
        let body = json!({"metadata": metadata, "spec": {"parent": ROOT}});
        let path = format!("{QUEUES}/{}", queue.name);
        match self.calls.send(call(Verb::Patch, "queues", path, &body)).await {
            Ok(_) => {
                self.adopted.insert(queue.uid.clone(), queue.version);
                Ok(())
            }
            Err(error) if matches!(error.code(), 404 | 409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn write(&mut self, entry: Entry) -> Result<(), CallError> {
        let Entry { queue, mut status } = entry;
        match self.ordered.get(&queue.name) {
            Some(&"Open") => "Open".clone_into(&mut status.state),
            Some(_) => {
                let groups = status.pending + status.inqueue + status.running + status.unknown;
                let is_empty = groups + status.completed == 0;
                let state = if is_empty { "Closed" } else { "Closing" };
                state.clone_into(&mut status.state);
            }
            None => {}
        }
        let was_sent = self.sent.get(&queue.name);
        if status == queue.written
            || was_sent.is_some_and(|sent| *sent == (queue.version, status.clone()))
        {
            self.ordered.remove(&queue.name);
            return Ok(());
        }
        let mut body = json!({"metadata": {"uid": queue.uid}, "status": patch(&queue, &status)});
        if status.state != queue.written.state {
            // Somebody may be closing it at this very moment; that is not to be undone.
            body["status"]["state"] = json!(status.state);
            body["metadata"]["resourceVersion"] = json!(queue.version.to_string());
        }
        let path = format!("{QUEUES}/{}/status", queue.name);
        match self.calls.send(call(Verb::Patch, "queues/status", path, &body)).await {
            Ok(_) => {
                self.ordered.remove(&queue.name);
                self.sent.insert(queue.name, (queue.version, status));
                Ok(())
            }
            Err(error) if error.code() == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Takes each order once: it is deleted first, and whoever deletes it carries it out.
    async fn take_orders(&mut self) {
        for order in self.orders.take() {
            let Order { namespace, name, uid, queue, action } = &order;
            let path =
                format!("/apis/bus.volcano.sh/v1alpha1/namespaces/{namespace}/commands/{name}");
            let body = json!({
                "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid},
            });
            match self.calls.send(call(Verb::Delete, "commands", path, &body)).await {
                Ok(_) => {}
                Err(error) if matches!(error.code(), 404 | 409) => continue,
                Err(error) => {
                    warn!(command = name, %error, "a command could not be taken; trying again");
                    self.orders.put_back(order);
                    continue;
                }
            }
            let state = if action == "OpenQueue" { "Open" } else { "Closed" };
            info!(queue, action, "a command was taken");
            let known = self.world.read(|known| {
                let all = known.ledgers().into_iter();
                all.map(|one| one.queue).find(|one| one.name == *queue).map(|one| one.uid.clone())
            });
            let Some(known) = known else { continue };
            self.ordered.insert(queue.clone(), state);
            let words = format!(
                "Start to execute command {action}, and clean it up to make sure executed not more \
                 than once."
            );
            self.voice.of_queue(queue, &known, &Event::normal("CommandIssued", words));
        }
    }
}

/// The status but its state as a patch: what is not used any more is taken out.
fn patch(queue: &Queue, status: &QueueStatus) -> Value {
    let mut allocated = Map::new();
    for (resource, _) in queue.written.allocated.iter() {
        allocated.insert(resource.to_owned(), Value::Null);
    }
    for (resource, amount) in status.allocated.iter() {
        allocated.insert(resource.to_owned(), json!(written(resource, amount)));
    }
    json!({
        "allocated": allocated, "pending": status.pending, "inqueue": status.inqueue,
        "running": status.running, "unknown": status.unknown, "completed": status.completed,
    })
}
