//! The scenarios: cases over a [`World`], one file per intent.
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
mod lost_nodes;
mod managed_by;
mod metrics;
mod pods;
mod quota;
mod refused;
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

pub(crate) mod malformed;
pub(crate) mod outage;

use crate::harness::Case;
use crate::kubectl::Kubectl;
use crate::kubelet::plays;
use crate::world::World;

/// Those that share one operator, which looks after all namespaces.
pub(crate) fn shared() -> Vec<Case<World>> {
    [
        backoff::all(),
        clean::all(),
        disruption::all(),
        dynamic::all(),
        events::all(),
        exit_codes::all(),
        failure::all(),
        plays::all(),
        lost_nodes::all(),
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
pub(crate) fn own_operator() -> Vec<Case<World>> {
    [
        clean::own_operator(),
        disruption::own_operator(),
        leader::all(),
        lost_nodes::own_operator(),
        metrics::all(),
        refused::own_operator(),
        scheduler::own_operator(),
        success::own_operator(),
        takeover::all(),
        tf_config::own_operator(),
        volcano::own_operator(),
    ]
    .concat()
}

/// Those that start operators of their own and need kinds which only a complete API server has.
pub(crate) fn own_operator_on_complete_servers() -> Vec<Case<World>> {
    takeover::on_complete_servers()
}

/// Those that need a complete API server and share one operator.
pub(crate) fn shared_on_complete_servers() -> Vec<Case<World>> {
    quota::all()
}

/// Those that act through the real kubectl; they share one operator.
pub(crate) fn with_kubectl() -> Vec<Case<(World, Kubectl)>> {
    [seeds::all(), kubectl_verbs::all()].concat()
}

/// Those of Volcano Jobs, which can be played on any controller of theirs.
pub(crate) fn of_volcano_jobs() -> Vec<Case<World>> {
    volcano::shared()
}
