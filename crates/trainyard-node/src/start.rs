//! The agent's start: which levels work here, the holder, the pods' network, and the line that says
//! what is in use.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::process::Command;

use trainyard_holder::client::{Levels, levels};
use trainyard_holder::protocol::{Isolation, Limits, Network, NodeNetwork, SetUp};

use crate::addresses::Addresses;
use crate::error::AgentError;
use crate::options::{Options, Wish};
use crate::yard::Yard;

/// The levels that will be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) isolation: Isolation,
    pub(crate) network: Network,
}

/// A holder with its pods' network.
pub(crate) struct Started {
    pub(crate) yard: Yard,
    pub(crate) chosen: Chosen,
    pub(crate) addresses: Addresses,
    pub(crate) nodes: Vec<(String, Ipv4Addr)>,
    pub(crate) gateway: Ipv4Addr,
}

/// The command that starts a holder.
pub(crate) fn holder_command(words: &[OsString]) -> Command {
    let mut words = words.iter();
    let mut command = Command::new(words.next().map_or("".as_ref(), |word| word.as_os_str()));
    command.args(words);
    command
}

/// The best there is.
const BEST: Chosen = Chosen { isolation: Isolation::Namespaces, network: Network::Bridge };

/// Starts a holder at the best level, which most machines have. Where that does not work, or less is
/// required, finds out what does. `together` bounds all pods.
pub(crate) async fn start(
    options: &Options,
    yard: String,
    together: Limits,
) -> Result<Started, AgentError> {
    let wanted = |chosen: Chosen| {
        let isolation = matches!(options.sandbox, Wish::Best)
            || options.sandbox == Wish::Require(chosen.isolation);
        let network = matches!(options.network, Wish::Best)
            || options.network == Wish::Require(chosen.network);
        isolation && network
    };
    if wanted(BEST)
        && let Ok(started) = start_at(options, yard.clone(), BEST, together).await
    {
        return Ok(started);
    }
    let (words, probe) = (options.holder.clone(), format!("{yard}-probe"));
    let found = tokio::task::spawn_blocking(move || levels(|| holder_command(&words), &probe))
        .await
        .map_err(|error| AgentError::Holder(error.to_string()))?
        .map_err(|error| AgentError::Holder(error.to_string()))?;
    let chosen = choose(options.sandbox, options.network, &found)?;
    start_at(options, yard, chosen, together).await
}

async fn start_at(
    options: &Options,
    yard: String,
    chosen: Chosen,
    together: Limits,
) -> Result<Started, AgentError> {
    let inside = match chosen.network {
        Network::Bridge => (options.pod_network, options.pod_prefix),
        Network::Loopback => (LOOPBACK, LOOPBACK_PREFIX),
    };
    let mut addresses = Addresses::new(inside.0, inside.1);
    let mut nodes = Vec::new();
    for name in &options.nodes {
        let address = addresses.take().ok_or(AgentError::NetworkTooSmall)?;
        nodes.push((name.clone(), address));
    }
    let set_up = SetUp {
        yard,
        isolation: chosen.isolation,
        network: chosen.network,
        cgroups: true,
        limits: together,
        gateway: addresses.gateway(),
        prefix: addresses.prefix(),
        nodes: nodes
            .iter()
            .map(|(name, address)| NodeNetwork { name: name.clone(), address: *address })
            .collect(),
        bases: Some(options.state.join(BASES)),
    };
    let yard = Yard::start(holder_command(&options.holder), set_up)
        .await
        .map_err(|refusal| AgentError::Holder(refusal.to_string()))?;
    let gateway = addresses.gateway();
    Ok(Started { yard, chosen, addresses, nodes, gateway })
}

/// The levels to use: the best found, or what is required; never less than is required.
fn choose(
    sandbox: Wish<Isolation>,
    network: Wish<Network>,
    found: &Levels,
) -> Result<Chosen, AgentError> {
    let best = found.best;
    let reasons = || {
        let reasons = found.refused.iter().map(|(_, refusal)| refusal.to_string());
        reasons.collect::<Vec<_>>().join("; ")
    };
    let isolation = match sandbox {
        Wish::Best => best.isolation,
        Wish::Require(level) if level <= best.isolation => level,
        Wish::Require(_) => {
            return Err(AgentError::Level {
                wanted: "--sandbox=require:namespaces",
                reason: reasons(),
            });
        }
    };
    let possible = if isolation == Isolation::Processes { Network::Loopback } else { best.network };
    let network = match network {
        Wish::Best => possible,
        Wish::Require(level) if level <= possible => level,
        Wish::Require(_) if isolation == Isolation::Processes => {
            let reason = "it needs --sandbox=require:namespaces".to_owned();
            return Err(AgentError::Level { wanted: "--network=bridge", reason });
        }
        Wish::Require(_) => {
            return Err(AgentError::Level { wanted: "--network=bridge", reason: reasons() });
        }
    };
    for (level, refusal) in &found.refused {
        tracing::warn!(?level, reason = %refusal, "a better sandbox cannot be had here");
    }
    Ok(Chosen { isolation, network })
}

/// Where the holder keeps, in memory, what containers' roots begin with.
const BASES: &str = "bases";

/// Loopback addresses of pods, where they share the machine's network.
const LOOPBACK: Ipv4Addr = Ipv4Addr::new(127, 77, 0, 0);
const LOOPBACK_PREFIX: u8 = 16;

#[cfg(test)]
mod tests {
    use trainyard_holder::client::Level;
    use trainyard_holder::protocol::{Cgroups, Refusal, RefusalKind};

    use super::*;

    fn found(isolation: Isolation, network: Network) -> Levels {
        let refusal = Refusal {
            step: "entering namespaces".to_owned(),
            reason: "forbidden".to_owned(),
            kind: RefusalKind::NotPermitted,
        };
        let better = Level { isolation: Isolation::Namespaces, network: Network::Bridge };
        Levels {
            best: Level { isolation, network },
            rootless: true,
            cgroups: Cgroups::None,
            cgroups_reason: None,
            overlay: false,
            refused: vec![(better, refusal)],
        }
    }

    #[test]
    fn the_best_is_taken_unless_something_is_required() {
        use Isolation::{Namespaces, Processes};
        use Network::{Bridge, Loopback};
        let all = found(Namespaces, Bridge);
        let little = found(Processes, Loopback);
        let chosen = |isolation, network| Chosen { isolation, network };
        assert_eq!(choose(Wish::Best, Wish::Best, &all).unwrap(), chosen(Namespaces, Bridge));
        assert_eq!(choose(Wish::Best, Wish::Best, &little).unwrap(), chosen(Processes, Loopback));
        let less = choose(Wish::Require(Processes), Wish::Best, &all).unwrap();
        assert_eq!(less, chosen(Processes, Loopback));
        let host = choose(Wish::Best, Wish::Require(Loopback), &all).unwrap();
        assert_eq!(host, chosen(Namespaces, Loopback));
        let error = choose(Wish::Require(Namespaces), Wish::Best, &little).unwrap_err();
        assert!(error.to_string().contains("entering namespaces: forbidden"), "{error}");
        assert!(choose(Wish::Best, Wish::Require(Bridge), &little).is_err());
        assert!(choose(Wish::Require(Processes), Wish::Require(Bridge), &all).is_err());
    }
}
