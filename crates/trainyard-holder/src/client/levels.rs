//! Which levels of isolation and network work on this machine, found by trying: a holder is set up
//! and ended for each, from the best down.
//!
//! Must not know why the agent prefers one.

use std::net::Ipv4Addr;
use std::process::Command;

use super::Holder;
use crate::protocol::{
    Answer, Cgroups, Isolation, Limits, Network, NodeNetwork, Refusal, RefusalKind, Request, SetUp,
};

/// One combination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// How much isolation.
    pub isolation: Isolation,
    /// Which network.
    pub network: Network,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// The best that works.
    pub best: Level,
    /// It was reached without root, in a user namespace or as plain processes.
    pub rootless: bool,
    /// Which limits can be enforced.
    pub cgroups: Cgroups,
    /// Why not more limits.
    pub cgroups_reason: Option<String>,
    /// Overlays can be made.
    pub overlay: bool,
    /// The better ones that do not work, and why.
    pub refused: Vec<(Level, Refusal)>,
}

const FROM_THE_BEST: [Level; 3] = [
    Level { isolation: Isolation::Namespaces, network: Network::Bridge },
    Level { isolation: Isolation::Namespaces, network: Network::Loopback },
    Level { isolation: Isolation::Processes, network: Network::Loopback },
];

/// Tries them. `command` makes what [`Holder::spawn`] takes; `yard` is a name that no running yard
/// has. Not even plain processes working is the error.
pub fn levels(mut command: impl FnMut() -> Command, yard: &str) -> Result<Levels, Refusal> {
    let mut refused = Vec::new();
    for best in FROM_THE_BEST {
        match attempt(command(), best, yard) {
            Ok(Answer::Ready { rootless, cgroups, cgroups_reason, overlay }) => {
                return Ok(Levels { best, rootless, cgroups, cgroups_reason, overlay, refused });
            }
            Ok(_) => refused.push((best, super::gone())),
            Err(refusal) => refused.push((best, refusal)),
        }
    }
    Err(refused.pop().map_or_else(super::gone, |(_, refusal)| refusal))
}

fn attempt(command: Command, level: Level, yard: &str) -> Result<Answer, Refusal> {
    let holder = Holder::spawn(command, |_| {}, || {}).map_err(|error| Refusal {
        step: "starting a holder".to_owned(),
        reason: error.to_string(),
        kind: RefusalKind::Machine,
    })?;
    let set_up = SetUp {
        yard: yard.to_owned(),
        isolation: level.isolation,
        network: level.network,
        cgroups: true,
        limits: Limits::default(),
        gateway: Ipv4Addr::new(10, 77, 0, 1),
        prefix: 16,
        // One node, so that a link to the bridge is tried as well.
        nodes: vec![NodeNetwork { name: "probe".to_owned(), address: Ipv4Addr::new(10, 77, 0, 2) }],
        bases: None,
    };
    let answer = holder.ask(Request::SetUp(set_up), Vec::new());
    holder.end();
    answer.map(|(answer, _)| answer)
}
