//! The cases, by what they are about.

mod devices;
mod env;
mod exec;
mod fallback;
mod freed;
mod full;
mod killed;
mod leaks;
mod levels;
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
mod user;
mod volumes;

use std::pin::Pin;
use std::time::Duration;

use anyhow::Result;

use super::{Agent, Stage};

type Played<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// A case that shares one agent with others.
#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) play: for<'a> fn(&'a Stage, &'a Agent) -> Played<'a>,
}

/// A case that starts agents of its own, alone on the machine.
#[derive(Clone, Copy)]
pub(super) struct Alone {
    pub(super) name: &'static str,
    pub(super) longest: Duration,
    pub(super) play: for<'a> fn(&'a Stage) -> Played<'a>,
}

/// Cases on a common agent.
pub(super) fn shared() -> Vec<Case> {
    [
        life::all(),
        restart::all(),
        probes::all(),
        logs::all(),
        exec::all(),
        refused::all(),
        unsupported::all(),
        node::all(),
        env::all(),
        volumes::all(),
        freed::all(),
        network::all(),
        reach::all(),
        security::all(),
    ]
    .concat()
}

/// Cases with agents of their own.
pub(super) fn alone() -> Vec<Alone> {
    [
        volumes::alone(),
        node::alone(),
        freed::alone(),
        shortage::alone(),
        network::alone(),
        outbound::alone(),
        levels::all(),
        user::alone(),
        full::alone(),
        killed::alone(),
        leaks::alone(),
        rootless::alone(),
        fallback::alone(),
        devices::alone(),
        tensorflow::cases(),
    ]
    .concat()
}
