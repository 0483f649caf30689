//! The scheduler's loop: follows what scheduling looks at, asks the pure scheduler, carries its
//! decisions out.
//!
//! Owns watches, bindings, evictions, the status of PodGroups and queues, conditions and events of
//! scheduling. Which pod goes where is decided in `trainyard-sched`; must not know jobs.

mod act;
mod explain;
mod later;
mod lone;
mod orders;
mod outbox;
mod pace;
mod queues;
mod seen;
mod tally;
#[cfg(test)]
mod tests;
mod voice;
mod volumes;
mod world;

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trainyard_api::volcano::names as volcano;
use trainyard_sched::{
    Claim, Config, CsiDriver, CsiNode, CsiStorageCapacity, DisruptionBudget, Namespace, Node, Pod,
    PodGroup, PriorityClass, Queue, StorageClass, Volume, VolumeAttachment,
};

use crate::calls::Calls;
use crate::clock::Clock;
use crate::leader::Leader;
use crate::watch::{follow, follow_optional};
use crate::{Error, Health, LeaderOptions, Metrics, Time};
use act::Actor;
use lone::LonePods;
use orders::Orders;
use pace::Pace;
use queues::QueueKeeper;
use seen::Told;
use tally::Tally;
use voice::Voice;
use world::World;

pub use explain::{explain, explain_each};
pub use trainyard_sched::{
    Constraint, Explanation, GroupKey, Holder, Remedy, Shortage, written as quantity,
};

/// The lease that lets one of several schedulers act.
pub const LEASE: &str = "trainyard-scheduler";

/// What a scheduler is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// The names that pods call it by; events are told in the first one's name.
    pub names: Vec<String>,
    /// After so many seconds of waiting nodes are kept for a group.
    pub reserve_after_seconds: i64,
    /// After so many seconds of waiting a group goes before everything.
    pub overdue_after_seconds: i64,
    /// Requests per second that are not exceeded; no limit when not given.
    pub qps: Option<f64>,
    /// Requests that may go out at once before `qps` holds the next one back.
    pub burst: u32,
    /// The lease that lets one of several schedulers act; without it this one always acts.
    pub leader: Option<LeaderOptions>,
    /// Where the time comes from.
    pub time: Time,
}

impl Default for Options {
    /// The only scheduler there is: it takes all pods.
    fn default() -> Self {
        let names = ["default-scheduler", "volcano", "trainyard"].map(str::to_owned).to_vec();
        let config = Config::default();
        Self {
            names,
            reserve_after_seconds: config.reserve_after,
            overdue_after_seconds: config.overdue_after,
            qps: None,
            burst: 0,
            leader: None,
            time: Time::OfDay,
        }
    }
}

impl Options {
    /// A scheduler beside a cluster's own.
    #[must_use]
    pub fn on_cluster() -> Self {
        let names = ["volcano", "trainyard"].map(str::to_owned).to_vec();
        Self { names, ..Self::default() }
    }

    fn config(&self) -> Config {
        Config {
            schedulers: self.names.iter().cloned().collect(),
            reserve_after: self.reserve_after_seconds,
            overdue_after: self.overdue_after_seconds,
            knows_volumes: true,
            ..Config::default()
        }
    }
}

/// Schedules until told to stop.
pub async fn run(
    client: kube::Client,
    options: Options,
    stop: CancellationToken,
) -> Result<(), Error> {
    Box::pin(Scheduler::new(client, options).run(stop)).await
}

/// A scheduler behind one API server.
pub struct Scheduler {
    client: kube::Client,
    options: Options,
    metrics: Arc<Metrics>,
    tally: Arc<Tally>,
    health: Arc<Health>,
}

impl Scheduler {
    /// A scheduler that has not begun.
    #[must_use]
    pub fn new(client: kube::Client, options: Options) -> Self {
        let tally = Arc::new(Tally::new());
        let metrics = Arc::new(Metrics::with(|registry| tally.register(registry)));
        Self { client, options, metrics, tally, health: Arc::default() }
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

    /// Schedules until `stop` is cancelled or the lease is lost.
    pub async fn run(self, stop: CancellationToken) -> Result<(), Error> {
        let health = Arc::clone(&self.health);
        let result = Box::pin(self.work(stop)).await;
        health.set_ended();
        result
    }

    async fn work(self, stop: CancellationToken) -> Result<(), Error> {
        let Self { client, options, metrics, tally, health } = self;
        let clock = Clock::start(options.time);
        let limits =
            crate::Options { qps: options.qps, burst: options.burst, ..crate::Options::default() };
        let calls = Calls::new(client, Arc::clone(&metrics), &limits);
        let world = Arc::new(World::new(options.config(), health.clone()));
        let orders = Arc::new(Orders::default());
        let mut parts = followers(&calls, &world, &orders);
        let name = options.names.first().map_or("trainyard", String::as_str);
        let voice = Arc::new(Voice::new(name, &calls, &metrics, clock));
        let closed = CancellationToken::new();
        let writers = voice.writers(&closed);
        let serves_volcano = options.names.iter().any(|name| name == volcano::SCHEDULER);
        let lone = serves_volcano.then(|| LonePods::new(calls.clone(), world.clone()));
        let keeper = QueueKeeper::new(calls.clone(), world.clone(), voice.clone(), orders);
        let actor = Arc::new(Actor { calls: calls.clone(), world: world.clone(), clock, voice });
        let pace = Pace::new(actor, tally);
        let mut leader = options.leader.clone().map(|leader| Leader::new(&calls, leader, clock));
        let lease = leader.as_ref().map(Leader::name).unwrap_or_default();
        let acting = async {
            health.set_acting();
            metrics.leader(true);
            world.look_again();
            tokio::select! {
                () = pace.run(stop.clone()) => {}
                () = keeper.run() => {}
                () = async {
                    match lone {
                        Some(lone) => lone.run().await,
                        None => std::future::pending().await,
                    }
                } => {}
            }
        };
        let led = async {
            let Some(leader) = leader.as_mut() else {
                acting.await;
                return Ok(());
            };
            tokio::select! {
                () = stop.cancelled() => return Ok(()),
                () = leader.acquire() => {}
            }
            tokio::select! {
                biased;
                () = leader.keep() => Err(Error::LeadershipLost { lease }),
                () = acting => Ok(()),
            }
        };
        let result = tokio::select! {
            result = led => result,
            ended = parts.join_next() => Err(broken(ended)),
        };
        parts.shutdown().await;
        closed.cancel();
        Voice::flush(writers).await;
        if let Some(leader) = leader.as_mut() {
            leader.release().await;
        }
        result
    }
}

fn broken(ended: Option<Result<(), tokio::task::JoinError>>) -> Error {
    let problem = match ended {
        Some(Err(error)) => error.to_string(),
        _ => "a watch ended".to_owned(),
    };
    Error::Broken { problem }
}

/// Follows everything; none of it ever ends.
fn followers(calls: &Calls, world: &Arc<World>, orders: &Arc<Orders>) -> JoinSet<()> {
    let mut parts = JoinSet::new();
    always::<Pod>(&mut parts, calls, world);
    always::<Node>(&mut parts, calls, world);
    if_there::<PodGroup>(&mut parts, calls, world);
    if_there::<Queue>(&mut parts, calls, world);
    if_there::<PriorityClass>(&mut parts, calls, world);
    if_there::<Claim>(&mut parts, calls, world);
    if_there::<Volume>(&mut parts, calls, world);
    if_there::<StorageClass>(&mut parts, calls, world);
    if_there::<CsiNode>(&mut parts, calls, world);
    if_there::<CsiDriver>(&mut parts, calls, world);
    if_there::<CsiStorageCapacity>(&mut parts, calls, world);
    if_there::<VolumeAttachment>(&mut parts, calls, world);
    if_there::<DisruptionBudget>(&mut parts, calls, world);
    if_there::<Namespace>(&mut parts, calls, world);
    let (calls, orders) = (calls.clone(), orders.clone());
    parts.spawn(async move {
        follow_optional(&calls, &Orders::source(), |news| orders.hear(news), &|| {}).await;
    });
    parts
}

fn always<T: Told>(parts: &mut JoinSet<()>, calls: &Calls, world: &Arc<World>) {
    let (calls, world) = (calls.clone(), world.clone());
    parts.spawn(async move {
        follow(&calls, &T::KIND.source(), |news| world.hear::<T>(news)).await;
    });
}

fn if_there<T: Told>(parts: &mut JoinSet<()>, calls: &Calls, world: &Arc<World>) {
    let (calls, world) = (calls.clone(), world.clone());
    parts.spawn(async move {
        let absent = || world.absent::<T>();
        follow_optional(&calls, &T::KIND.source(), |news| world.hear::<T>(news), &absent).await;
    });
}
