//! The scheduler's loop: follows pods and nodes, asks the pure scheduler, carries its decisions out.
//!
//! Owns watches, bindings, conditions and events of scheduling. Which pod goes where is decided in
//! `trainyard-sched`; must not know jobs.

mod act;
mod world;

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::calls::Calls;
use crate::clock::Clock;
use crate::watch::{Source, follow};
use crate::{Error, Metrics, Time};
use act::Actor;
use world::World;

/// What a scheduler is told.
#[derive(Debug, Clone)]
pub struct Options {
    /// The names that pods call it by.
    pub names: Vec<String>,
    /// Where the time comes from.
    pub time: Time,
}

impl Default for Options {
    fn default() -> Self {
        Self { names: vec!["default-scheduler".to_owned()], time: Time::OfDay }
    }
}

/// Schedules until told to stop.
pub async fn run(
    client: kube::Client,
    options: Options,
    stop: CancellationToken,
) -> Result<(), Error> {
    let calls = Calls::new(client, Arc::new(Metrics::default()), &crate::Options::default());
    let world = Arc::new(World::new(options.names.clone()));
    let mut parts = JoinSet::new();
    let remedy = "this API server cannot run pods";
    let source = |resource: &'static str| Source {
        resource,
        path: format!("/api/v1/{resource}"),
        selector: None,
        remedy,
    };
    let (pods, nodes) = (source("pods"), source("nodes"));
    let (their_calls, heard) = (calls.clone(), world.clone());
    parts.spawn(async move { follow(&their_calls, &pods, |news| heard.hear_pods(news)).await });
    let (their_calls, heard) = (calls.clone(), world.clone());
    parts.spawn(async move { follow(&their_calls, &nodes, |news| heard.hear_nodes(news)).await });
    let actor = Actor::new(calls, world, Clock::start(options.time), options.names);
    tokio::select! {
        () = actor.run() => {}
        () = stop.cancelled() => {}
    }
    Ok(())
}
