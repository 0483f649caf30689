//! Events of scheduling: about pods, PodGroups and queues, from a queue of low priority.
//!
//! Must not decide what is told.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use trainyard_core::Event;

use crate::Metrics;
use crate::calls::Calls;
use crate::clock::Clock;
use crate::events::{Events, Subject};

/// How long waiting events may take to be written at the end.
const FLUSH: Duration = Duration::from_secs(5);
/// A burst of bindings is as large as the cluster, and each has its event.
const WAITING_MAX: usize = 32_768;
const VOLCANO: &str = "scheduling.volcano.sh/v1beta1";

/// Tells of what is scheduled.
pub(super) struct Voice {
    pods: Arc<Events>,
    groups: Arc<Events>,
    queues: Arc<Events>,
    clock: Clock,
}

impl Voice {
    pub(super) fn new(name: &str, calls: &Calls, metrics: &Arc<Metrics>, clock: Clock) -> Self {
        let events = |api_version, kind| {
            let source = name.to_owned().into();
            let events = Events::about(api_version, kind, source, calls.clone(), metrics.clone());
            Arc::new(events.with_room_for(WAITING_MAX))
        };
        Self {
            pods: events("v1", "Pod"),
            groups: events(VOLCANO, "PodGroup"),
            queues: events(VOLCANO, "Queue"),
            clock,
        }
    }

    /// Writes what is told until closed.
    pub(super) fn writers(&self, closed: &CancellationToken) -> JoinSet<()> {
        let mut writers = JoinSet::new();
        for events in [&self.pods, &self.groups, &self.queues] {
            let (events, closed) = (events.clone(), closed.clone());
            writers.spawn(async move { events.write(closed).await });
        }
        writers
    }

    /// Waits for what is still to be written.
    pub(super) async fn flush(mut writers: JoinSet<()>) {
        let written = async { while writers.join_next().await.is_some() {} };
        if timeout(FLUSH, written).await.is_err() {
            tracing::warn!("not all events could be written before the end");
        }
    }

    pub(super) fn of_pod(&self, namespace: &str, name: &str, uid: &str, event: &Event) {
        self.pods.tell(&subject(namespace, name, uid), event, self.clock.now());
    }

    pub(super) fn of_group(&self, namespace: &str, name: &str, uid: &str, event: &Event) {
        self.groups.tell(&subject(namespace, name, uid), event, self.clock.now());
    }

    /// What is outside all namespaces is told of in `default`.
    pub(super) fn of_queue(&self, name: &str, uid: &str, event: &Event) {
        self.queues.tell(&subject("default", name, uid), event, self.clock.now());
    }
}

fn subject(namespace: &str, name: &str, uid: &str) -> Arc<Subject> {
    Arc::new(Subject {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        version: String::new(),
    })
}
