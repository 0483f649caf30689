//! The running parts for one kind of job: its watches, its passes.
//!
//! Everything it starts lives inside the future of [`Yard::live`]. Must not know leases, nor
//! other kinds of job.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;
use trainyard_core::Child;

use crate::{
    Error, Health,
    beside::{self, Beside},
    cache::Object,
    events::Events,
    execute::Executor,
    ground::Ground,
    kind::JobKind,
    queue::Queue,
    shared::Shared,
    watch::{News, Source, encoded, follow, follow_optional},
};

/// The parts for one kind of job.
pub(crate) struct Yard<'g, K: JobKind> {
    ground: &'g Ground,
    executor: Arc<Executor<K>>,
    /// Told when everything has been read and when this kind is acted upon.
    health: Option<Arc<Health>>,
    /// How many of the watches have listed.
    synced: watch::Sender<usize>,
    watches: usize,
}

impl<'g, K: JobKind> Yard<'g, K> {
    pub(crate) fn new(ground: &'g Ground, health: Option<Arc<Health>>) -> Self {
        let metrics = &ground.metrics;
        let queue = Arc::new(Queue::new(&ground.options, Arc::clone(metrics)));
        let shared = Arc::new(Shared::<K>::new(queue, Arc::clone(metrics)));
        let events = Arc::new(Events::new::<K>(ground.calls.clone(), Arc::clone(metrics)));
        Self {
            ground,
            executor: Arc::new(Executor::new(shared, events, ground)),
            health,
            synced: watch::Sender::new(0),
            // Jobs, pods and services.
            watches: 3 + K::beside(&ground.options.planner).len(),
        }
    }

    /// What is told about jobs of this kind.
    pub(crate) fn events(&self) -> Arc<Events> {
        Arc::clone(&self.executor.events)
    }

    /// Follows everything, and acts when `leading` is cancelled, until it is told to stop.
    pub(crate) async fn live(&self, leading: &CancellationToken) -> Result<(), Error> {
        let mut parts = JoinSet::new();
        self.follow_all(&mut parts);
        let result = tokio::select! {
            () = self.act(leading) => Ok(()),
            problem = first_end(&mut parts) => Err(Error::Broken { problem }),
        };
        parts.shutdown().await;
        result
    }

    /// Makes passes until told to stop, then finishes those under way.
    async fn act(&self, leading: &CancellationToken) {
        let mut synced = self.synced.subscribe();
        let ready = async {
            leading.cancelled().await;
            synced.wait_for(|watches| *watches >= self.watches).await.is_ok()
        };
        tokio::select! {
            () = self.ground.stop.cancelled() => return,
            _ = ready => {}
        }
        let shared = &self.executor.shared;
        shared.act();
        if let Some(health) = &self.health {
            health.set_acting();
        }
        tracing::info!(kind = K::DEFINITION, "acting");
        let mut passes = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = self.ground.stop.cancelled() => break,
                Some(ended) = passes.join_next() => report(ended),
                turn = shared.queue.next(),
                    if passes.len() < self.ground.options.passes.max(1) =>
                {
                    let executor = Arc::clone(&self.executor);
                    passes.spawn(async move {
                        let verdict = executor.pass(&turn.uid).await;
                        turn.finish(verdict);
                    });
                }
            }
        }
        let (kind, under_way) = (K::DEFINITION, passes.len());
        tracing::info!(kind, passes = under_way, "stopping; finishing what is under way");
        while let Some(ended) = passes.join_next().await {
            report(ended);
        }
    }

    fn follow_all(&self, parts: &mut JoinSet<()>) {
        let jobs = Source {
            resource: K::RESOURCE,
            path: self.path(&format!("/apis/{}", K::API_VERSION), K::RESOURCE),
            selector: None,
            remedy: K::REMEDY,
        };
        self.follow(parts, jobs, Shared::hear_jobs);
        self.follow(parts, self.child(Child::Pod), Shared::hear_pods);
        self.follow(parts, self.child(Child::Service), |shared, news| {
            shared.hear_children("services", |cache| &mut cache.services, news);
        });
        for beside in K::beside(&self.ground.options.planner) {
            self.follow_beside(parts, *beside);
        }
    }

    fn follow_beside(&self, parts: &mut JoinSet<()>, beside: Beside) {
        let source = Source {
            resource: beside.resource(),
            path: if beside.is_namespaced() {
                self.path(beside.prefix(), beside.resource())
            } else {
                format!("{}/{}", beside.prefix(), beside.resource())
            },
            selector: beside.is_selected().then(|| encoded(&K::SELECTOR.to_string())),
            remedy: beside.remedy(),
        };
        match beside {
            Beside::ConfigMaps => self.follow(parts, source, |shared, news| {
                shared.hear_children("configmaps", |cache| &mut cache.config_maps, news);
            }),
            Beside::NetworkPolicies => self.follow(parts, source, |shared, news| {
                shared.hear_children("networkpolicies", |cache| &mut cache.policies, news);
            }),
            Beside::Claims => self.follow(parts, source, Shared::hear_claims),
            Beside::PodGroups | Beside::PluginsPodGroups => {
                self.follow(parts, source, |shared, news| {
                    shared.hear_children("podgroups", |cache| &mut cache.groups, news);
                });
            }
            Beside::Commands => self.follow(parts, source, Shared::hear_commands),
            Beside::PriorityClasses => self.follow(parts, source, Shared::hear_classes),
            // Who looks after one namespace only may have no right over nodes, and sees less without.
            Beside::Nodes => {
                self.follow_with(parts, source, Shared::hear_nodes, Some(Shared::no_nodes));
            }
        }
    }

    fn child(&self, child: Child) -> Source {
        Source {
            resource: child.resource(),
            path: self.path(child.prefix(), child.resource()),
            selector: Some(encoded(&K::SELECTOR.to_string())),
            remedy: beside::remedy(child),
        }
    }

    fn path(&self, prefix: &str, resource: &str) -> String {
        match &self.ground.options.namespace {
            Some(namespace) => format!("{prefix}/namespaces/{namespace}/{resource}"),
            None => format!("{prefix}/{resource}"),
        }
    }

    fn follow<T>(&self, parts: &mut JoinSet<()>, source: Source, hear: fn(&Shared<K>, News<T>))
    where
        T: Object + DeserializeOwned + Send + 'static,
    {
        self.follow_with(parts, source, hear, None);
    }

    /// The same; with `absent`, which is told when it may not be read or is not there, it is done without.
    fn follow_with<T>(
        &self,
        parts: &mut JoinSet<()>,
        source: Source,
        hear: fn(&Shared<K>, News<T>),
        absent: Option<fn(&Shared<K>)>,
    ) where
        T: Object + DeserializeOwned + Send + 'static,
    {
        let (calls, health) = (self.ground.calls.clone(), self.health.clone());
        let shared = Arc::clone(&self.executor.shared);
        let (synced, all) = (self.synced.clone(), self.watches);
        parts.spawn(async move {
            let is_known = AtomicBool::new(false);
            let note = || {
                if !is_known.swap(true, Ordering::Relaxed) {
                    synced.send_modify(|watches| *watches += 1);
                    if let Some(health) = health.as_ref().filter(|_| *synced.borrow() >= all) {
                        health.set_synced();
                    }
                }
            };
            let tell = |news| {
                hear(&shared, news);
                note();
            };
            match absent {
                None => follow(&calls, &source, tell).await,
                Some(absent) => {
                    let absent = || {
                        absent(&shared);
                        note();
                    };
                    follow_optional(&calls, &source, tell, &absent).await;
                }
            }
        });
    }
}

fn report(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a pass ended unexpectedly; it is made again");
    }
}

/// Waits for a part to end, which none should.
async fn first_end(parts: &mut JoinSet<()>) -> String {
    match parts.join_next().await {
        Some(Err(error)) => error.to_string(),
        _ => "a watch ended".to_owned(),
    }
}
