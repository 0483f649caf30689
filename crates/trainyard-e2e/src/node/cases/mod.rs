//! The cases, by what they are about.

mod bombs;
mod devices;
mod env;
mod exec;
mod fallback;
mod freed;
mod full;
mod killed;
mod kubelet;
mod leaks;
pub(super) mod levels;
mod life;
mod logs;
mod look;
mod machine;
mod network;
mod node;
mod objects;
mod outbound;
mod outside;
mod probes;
mod reach;
mod refused;
mod restart;
mod rootless;
mod security;
mod shortage;
mod tensorflow;
mod unsupported;
mod volumes;

use std::sync::Arc;

use super::{Agent, Stage};
use crate::harness::Case;

/// What cases have that share one agent with others.
pub(super) type Shared = (Arc<Stage>, Arc<Agent>);

/// What any agent of root must do whose pods have a network of their own.
pub(super) fn all() -> Vec<Case<Shared>> {
    [contract(), surroundings()].concat()
}

/// The kubelet's contract.
pub(super) fn contract() -> Vec<Case<Shared>> {
    [
        life::all(),
        restart::all(),
        probes::all(),
        logs::all(),
        exec::all(),
        refused::all(),
        unsupported::all(),
        node::all(),
        freed::all(),
    ]
    .concat()
}

/// What pods find around them.
pub(super) fn surroundings() -> Vec<Case<Shared>> {
    [env::all(), volumes::all(), network::all(), reach::all(), security::all()].concat()
}

/// Cases with agents of their own.
pub(super) fn alone() -> Vec<Case<Arc<Stage>>> {
    [
        volumes::alone(),
        node::alone(),
        freed::alone(),
        shortage::alone(),
        network::alone(),
        outbound::alone(),
        full::alone(),
        kubelet::alone(),
        bombs::alone(),
        killed::alone(),
        leaks::alone(),
        rootless::alone(),
        fallback::alone(),
        devices::alone(),
        tensorflow::cases(),
    ]
    .concat()
}
