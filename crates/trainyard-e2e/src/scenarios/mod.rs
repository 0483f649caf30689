//! The scenarios: plain functions over a [`World`], one file per intent.
//!
//! They know the API and nothing of the server behind it. Those that need the real kubectl, or the
//! control plane itself, are in lists of their own.

mod backoff;
mod clean;
mod disruption;
mod dynamic;
mod events;
mod exit_codes;
mod failure;
mod kubectl_verbs;
mod leader;
mod managed_by;
mod metrics;
mod pods;
mod quota;
mod restart;
mod scale;
mod scheduler;
mod seeds;
mod strangers;
mod submit;
mod success;
mod suspend;
mod takeover;
mod tensorboard;
mod tf_config;
mod ttl_deadline;
mod validation;
mod volcano;

pub mod malformed;
pub mod outage;

use std::sync::Arc;

use anyhow::Result;
use futures::future::BoxFuture;

use crate::kubectl::Kubectl;
use crate::world::World;

type Run = Arc<dyn Fn(World) -> BoxFuture<'static, Result<()>> + Send + Sync>;

/// One scenario.
#[derive(Clone)]
pub struct Scenario {
    /// `file/what_it_shows`.
    pub name: String,
    run: Run,
}

impl Scenario {
    /// A scenario that runs `play`.
    pub fn new<F, A>(name: impl Into<String>, play: F) -> Self
    where
        F: Fn(World) -> A + Send + Sync + 'static,
        A: Future<Output = Result<()>> + Send + 'static,
    {
        Self { name: name.into(), run: Arc::new(move |world| Box::pin(play(world))) }
    }

    /// Plays it.
    #[must_use]
    pub fn run(&self, world: World) -> BoxFuture<'static, Result<()>> {
        (self.run)(world)
    }
}

/// Scenarios named after their functions.
macro_rules! scenarios {
    ($file:literal: $($play:ident),+ $(,)?) => {
        vec![$($crate::scenarios::Scenario::new(
            concat!($file, "/", stringify!($play)), $play,
        )),+]
    };
}
pub(crate) use scenarios;

/// Those that share one operator, which looks after all namespaces.
#[must_use]
pub fn shared() -> Vec<Scenario> {
    [
        backoff::all(),
        clean::all(),
        disruption::all(),
        dynamic::all(),
        events::all(),
        exit_codes::all(),
        failure::all(),
        managed_by::all(),
        pods::all(),
        restart::all(),
        scale::all(),
        scheduler::shared(),
        strangers::all(),
        submit::all(),
        success::all(),
        suspend::all(),
        tensorboard::all(),
        tf_config::all(),
        ttl_deadline::all(),
        validation::all(),
        volcano::shared(),
    ]
    .concat()
}

/// Those that start operators of their own, each in its namespace.
#[must_use]
pub fn own_operator() -> Vec<Scenario> {
    [
        clean::own_operator(),
        leader::all(),
        metrics::all(),
        scheduler::own_operator(),
        success::own_operator(),
        takeover::all(),
        tf_config::own_operator(),
        volcano::own_operator(),
    ]
    .concat()
}

/// Those that start operators of their own and need kinds which only a complete API server has.
#[must_use]
pub fn own_operator_on_complete_servers() -> Vec<Scenario> {
    takeover::on_complete_servers()
}

/// Those that act through the real kubectl or need a complete API server; they share one operator.
#[must_use]
pub fn with_kubectl(kubectl: &Kubectl) -> Vec<Scenario> {
    [with_kubectl_alone(kubectl), quota::all()].concat()
}

/// Those of them that any server must pass.
#[must_use]
pub fn with_kubectl_alone(kubectl: &Kubectl) -> Vec<Scenario> {
    [seeds::all(kubectl), kubectl_verbs::all(kubectl)].concat()
}

/// Those of Volcano Jobs, which can be played on any controller of theirs.
#[must_use]
pub fn of_volcano_jobs() -> Vec<Scenario> {
    volcano::shared()
}
