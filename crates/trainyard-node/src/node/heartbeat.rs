//! Keeps a registered Node alive and true until it is told to stop, and says goodbye then.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::Client;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::error::NodeError;
use super::facts::NodeFacts;
use super::lease::LeaseKeeper;
use super::pressure::Pressure;
use super::registration::{Freshness, farewell, sync};

/// How often what is done; the defaults are a kubelet's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// How long a lease lasts.
    pub(crate) lease: Duration,
    /// How often it is renewed.
    pub(crate) renew: Duration,
    /// How often the Node is looked at and, where it differs, written.
    pub(crate) look: Duration,
    /// How often its status is written although nothing has changed.
    pub(crate) refresh: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(40),
            renew: Duration::from_secs(10),
            look: Duration::from_secs(10),
            refresh: Duration::from_mins(5),
        }
    }
}

/// One Node's heartbeat.
pub(crate) struct Heartbeat {
    client: Client,
    facts: watch::Receiver<NodeFacts>,
    known: watch::Sender<Arc<Node>>,
    state: PathBuf,
    timing: Timing,
}

impl Heartbeat {
    /// For a Node as `register` returned it. `facts` may change at any time; `state` is the folder whose
    /// disk is watched. The receiver shows the Node as the API server last had it.
    pub(crate) fn new(
        client: Client,
        registered: Node,
        facts: watch::Receiver<NodeFacts>,
        state: PathBuf,
        timing: Timing,
    ) -> (Self, watch::Receiver<Arc<Node>>) {
        let (known, see) = watch::channel(Arc::new(registered));
        (Self { client, facts, known, state, timing }, see)
    }

    /// Runs until `stop`; then the Node is set not ready, which takes a few seconds at most.
    pub(crate) async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            never = self.keep_lease() => match never {},
            never = self.keep_status() => match never {},
        }
        let facts = self.facts.borrow().clone();
        farewell(&self.client, &facts).await;
    }

    async fn keep_lease(&self) -> Infallible {
        let name = self.facts.borrow().name.clone();
        let mut keeper = LeaseKeeper::new(self.client.clone(), name.clone(), self.timing.lease);
        let mut ticks = tokio::time::interval(self.timing.renew);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let uid = self.known.borrow().metadata.uid.clone().unwrap_or_default();
            if let Err(error) = keeper.renew(&uid).await {
                tracing::warn!(node = name, kind = error.kind(), %error, "cannot renew the lease");
            }
        }
    }

    async fn keep_status(&self) -> Infallible {
        let mut changes = self.facts.clone();
        let mut ticks = tokio::time::interval(self.timing.look);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut written = Instant::now();
        let mut pressure = self.facts.borrow().pressure;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = next_change(&mut changes) => {}
            }
            pressure = self.measure().await.unwrap_or(pressure);
            let facts = NodeFacts { pressure, ..changes.borrow_and_update().clone() };
            let due = written.elapsed() >= self.timing.refresh;
            match sync(&self.client, &facts, Freshness::Cached, due).await {
                Ok(node) => {
                    if due {
                        written = Instant::now();
                    }
                    self.known.send_replace(Arc::new(node));
                }
                Err(error) => complain(&facts, &error),
            }
        }
    }

    /// Off the runtime's threads: a disk that hangs must not hold up the rest.
    async fn measure(&self) -> Option<Pressure> {
        let state = self.state.clone();
        let measuring =
            tokio::task::spawn_blocking(move || Pressure::measure(Path::new("/"), &state));
        match tokio::time::timeout(self.timing.look, measuring).await {
            Ok(Ok(Ok(pressure))) => Some(pressure),
            Ok(Ok(Err(error))) => {
                tracing::warn!(%error, "cannot see how much memory and disk is left");
                None
            }
            Ok(Err(_)) | Err(_) => None,
        }
    }
}

/// The next change; never, once nobody can make one.
async fn next_change(facts: &mut watch::Receiver<NodeFacts>) {
    if facts.changed().await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn complain(facts: &NodeFacts, error: &NodeError) {
    tracing::warn!(node = facts.name, kind = error.kind(), %error, "cannot keep the node");
}
