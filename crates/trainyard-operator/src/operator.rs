//! An operator: puts the parts together, runs them and ends them in order.
//!
//! Everything it starts lives inside the future of [`Operator::run`]: when that is dropped nothing
//! goes on in the background. Must not know rules of any part.

use std::{sync::Arc, time::Duration};

use serde::de::DeserializeOwned;
use tokio::{sync::watch, task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Error, Health, Metrics, Options,
    cache::Object,
    calls::Calls,
    clock::Clock,
    events::Events,
    execute::Executor,
    kind::JobKind,
    leader::Leader,
    queue::Queue,
    reference,
    shared::Shared,
    tfjob::TfJobs,
    watch::{News, Source, encoded, follow},
};

/// How long waiting events may take to be written at the end.
const FLUSH: Duration = Duration::from_secs(5);

/// Looks after the jobs behind one API server.
pub struct Operator {
    client: kube::Client,
    options: Options,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
}

impl Operator {
    /// An operator that has not begun.
    #[must_use]
    pub fn new(client: kube::Client, options: Options) -> Self {
        Self { client, options, metrics: Arc::default(), health: Arc::default() }
    }

    /// What it counts.
    #[must_use]
    pub fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// How it is.
    #[must_use]
    pub fn health(&self) -> Arc<Health> {
        Arc::clone(&self.health)
    }

    /// Works until `stop` is cancelled or the lease is lost.
    ///
    /// When it is stopped, writes under way are finished, events written and the lease released.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let health = Arc::clone(&self.health);
        let result = self.check().map(|()| Yard::<TfJobs>::new(self, stop));
        let result = match result {
            Ok(yard) => yard.run().await,
            Err(error) => Err(error),
        };
        health.set_ended();
        result
    }

    fn check(&self) -> Result<(), Error> {
        let bad =
            |option, problem: &str| Err(Error::Option { option, problem: problem.to_owned() });
        if let Some(namespace) = &self.options.namespace
            && !is_label(namespace)
        {
            let problem = format!("{namespace:?} is no name of a namespace; use a-z, 0-9 and -");
            return Err(Error::Option { option: "namespace", problem });
        }
        if self.options.qps.is_some_and(|qps| !qps.is_finite() || qps < 0.0) {
            return bad("qps", "must be a number above 0, or left out for no limit");
        }
        if let Some(leader) = &self.options.leader {
            if !is_label(&leader.namespace) || leader.lease.is_empty() || leader.identity.is_empty()
            {
                return bad("leader", "needs a namespace, the name of a lease and an identity");
            }
            if leader.renew_deadline >= leader.lease_duration
                || leader.retry_period >= leader.renew_deadline
            {
                return bad("leader", "needs retry period < renew deadline < lease duration");
            }
        }
        Ok(())
    }
}

fn is_label(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 63
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// The running parts for one kind of job.
struct Yard<K: JobKind> {
    executor: Arc<Executor<K>>,
    calls: Calls,
    clock: Clock,
    options: Options,
    health: Arc<Health>,
    stop: CancellationToken,
    /// How many of the watches have listed.
    synced: watch::Sender<usize>,
}

const WATCHES: usize = 3;

impl<K: JobKind> Yard<K> {
    fn new(operator: Operator, stop: CancellationToken) -> Self {
        let Operator { client, options, metrics, health } = operator;
        let clock = Clock::start(options.time);
        let calls = Calls::new(client, Arc::clone(&metrics), &options);
        let queue = Arc::new(Queue::new(&options, Arc::clone(&metrics)));
        let shared = Arc::new(Shared::<K>::new(queue, Arc::clone(&metrics)));
        let events = Arc::new(Events::new::<K>(calls.clone(), metrics));
        let executor = Executor::new(shared, events, calls.clone(), clock, &options, stop.clone());
        let synced = watch::Sender::new(0);
        Self { executor: Arc::new(executor), calls, clock, options, health, stop, synced }
    }

    async fn run(self) -> Result<(), Error> {
        let mut parts = JoinSet::new();
        self.follow_all(&mut parts);
        let (calls, health) = (self.calls.clone(), Arc::clone(&self.health));
        let metrics = Arc::clone(&self.executor.shared.metrics);
        parts.spawn(async move {
            reference::look_for_webhook(&calls, &health, &metrics).await;
            std::future::pending::<()>().await;
        });
        let closed = CancellationToken::new();
        let mut writer = JoinSet::new();
        let (events, until) = (Arc::clone(&self.executor.events), closed.clone());
        writer.spawn(async move { events.write(until).await });

        let mut leader = self
            .options
            .leader
            .clone()
            .map(|options| Leader::new(&self.calls, options, self.clock));
        let result = tokio::select! {
            result = self.lead(leader.as_mut()) => result,
            problem = first_end(&mut parts) => Err(Error::Broken { problem }),
        };
        parts.shutdown().await;
        closed.cancel();
        if timeout(FLUSH, writer.join_next()).await.is_err() {
            tracing::warn!("not all events could be written before the end");
        }
        if let Some(leader) = leader.as_mut() {
            leader.release().await;
        }
        result
    }

    /// Waits for the lease, if there is one, and acts while holding it.
    async fn lead(&self, leader: Option<&mut Leader>) -> Result<(), Error> {
        let Some(leader) = leader else {
            self.act().await;
            return Ok(());
        };
        tokio::select! {
            () = self.stop.cancelled() => return Ok(()),
            () = leader.acquire() => {}
        }
        let lease = leader.name();
        tokio::select! {
            biased;
            () = leader.keep() => Err(Error::LeadershipLost { lease }),
            () = self.act() => Ok(()),
        }
    }

    /// Makes passes until stopped, then waits for those under way.
    async fn act(&self) {
        let mut synced = self.synced.subscribe();
        tokio::select! {
            () = self.stop.cancelled() => return,
            _ = synced.wait_for(|watches| *watches >= WATCHES) => {}
        }
        let shared = &self.executor.shared;
        shared.act();
        self.health.set_acting();
        tracing::info!("acting");
        let mut passes = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                Some(ended) = passes.join_next() => report(ended),
                turn = shared.queue.next(), if passes.len() < self.options.passes.max(1) => {
                    let executor = Arc::clone(&self.executor);
                    passes.spawn(async move {
                        let verdict = executor.pass(&turn.uid).await;
                        turn.finish(verdict);
                    });
                }
            }
        }
        tracing::info!(passes = passes.len(), "stopping; finishing what is under way");
        while let Some(ended) = passes.join_next().await {
            report(ended);
        }
    }

    fn follow_all(&self, parts: &mut JoinSet<()>) {
        let within = |prefix: &str, resource| match &self.options.namespace {
            Some(namespace) => format!("{prefix}/namespaces/{namespace}/{resource}"),
            None => format!("{prefix}/{resource}"),
        };
        let (label, value) = K::LABEL;
        let selector = Some(encoded(&format!("{label}={value}")));
        let source = |resource, path, selector, remedy| Source { resource, path, selector, remedy };
        let jobs = within(&format!("/apis/{}", K::API_VERSION), K::RESOURCE);
        let children = "this API server cannot run jobs";
        let pods = source("pods", within("/api/v1", "pods"), selector.clone(), children);
        let services = source("services", within("/api/v1", "services"), selector, children);
        self.follow(parts, source(K::RESOURCE, jobs, None, K::REMEDY), Shared::hear_jobs);
        self.follow(parts, pods, Shared::hear_pods);
        self.follow(parts, services, Shared::hear_services);
    }

    fn follow<T>(&self, parts: &mut JoinSet<()>, source: Source, hear: fn(&Shared<K>, News<T>))
    where
        T: Object + DeserializeOwned + Send + 'static,
    {
        let (calls, health) = (self.calls.clone(), Arc::clone(&self.health));
        let shared = Arc::clone(&self.executor.shared);
        let synced = self.synced.clone();
        parts.spawn(async move {
            let mut listed = false;
            let tell = |news| {
                hear(&shared, news);
                if !std::mem::replace(&mut listed, true) {
                    synced.send_modify(|watches| *watches += 1);
                    if *synced.borrow() >= WATCHES {
                        health.set_synced();
                    }
                }
            };
            follow(&calls, &source, tell).await;
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

#[cfg(test)]
#[path = "operator_tests.rs"]
mod tests;
